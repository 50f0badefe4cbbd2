"""gunicorn finds this file by itself in the folder it is started in."""

from racedata.settings import read_settings

settings = read_settings()

wsgi_app = "racedata.app:get_app()"
bind = f"[{settings.host}]:{settings.port}" if ":" in settings.host else f"{settings.host}:{settings.port}"
workers = settings.workers

# Threads answer while others wait for slow clients; each has a connection of its own to the database.
worker_class = "gthread"
threads = 4

# The application is made once, before the workers: a fault of a setting or of the database is told once, and no
# worker starts.
preload_app = True

# Nothing here is steered through gunicorn's control socket, and two services of one user would quarrel over its path.
control_socket_disable = True


def when_ready(server):
    address = f"http://{bind}{settings.base_address}"
    server.log.info("Try: curl '%s/2023/races/'", address)
    server.log.info("Try: curl '%s/2023/18/laps.json?limit=5&offset=45'", address)

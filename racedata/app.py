"""The service as a WSGI application: the route table, the addresses' forms, the middleware, the handling of errors.

`create_app` makes it over one database; a `Service` does so anew when the file is replaced; `get_app` is for gunicorn.
"""

import gc
import logging
import os
import re
import sqlite3
import sys
import threading
import time
from datetime import datetime

import falcon
from falcon.routing import BaseConverter

from racedata import __version__, documents, errors, resources
from racedata.answers import Answers
from racedata.database import Database, DatabaseError, Replaced, identity
from racedata.ratelimit import RateLimits, TrustedProxies, store_for
from racedata.serializers import Directory
from racedata.settings import CANNOT_START, SettingError, read_settings

log = logging.getLogger(__name__)

METHODS = ("GET", "HEAD", "OPTIONS")


class Season(BaseConverter):
    """A season in an address: four digits."""

    def convert(self, value):
        return int(value) if re.fullmatch("[1-9][0-9]{3}", value) else None


class Round(BaseConverter):
    """A round in an address: a whole number from 1, and of a length that SQLite can hold."""

    def convert(self, value):
        return int(value) if re.fullmatch("[1-9][0-9]{0,17}", value) else None


class Requests:
    """Middleware: refuses other methods, and brings the forms of an address to the one that has a route.

    Those are any case of letters, `….json` and `…/`. `unknown_address(req, resp)` refuses an address.
    """

    def __init__(self, base_address, unknown_address):
        self.base = base_address.lower() + "/"
        self.unknown_address = unknown_address

    def process_request(self, req, resp):
        # Before there is a route: left to itself, Falcon answers methods it has never heard of with 400.
        if req.method not in METHODS:
            raise falcon.HTTPMethodNotAllowed(METHODS, description=f"Accepted are {', '.join(METHODS)}.")
        path = req.path.lower()
        if path.startswith("//"):
            self.unknown_address(req, resp)  # Falcon would find the route of `/…`, which is not what was asked
        if path.startswith(self.base):
            req.path = path.removesuffix(".json") if path.endswith(".json") else path.removesuffix("/")


class ForBrowsers:
    """Middleware: scripts of any web page may call, and read every answer and header; none is taken for what it is not.

    Unlike falcon.CORSMiddleware it says so to whoever asks and not only to browsers: what a shared cache keeps from a
    request without an Origin is good for one that has it.
    """

    def process_response(self, req, resp, resource, req_succeeded):
        resp.set_header("Access-Control-Allow-Origin", "*")
        resp.set_header("Access-Control-Expose-Headers", "*")
        resp.set_header("X-Content-Type-Options", "nosniff")
        if req.method == "OPTIONS" and req_succeeded:
            resp.set_header("Allow", ", ".join(METHODS))
            resp.set_header("Access-Control-Allow-Methods", ", ".join(METHODS))
            resp.set_header("Access-Control-Allow-Headers", "*")
            resp.set_header("Access-Control-Max-Age", "86400")  # seconds


def create_app(settings, database, limit_store=None):
    """The WSGI application over `database` (a Database); `limit_store` keeps the rate limits, None is without."""
    answers = answers_of(settings, database)
    unknown_address = resources.unknown_address(settings.base_address)
    middleware = [answers, ForBrowsers(), Requests(settings.base_address, unknown_address)]
    if limit_store:
        # Before the others: what they answer or refuse counts too.
        limits = RateLimits(limit_store, TrustedProxies(settings.trusted_proxies), settings.base_address)
        middleware.insert(0, limits)
    app = falcon.App(middleware=middleware)
    app.router_options.converters.update(season=Season, round=Round)

    serving = database, Directory(database), answers, settings
    calendar, race = resources.Calendar(*serving), resources.Race(*serving)
    base = settings.base_address.lower()
    for address, resource in (
        ("/{season:season}/races", calendar),
        ("/{season:season}", calendar),
        ("/{season:season}/{round:round}", race),
        ("/{season:season}/{round:round}/races", race),
        ("/{season:season}/{round:round}/results", resources.Results(*serving)),
        ("/{season:season}/{round:round}/qualifying", resources.Qualifying(*serving)),
        ("/{season:season}/{round:round}/sprint", resources.Sprint(*serving)),
        ("/{season:season}/{round:round}/laps", resources.Laps(*serving)),
    ):
        app.add_route(base + address, resource)
    app.add_route("/healthz", resources.Health(database))
    app.add_route("/openapi.json", resources.Document(answers, documents.description(settings), falcon.MEDIA_JSON))
    page = answers_of(settings, database, settings.burst_limit, settings.sustained_limit)  # which it tells
    app.add_route("/", resources.Document(page, documents.home(database, settings), "text/html; charset=utf-8"))
    app.add_sink(unknown_address)

    app.set_error_serializer(errors.write_problem)
    app.add_error_handler(Exception, errors.unexpected)
    app.add_error_handler(sqlite3.Error, errors.database_unreadable)
    app.add_error_handler(Replaced, errors.database_replaced)
    return app


def answers_of(settings, database, *shaping):
    """The Answers of `database`; their ETag stands for all that shapes an answer beside its request.

    `shaping` are settings that shape these beside those that shape all.
    """
    built_at = datetime.fromisoformat(database.build()["builtAt"].replace("Z", "+00:00"))
    shaping += (
        __version__,
        settings.base_path,
        settings.series,
        settings.base_url,
        settings.finish_times,
        settings.max_limit,
    )
    return Answers(database.checksum + repr(shaping).encode(), built_at, settings.max_age, settings.cache_size << 20)


class Service:
    """The application over the file that is at `path` now: when another takes its place, over that one.

    Everything that was made of the old file goes with it: answers, directory, connections. A file that cannot be
    served is refused with one line in the log, and the old one goes on being served as long as it can be read.
    """

    INTERVAL = 0.5  # seconds between looks at the file

    def __init__(self, settings, limit_store, clock=time.monotonic):
        self.settings, self.limit_store, self.clock = settings, limit_store, clock
        self._look_again_at = 0.0
        self._looking = threading.Lock()
        self.database = None
        self._serve(Database(settings.database))

    def __call__(self, environ, start_response):
        # One thread looks, the others go on with what there is.
        if self.clock() >= self._look_again_at and self._looking.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._looking.release()
        try:
            return self.app(environ, start_response)
        except Replaced:
            pass  # the file was not open yet, or was written into, or is not served any more
        if not self.database.refused:  # else it is looked at again when it is time, however many ask
            with self._looking:
                self._look()
        # The application that is asked now may be another. Its limits count the request once more.
        environ[errors.ASKED_AGAIN] = True
        return self.app(environ, start_response)

    def _look(self):
        """Serves the file that is there now, if it is another than before and can be served."""
        self._look_again_at = self.clock() + self.INTERVAL
        found = identity(self.settings.database)
        if found == self.database.identity and not self.database.spoilt:
            self.database.refused = None
            return
        if self.database.refused and found == self._refused:
            return
        try:
            self._serve(Database(self.settings.database))
            log.warning("%s has changed, and is served as it is now", self.settings.database)
        except DatabaseError as error:
            if error.fault != self.database.refused or not error.passing:
                log.error("%s; what was served before still is, as far as it can be read", error)
            self._refused, self.database.refused = object() if error.passing else found, error.fault
        except Replaced:
            pass  # it is changing at this moment; that is for the next look

    def _serve(self, database):
        try:
            with database.confirmed():
                app = create_app(self.settings, database, self.limit_store)
        except Replaced:
            database.close()
            raise
        except Exception as error:  # whatever it is, the one before is better than none
            database.close()
            raise database.error(f"lacks what is needed ({error})") from error
        before, self.app, self.database = self.database, app, database
        if before:
            before.close()  # a request that is still at work on it is asked again
        gc.unfreeze()  # what get_app has frozen
        gc.collect()  # what the old one took, now and not some time

    def after_fork(self):
        """Opens the file in a new process, which must not use the connection of another."""
        try:
            self.database.open()
        except (Replaced, sqlite3.Error, OSError):
            pass  # for the first request to find out


def get_app():
    """The service as the environment has it; where there can be none, one line on stderr and the end."""
    settings = read_settings()
    try:
        service = Service(settings, store_for(settings))
    except (DatabaseError, SettingError) as error:
        print(f"racedata: {error}", file=sys.stderr)
        sys.exit(CANNOT_START)
    except Replaced as error:
        sys.exit(f"racedata: {error}")  # not for good: whoever watches the service may start it again
    service.database.close()  # a connection must not cross the fork that makes gunicorn's workers
    os.register_at_fork(after_in_child=service.after_fork)
    like_gunicorn = "[%(asctime)s] [%(process)d] [%(levelname)s] %(message)s"
    logging.basicConfig(format=like_gunicorn, datefmt="%Y-%m-%d %H:%M:%S %z")
    gc.freeze()  # what is there at start stays: the collector need not look through it again and again
    return service

"""racedata.service.process_memory: the garbage collector in a real worker. A test of what glibc
keeps is in test_reload.py.
"""

import gc
import json
import sys

from support.processes import OFF, gunicorn
from support.traffic import get

# The service, which also answers at `/gc` what the garbage collector of a worker does.
WITH_GC = """
import gc, json, sys
from racedata import settings
from racedata.service import server

def application(settings):
    app = usual(settings)
    made = app.made

    def answer(environ, start_response):
        if environ["PATH_INFO"] != "/gc":
            return made(environ, start_response)
        body = json.dumps([gc.get_threshold()[0], gc.get_freeze_count()]).encode()
        start_response("200 OK", [("content-length", str(len(body)))])
        return [body]

    app.made = answer
    return app

usual, server.application = server.application, application
arguments = settings.parse_arguments(sys.argv[1:])
server.serve(arguments.settings, arguments.gunicorn_options)
"""


def test_a_worker_looks_for_cycles_seldom_and_not_in_what_existed_before_the_fork(
    sample_database, tmp_path
):
    (tmp_path / "with_gc.py").write_text(WITH_GC)
    environ = {"RACEDATA_DATABASE": str(sample_database), "WEB_CONCURRENCY": "1", **OFF}
    command = [sys.executable, str(tmp_path / "with_gc.py")]
    with gunicorn(environ=environ, command=command) as running:
        answer, body = get(running.address, "/gc")
    threshold, frozen = json.loads(body)
    assert answer.status == 200
    assert threshold > 14_000 > gc.get_threshold()[0]  # the objects of a page of 2,000 records
    assert frozen > 10_000

"""The service as a WSGI application: the route table, the addresses' forms, the middleware, the handling of errors.

`create_app` is given everything it needs; `get_app` finds it in the environment, for gunicorn.
"""

import re
import sqlite3
import sys

import falcon
from falcon.routing import BaseConverter

from racedata import errors, resources
from racedata.database import Database, DatabaseError
from racedata.ratelimit import RateLimits, TrustedProxies, store_for
from racedata.settings import CANNOT_START, SettingError, read_settings

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

    Those are any case of letters, `….json` and `…/`.
    """

    def __init__(self, base_address):
        self.base = base_address.lower() + "/"

    def process_request(self, req, resp):
        # Before there is a route: left to itself, Falcon answers methods it has never heard of with 400.
        if req.method not in METHODS:
            raise falcon.HTTPMethodNotAllowed(METHODS, description=f"Accepted are {', '.join(METHODS)}.")
        path = req.path.lower()
        if path.startswith(self.base):
            req.path = path.removesuffix(".json") if path.endswith(".json") else path.removesuffix("/")


class AnyOrigin:
    """Middleware: scripts of any web page may call, and read every answer and header.

    Unlike falcon.CORSMiddleware it says so to whoever asks and not only to browsers: what a shared cache keeps
    from a request without an Origin is good for one that has it.
    """

    def process_response(self, req, resp, resource, req_succeeded):
        resp.set_header("Access-Control-Allow-Origin", "*")
        resp.set_header("Access-Control-Expose-Headers", "*")
        if req.method == "OPTIONS" and req_succeeded:
            resp.set_header("Allow", ", ".join(METHODS))
            resp.set_header("Access-Control-Allow-Methods", ", ".join(METHODS))
            resp.set_header("Access-Control-Allow-Headers", "*")
            resp.set_header("Access-Control-Max-Age", "86400")  # seconds


def create_app(settings, database, limit_store=None):
    """The WSGI application over `database` (a Database); `limit_store` keeps the rate limits, None is without."""
    middleware = [AnyOrigin(), Requests(settings.base_address)]
    if limit_store:
        # Before the others: what they refuse counts too.
        limits = RateLimits(limit_store, TrustedProxies(settings.trusted_proxies), settings.base_address)
        middleware.insert(0, limits)
    app = falcon.App(middleware=middleware)
    app.router_options.converters.update(season=Season, round=Round)

    calendar = resources.Calendar(database, settings)
    race = resources.Race(database, settings)
    base = settings.base_address.lower()
    for address, resource in (
        ("/{season:season}/races", calendar),
        ("/{season:season}", calendar),
        ("/{season:season}/{round:round}", race),
        ("/{season:season}/{round:round}/races", race),
        ("/{season:season}/{round:round}/results", resources.Results(database, settings)),
        ("/{season:season}/{round:round}/qualifying", resources.Qualifying(database, settings)),
        ("/{season:season}/{round:round}/sprint", resources.Sprint(database, settings)),
        ("/{season:season}/{round:round}/laps", resources.Laps(database, settings)),
    ):
        app.add_route(base + address, resource)
    app.add_route("/healthz", resources.Health(database))
    app.add_sink(resources.unknown_address)

    app.set_error_serializer(errors.write_problem)
    app.add_error_handler(Exception, errors.unexpected)
    app.add_error_handler(sqlite3.Error, errors.database_unreadable)
    return app


def get_app():
    """The application as the environment has it; where there can be none, one line on stderr and the end."""
    settings = read_settings()
    try:
        return create_app(settings, Database(settings.database), store_for(settings))
    except (DatabaseError, SettingError) as error:
        print(f"racedata: {error}", file=sys.stderr)
        sys.exit(CANNOT_START)

"""The service as a WSGI application: its routes, its middleware and its handling of errors.

It is for one database; server.py has a new one made for each. Only what concerns all requests alike
belongs here.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import falcon
import orjson

from racedata.service import download, openapi
from racedata.service.addresses import Grammar
from racedata.service.answers import Resource
from racedata.service.caching import Answers, Cache, Document
from racedata.service.catalogue import Catalogue
from racedata.service.content import Served
from racedata.service.endpoints import ENDPOINTS, RULES
from racedata.service.environment import UNFINISHED
from racedata.service.health import Health
from racedata.service.middleware import Cors, OneSlash, RequestParser
from racedata.service.pages.ask import Ask
from racedata.service.pages.resources import Pages
from racedata.service.ratelimit.clients import TrustedProxies
from racedata.service.ratelimit.middleware import RateLimits
from racedata.service.ratelimit.stores import LimitStore
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

log = logging.getLogger(__name__)


class App(falcon.App[falcon.Request, falcon.Response]):
    """The WSGI application, which makes slow answers later, as environment.py describes."""

    def __init__(self, middleware: list[Any]) -> None:
        super().__init__(middleware=middleware)
        self.routes: set[str] = set()

    def add_route(self, uri_template: str, resource: object, **options: Any) -> None:
        self.routes.add(uri_template)
        super().add_route(uri_template, resource, **options)

    def __call__(self, env: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        started: list[Any] = []
        body = super().__call__(env, lambda *given: started.extend(given))  # type: ignore[arg-type]
        if unfinished := env.pop(UNFINISHED, None):  # not left there, as it refers to `env`
            return finished(start_response, *unfinished)
        start_response(*started)
        return body


def finished(
    start_response: "StartResponse",
    req: falcon.Request,
    resp: falcon.Response,
    finish: Callable[[], None],
) -> Iterator[bytes]:
    """The body of a slow answer, which is made when somebody iterates over this."""
    try:
        finish()
    except Exception as error:
        answer_unexpected(req, resp, error, {})
    # The last steps of Falcon's App, which came too early for this answer.
    assert resp.data is not None
    resp.content_length = len(resp.data)
    start_response(str(resp.status), [*resp.headers.items()])
    if req.method != "HEAD":
        yield resp.data


def create_app(settings: Settings, data: Snapshot, limit_store: LimitStore | None = None) -> App:
    """The application for `data`.

    `limit_store` holds the buckets; None turns rate limiting off.
    """
    served = Served(data, Catalogue(data), settings)
    cache = Cache(settings.cache_size << 20)
    grammar = Grammar(settings.base_address, RULES)
    parser = RequestParser(settings, grammar)
    proxies = TrustedProxies(settings.trusted_proxies)
    limits = [RateLimits(limit_store, proxies, settings.base_address)] if limit_store else []
    # Requests pass these in order. The parser is behind the limits: what it refuses counts too.
    app = App([OneSlash(settings.base_address), *limits, Cors(), parser])
    answers = Answers(settings, data, cache, max_age=settings.max_age)
    for endpoint in ENDPOINTS:
        resource = Resource(endpoint, served, answers)
        app.add_route(f"{settings.base_address.lower()}/{endpoint.name}", resource)
    app.add_route("/healthz", Health(data, settings))
    described = Answers(settings, data, cache, "the description", max_age=settings.max_age)
    document = Document(described, openapi.document(served, grammar), falcon.MEDIA_JSON)
    app.add_route("/openapi.json", document)
    if settings.download:
        app.add_route(download.PATH, download.Download(data, answers.last_modified))
    Pages(Ask(served), grammar, cache).add_to(app)
    app.set_error_serializer(write_problem)
    app.add_error_handler(Exception, answer_unexpected)
    return app


def write_problem(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError) -> None:
    """Falcon's error serializer: problem+json (RFC 9457; D28), with a number as `status`.

    The text of an error is written where the error is raised.
    """
    title = HTTPStatus(error.status_code).phrase
    resp.content_type = "application/problem+json"
    resp.data = orjson.dumps(
        {
            "type": "about:blank",  # RFC 9457, 4.2.1: the title says it all
            "title": title,
            "status": error.status_code,
            "detail": error.description or f"{title}.",
        }
    )


def answer_unexpected(
    req: falcon.Request, resp: falcon.Response, error: Exception, params: dict[str, Any]
) -> None:
    """Falcon's handler of every exception that is not an HTTPError: a bug in the service."""
    # repr(), because an address may contain line breaks.
    target = f"{req.env['PATH_INFO']}?{req.query_string}"
    log.error("%s %r failed", req.method, target, exc_info=error)
    resp.status = falcon.HTTP_500
    description = "The service failed to answer this request."
    write_problem(req, resp, falcon.HTTPInternalServerError(description=description))

"""Errors on the wire: an error is problem+json (RFC 9457), and tells nothing of the inside."""

import logging
from http import HTTPStatus

import falcon
import orjson

ASKED_AGAIN = "racedata.asked_again"  # in the environ of a request that met a replaced file once

log = logging.getLogger(__name__)


def write_problem(req, resp, error):
    """Falcon's error serializer: `{type, title, status, detail}`, `status` a number as the RFC has it."""
    title = HTTPStatus(error.status_code).phrase
    resp.content_type = "application/problem+json"
    resp.data = orjson.dumps(
        {
            "type": "about:blank",  # the RFC's word for: the title says it all
            "title": title,
            "status": error.status_code,
            "detail": error.description or f"{title}.",
        }
    )


def database_unreadable(req, resp, error, params):
    """Falcon's handler of sqlite3.Error: the file was fine when it was checked, and is not now."""
    log.error("the database cannot be read: %s", error)
    raise unavailable()


def database_replaced(req, resp, error, params):
    """Falcon's handler of Replaced: for the Service to ask again, over the new file; where that fails too, 503."""
    raise unavailable() if ASKED_AGAIN in req.env else error  # why there is no good file, the Service has logged


def unavailable():
    return falcon.HTTPServiceUnavailable(description="The database cannot be read at the moment.", retry_after=10)


def unexpected(req, resp, error, params):
    """Falcon's handler of everything else: a fault of ours."""
    log.error("%s %s failed", req.method, req.relative_uri, exc_info=error)
    raise falcon.HTTPInternalServerError(description="The service failed to answer this request.")

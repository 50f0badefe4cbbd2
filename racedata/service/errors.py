"""Error responses: problem+json (RFC 9457; D28), which reveals no internals of the service.

The text of an error is written where the error is raised.
"""

import logging
from http import HTTPStatus
from typing import Any, NoReturn

import falcon
import orjson

log = logging.getLogger(__name__)


def write_problem(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError) -> None:
    """Falcon's error serializer: `{type, title, status, detail}`, with a number as `status`."""
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


def unexpected(
    req: falcon.Request, resp: falcon.Response, error: Exception, params: dict[str, Any]
) -> NoReturn:
    """Falcon's handler of every exception that is not an HTTPError: a bug in the service."""
    # repr(), because an address may contain line breaks.
    target = f"{req.env['PATH_INFO']}?{req.query_string}"
    log.error("%s %r failed", req.method, target, exc_info=error)
    raise falcon.HTTPInternalServerError(description="The service failed to answer this request.")

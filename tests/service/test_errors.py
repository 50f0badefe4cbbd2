"""racedata.service.errors: the shape of a problem."""

import falcon
import pytest
import webtest

from racedata.service import errors


class Failing:
    def __init__(self, error):
        self.error = error

    def on_get(self, req, resp):
        raise self.error


@pytest.mark.parametrize(
    ("error", "status", "title", "detail"),
    [
        (falcon.HTTPBadRequest(description="limit is 'x'."), 400, "Bad Request", "limit is 'x'."),
        (falcon.HTTPNotFound(), 404, "Not Found", "Not Found."),
        (falcon.HTTPTooManyRequests(description="Wait."), 429, "Too Many Requests", "Wait."),
    ],
)
def test_a_problem_has_type_title_status_and_detail(error, status, title, detail):
    app = falcon.App()
    app.add_route("/", Failing(error))
    app.set_error_serializer(errors.write_problem)
    answer = webtest.TestApp(app).get("/", status=status)
    assert answer.content_type == "application/problem+json"
    assert list(answer.json.items()) == [
        ("type", "about:blank"),
        ("title", title),
        ("status", status),
        ("detail", detail),
    ]

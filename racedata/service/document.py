"""A resource whose text is made once per database, outside the base address.

home.py, interface.py and openapi.py make these texts.
"""

from collections.abc import Sequence

import falcon

from racedata.service.answers import Validators, accepts_gzip, compressed


class Document:
    """A text made once per database: `/`, `/docs` or `/openapi.json`.

    `headers` are additional headers.
    """

    def __init__(
        self,
        validators: Validators,
        text: str,
        content_type: str,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.validators = validators
        self.body = text.encode()
        self.content_type = content_type
        self.headers = headers
        self.compressed = compressed(self.body)

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.set_headers(list(self.headers))
        if self.validators.match(req.env):
            self.validators.send_not_modified(resp)
        else:
            self.validators.send(
                resp, self.compressed if accepts_gzip(req.env) else self.body, self.content_type
            )

    on_head = on_get

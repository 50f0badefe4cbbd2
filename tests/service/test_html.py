"""racedata.service.html: what all HTML pages share."""

import re
from base64 import b64encode
from hashlib import sha256

import pytest


@pytest.mark.parametrize("address", ["/", "/docs"])
def test_a_page_loads_nothing(sample, address):
    html = sample.get(address).text
    assert not re.search(
        r"<script |<link (?!rel=\"icon\" href=\"data:)|<img|src=|url\(|@import", html
    )


@pytest.mark.parametrize("address", ["/", "/docs", "/2023", "/2023/18"])
def test_the_headers_of_a_page_allow_its_own_style_and_script_and_nothing_else(sample, address):
    answer = sample.get(address)
    policy = dict(
        part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; ")
    )
    assert policy.keys() - {"style-src", "script-src", "img-src"} == {
        name for name, value in policy.items() if value == "'none'"
    }
    assert {"default-src", "base-uri", "form-action", "frame-ancestors"} <= policy.keys()
    for tag in ("style", "script"):
        for text in re.findall(f"<{tag}>(.*?)</{tag}>", answer.text, re.S):
            assert (
                policy[f"{tag}-src"]
                == f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
            )
    assert not re.search(r"<[^>]* (style|on\w+)=", answer.text)
    assert answer.headers["Referrer-Policy"] == "no-referrer"

"""racedata.service.sources: what clients see of a source."""

import pytest

from racedata.service.html import with_link
from racedata.service.sources import public_name, public_url


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (
            "https://example.org/<b>?key=1",
            '<a href="https://example.org/&lt;b&gt;">https://example.org/&lt;b&gt;</a>',
        ),
        (
            "HTTP://example.org/data.zip#key=1",
            '<a href="HTTP://example.org/data.zip">HTTP://example.org/data.zip</a>',
        ),
        ("/home/somebody/Downloads/data.zip", "data.zip"),
        ("C:\\Users\\somebody\\dump\\", "dump"),
        ("data/<b>&/", "&lt;b&gt;&amp;"),
    ],
)
def test_the_page_does_not_show_the_folder_or_the_key_of_a_source(name, shown):
    assert with_link(public_name(name), public_url(name)) == shown

"""racedata.licences: the licence that a database with several sources has."""

import pytest

from racedata.licences import licence_of_file

F1DB = ("f1db", "CC BY 4.0")
JOLPICA = ("https://api.jolpi.ca/ergast/f1", "CC BY-NC-SA 4.0")
FREE = ("tracinginsights", "CC0 1.0")
OPENF1 = ("https://api.openf1.org/v1", "not stated by api.openf1.org")


@pytest.mark.parametrize(
    ("sources", "licence"),
    [
        ([F1DB], "CC BY 4.0; name f1db, and say that it was changed"),
        ([FREE], "CC0 1.0"),
        ([FREE, F1DB], "CC BY 4.0; name f1db, and say that it was changed"),
        (
            [F1DB, FREE, ("jolpica", "CC BY-NC-SA 4.0")],
            "CC BY-NC-SA 4.0; name f1db, jolpica, and say that it was changed",
        ),
        ([F1DB, JOLPICA, OPENF1], "not stated, because of https://api.openf1.org/v1"),
        ([("a.zip", None), ("b.zip", "GPL"), F1DB], "not stated, because of a.zip, b.zip"),
        (  # an export of a database with both, and f1db itself
            [("dump.zip", "CC BY 4.0; name x, f1db, and say that it was changed"), F1DB],
            "CC BY 4.0; name x, f1db, and say that it was changed",
        ),
        (  # an export of a database with f1db
            [("dump.zip", "CC BY 4.0; name f1db, and say that it was changed")],
            "CC BY 4.0; name f1db, and say that it was changed",
        ),
    ],
)
def test_the_licence_of_the_whole_follows_from_those_of_its_sources(sources, licence):
    assert licence_of_file(sources) == licence

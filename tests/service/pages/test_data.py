"""racedata.service.pages.data: the page at `/data`, with sources, licences and what is complete."""

from support.answers import client, client_after, words_of
from support.loads import remember


def test_the_page_says_when_a_refresh_last_asked_each_source(several_sources):
    refreshes = {
        "f1db": "2101-01-02T05:06:07Z",
        "https://example.org/f1?key=1": "2026-11-22T05:59:59Z",  # before it was read
        "https://example.org/later?key=1": "2101-01-03T00:00:00Z",
    }
    remember(several_sources, {name: {"refreshedAt": at} for name, at in refreshes.items()})
    html = client(several_sources).get("/data").text
    text = words_of(html)
    assert "f1db Checked for new data Sun 2 Jan 2101, 05:06 UTC . Licence: CC BY 4.0." in text
    assert "https://example.org/f1 Read Sun 22 Nov 2026, 06:00 UTC . Licence" in text
    later = (
        "https://example.org/later Checked for new data Mon 3 Jan 2101, 00:00 UTC . Records: none."
    )
    assert later in text
    assert "key=1" not in html


def test_the_page_and_healthz_do_not_show_the_address_of_a_database_that_is_copied(database):
    noted = {"http://10.0.0.5/racedata.db?key=1": {"refreshedAt": "2101-01-02T05:06:07Z"}}
    remember(database, noted)
    app = client(database)
    text = words_of(app.get("/data").text)
    asked = "the database of another racedata Checked for new data Sun 2 Jan 2101, 05:06 UTC . Rec"
    assert asked in text
    assert "Records: none" not in text
    assert app.get("/healthz").json["sources"][1:] == [
        {"name": "the database of another racedata", "refreshedAt": "2101-01-02T05:06:07Z"}
    ]
    assert "10.0.0.5" not in app.get("/data").text


def test_the_page_and_healthz_say_the_licence_of_the_whole(several_sources):
    for statement, licence in [
        # at first, the other sources have no records
        ("SELECT 1", "CC BY-NC-SA 4.0; name sample, and say that it was changed"),
        (
            "UPDATE origins SET sourceId = 3 WHERE RACE(2023/18)",
            "not stated, because of https://example.org/f1",
        ),
    ]:
        app = client_after(several_sources, statement)
        assert f"Licence of the whole: {licence}. Each" in words_of(app.get("/data").text)
        assert app.get("/healthz").json["licence"] == licence


def test_the_page_has_the_size_of_a_database_that_is_offered(sample_database):
    megabytes = f"{sample_database.stat().st_size / 1e6:.1f} MB"
    assert megabytes in words_of(client(sample_database, download="on").get("/data").text)
    assert " MB" not in words_of(client(sample_database).get("/data").text)


def test_the_page_says_where_to_send_what_settles_a_discrepancy(sample_database):
    asked = "write to the contact at the end of this page. "
    html = client(sample_database, contact="mailto:f1@example.org").get("/data").text
    assert asked in words_of(html)
    assert words_of(html).rstrip().endswith("Contact: f1@example.org")
    assert asked not in words_of(client(sample_database).get("/data").text)

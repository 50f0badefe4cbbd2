"""racedata.service.download: whether the database is offered, its description, and its bytes."""

import pytest
import webtest
from support import spoiling
from support.answers import Description, client, links_of

from racedata.database import OpenFile
from racedata.service.app import create_app
from racedata.service.download import FileBody
from racedata.service.reload import ReloadingApp
from racedata.settings import Settings


@pytest.fixture(scope="module")
def offering(sample_database):
    return client(sample_database, download="on")


def test_a_service_offers_and_names_its_database_only_if_it_is_told_to(sample, offering):
    refused = sample.get("/racedata.db", status=404)
    assert refused.json["detail"] == (
        "This service does not offer its database for download. "
        "Its operator can enable downloads with RACEDATA_DOWNLOAD=on."
    )
    for app, is_offered in ((sample, False), (offering, True)):
        assert ("racedata.db" in links_of(app.get("/data").text)) == is_offered
        assert app.get("/healthz").json.get("download") == ("/racedata.db" if is_offered else None)
        assert ("/racedata.db" in app.get("/openapi.json").json["paths"]) == is_offered


def test_the_address_of_the_download_begins_with_that_of_the_service_if_a_setting_has_it(
    sample_database,
):
    app = client(sample_database, download="on", base_url="https://example.org/f1/ergast/f1")
    assert app.get("/healthz").json["download"] == "https://example.org/f1/racedata.db"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Range": "bytes=0-99"}, 200),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"other"'}, 200),
    ],
)
def test_answers_are_as_described(offering, headers, status):
    answer = offering.get("/racedata.db", headers=headers, status=status)
    Description(offering).hold(answer, "/racedata.db")


@pytest.mark.parametrize("address", ["/racedata.db", "/openapi.json"])
def test_files_count_towards_the_rate_limits_as_one_request_each(
    sample_database, offering, address
):
    app = client(sample_database, download="on", burst_limit="off", sustained_limit="2/day")
    for left in (1, 0):
        answer = app.get(address, status=200)
        assert answer.headers["RateLimit"].startswith(f'"sustained";r={left};')
        Description(offering).hold(answer, address)
    refused = app.get(address, status=429)
    assert refused.json["detail"].startswith("The sustained limit of 2 requests in 86400 s ")
    Description(offering).hold(refused, address)


def test_the_file_is_sent_whole_and_has_its_checksum_as_the_etag(sample_database, offering):
    content = sample_database.read_bytes()
    assert offering.get("/racedata.db").body == content
    head = offering.head("/racedata.db")
    assert head.headers["Content-Length"] == str(len(content))
    assert head.headers["ETag"] == f'"{content[-32:].hex()}"'


def test_a_file_is_read_in_pieces_and_an_error_if_it_has_changed(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(250)) * 1200)
    with path.open("rb") as file:
        body = FileBody(OpenFile(file.fileno()))
        assert b"".join(body) == path.read_bytes()
        pieces = iter(body)
        next(pieces)
        path.write_bytes(b"")
        with pytest.raises(OSError, match="the file has changed"):
            next(pieces)


@pytest.mark.parametrize("spoil", [spoiling.flipped, spoiling.truncated])
def test_a_file_into_which_something_has_written_is_not_sent_until_it_is_good_again(
    database, sample_database, spoil
):
    reloading = ReloadingApp(
        str(database),
        lambda data: create_app(Settings(download=True), data),
    )
    app, good = webtest.TestApp(reloading), sample_database.read_bytes()
    tag = app.get("/racedata.db", status=200).headers["ETag"]
    spoil(database)
    reloading.check()
    refused = app.get("/racedata.db", status=503)
    assert refused.json["detail"] == (
        "Something has written into the database file, so it cannot be sent; try again later."
    )
    assert refused.headers["Retry-After"] == "10" and "ETag" not in refused.headers
    Description(app).hold(refused, "/racedata.db")
    app.get("/racedata.db", headers={"If-None-Match": tag}, status=304)
    database.unlink()
    database.write_bytes(good)
    reloading.check()
    assert app.get("/racedata.db", status=200).body == good


def test_a_file_that_was_replaced_is_sent_as_it_was(database, other_database):
    app, content = client(database, download="on"), database.read_bytes()
    database.unlink()
    database.write_bytes(other_database.read_bytes())
    assert app.get("/racedata.db", status=200).body == content


def test_a_link_leads_to_the_licences_of_the_sources(several_sources):
    app = client(several_sources, download="on")
    assert app.head("/racedata.db").headers["Link"] == '<./data#sources>; rel="license"'
    assert 'id="sources"' in app.get("/data").text

"""racedata.service.download in the application: whether it is offered, and its description."""

import os

import pytest
import webtest
from support.answers import Description, client, links_of, settings_of

from racedata.service.app import create_app
from racedata.service.ratelimit.stores import store_for
from racedata.service.reload import ReloadingApp
from racedata.service.snapshot import Snapshot


@pytest.fixture(scope="module")
def offering(sample_database):
    return client(sample_database, download="on")


def test_a_service_offers_its_database_only_if_it_is_told_to(sample, offering):
    refused = sample.get("/racedata.db", status=404)
    assert refused.json["detail"] == (
        "This service does not offer its database for download. "
        "Its operator can enable downloads with RACEDATA_DOWNLOAD=on."
    )
    offering.get("/racedata.db", status=200)


def test_the_page_the_health_and_the_description_name_the_download_if_it_is_offered(
    sample, offering
):
    for app, is_offered in ((sample, False), (offering, True)):
        assert ("racedata.db" in links_of(app.get("/").text)) == is_offered
        assert app.get("/healthz").json.get("download") == ("/racedata.db" if is_offered else None)
        assert ("/racedata.db" in app.get("/openapi.json").json["paths"]) == is_offered


def test_the_address_of_the_download_begins_with_that_of_the_service_if_a_setting_has_it(
    sample_database,
):
    app = client(sample_database, download="on", base_url="https://example.org/f1/ergast/f1")
    assert app.get("/healthz").json["download"] == "https://example.org/f1/racedata.db"


def test_the_description_and_the_page_have_another_etag_if_the_database_is_offered(
    sample, offering
):
    for address in ("/", "/openapi.json"):
        assert sample.get(address).headers["ETag"] != offering.get(address).headers["ETag"]
    address = "/ergast/f1/2023/18.json"
    assert sample.get(address).headers["ETag"] == offering.get(address).headers["ETag"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Range": "bytes=0-99"}, 206),
        ({"Range": "bytes=x"}, 416),
        ({"If-None-Match": "*"}, 304),
        ({"If-Match": '"other"'}, 412),
    ],
)
def test_answers_are_as_described(offering, headers, status):
    answer = offering.get("/racedata.db", headers=headers, status=status)
    Description(offering).hold(answer, "/racedata.db")


def test_a_refusal_says_how_many_requests_a_download_counts_as(sample_database):
    settings = settings_of(download="on", burst_limit="off", sustained_limit="8/day")
    data = Snapshot.read(sample_database)
    app = webtest.TestApp(create_app(settings, data, store_for(settings)))
    for _ in range(4):
        app.get("/racedata.db", status=200)
    refusal = "The sustained limit of 8 requests in 86400 s has been reached; this request "
    detail = app.get("/racedata.db", status=429).json["detail"]
    assert detail.startswith(f"{refusal}counts as 2 requests, and can succeed after ")
    headers = {"Range": "bytes=0-99"}
    detail = app.get("/racedata.db", headers=headers, status=429).json["detail"]
    assert detail.startswith(f"{refusal}can succeed after ")


def test_the_file_is_as_long_as_the_answer_says(sample_database, offering):
    answer = offering.get("/racedata.db")
    assert answer.body == sample_database.read_bytes()
    assert offering.get("/racedata.db", headers={"Range": "bytes=-3"}).body == answer.body[-3:]


def test_a_file_that_was_overwritten_is_not_sent(database):
    app = client(database, download="on")
    os.utime(database, (0, 0))
    answer = app.get("/racedata.db", status=503)
    assert answer.headers["Retry-After"] == "1"
    Description(app).hold(answer, "/racedata.db")


def test_a_file_that_was_replaced_is_sent_as_it_was(database, other_database):
    app, content = client(database, download="on"), database.read_bytes()
    database.unlink()
    database.write_bytes(other_database.read_bytes())
    assert app.get("/racedata.db", status=200).body == content


def test_the_same_database_in_a_new_file_is_sent_from_there(database):
    reloading = ReloadingApp(
        str(database), lambda data: create_app(settings_of(download="on"), data)
    )
    app, content = webtest.TestApp(reloading), database.read_bytes()
    database.write_bytes(content)  # not with a rename: the file that was read has changed
    os.utime(database, (0, 0))
    app.get("/racedata.db", status=503)
    reloading.check()
    assert app.get("/racedata.db", status=200).body == content


def test_the_licences_of_the_sources_are_in_a_link(several_sources):
    app = client(several_sources, download="on")
    link = app.head("/racedata.db").headers["Link"]
    assert link.startswith("<./#sources>; rel=\"license\"; title*=UTF-8''")
    assert link.endswith("%3B%20CC%20BY%204.0%3B%20not%20stated")
    assert 'id="sources"' in app.get("/").text


def test_ranges_are_parts_of_the_file_and_a_head_has_none(sample_database, offering):
    content = sample_database.read_bytes()
    assert offering.get("/racedata.db").body == content
    assert offering.head("/racedata.db").headers["Content-Length"] == str(len(content))
    for field, part in (
        ("bytes=0-99", content[:100]),
        ("bytes=100-", content[100:]),
        ("bytes=-7", content[-7:]),
        (f"bytes=5-{len(content) * 2}", content[5:]),
        (f"bytes=5-{'9' * 30}", content[5:]),
        (f"bytes=-{'9' * 30}", content),
        ("bytes=0-1,5-6", content),  # several ranges, and other units, are the whole file
        ("lines=1-2", content),
    ):
        answer = offering.get("/racedata.db", headers={"Range": field}, expect_errors=True)
        assert answer.body == part
    for field in ("bytes=9-3", f"bytes={len(content)}-", "bytes=-0"):
        answer = offering.get("/racedata.db", headers={"Range": field}, status=416)
        assert answer.headers["Content-Range"] == f"bytes */{len(content)}"


def test_an_invalid_date_is_not_a_condition(offering):
    for date, status in (("Sat, 01 Jan 2000 00:00:00 GMT", 412), ("yesterday", 200)):
        offering.get("/racedata.db", headers={"If-Unmodified-Since": date}, status=status)

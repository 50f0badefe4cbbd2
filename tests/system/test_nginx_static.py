"""A static copy behind a real nginx with deploy/nginx-static.conf."""

import gzip

import pytest
from support.processes import nginx_with_copy, run_racedata
from support.traffic import get


@pytest.fixture(scope="module")
def copy(sample_database, tmp_path_factory):
    folder = tmp_path_factory.mktemp("static") / "copy"
    ended = run_racedata("export", "site", str(folder), "--database", str(sample_database))
    assert ended.returncode == 0
    return folder


@pytest.fixture(scope="module")
def site(copy):
    with nginx_with_copy(copy.parent, copy) as address:
        yield address


def test_each_file_is_served_whatever_the_parameters(copy, site):
    names = [path for path in copy.rglob("*") if path.is_file() and path.name[0] not in "._"]
    assert len(names) > 2_000
    for path in names:
        response, body = get(site, f"/{path.relative_to(copy)}?limit=2000&offset=0")
        assert (response.status, body) == (200, path.read_bytes()), path


@pytest.mark.parametrize(
    ("address", "file", "type"),
    [
        ("/ergast/f1/2023.json", "ergast/f1/2023.json", "application/json"),
        ("/ergast/f1/2023", "ergast/f1/2023.json", "application/json"),
        ("/ergast/f1/2023/", "ergast/f1/2023.json", "application/json"),
        ("/ergast/f1/2023/18/results", "ergast/f1/2023/18/results.json", "application/json"),
        (
            "/ergast/f1/2023/driverStandings.json",
            "ergast/f1/2023/driverstandings.json",
            "application/json",
        ),
        ("/ergast/f1/2023.csv", "ergast/f1/2023.csv", "text/csv; charset=utf-8"),
        ("/ergast/f1/current.ics", "ergast/f1/current.ics", "text/calendar; charset=utf-8"),
        ("/", "index.html", "text/html; charset=utf-8"),
        ("/2023", "2023.html", "text/html; charset=utf-8"),
        ("/2023/18", "2023/18.html", "text/html; charset=utf-8"),
        ("/current/last", "current/last.html", "text/html; charset=utf-8"),
        ("/docs", "docs.html", "text/html; charset=utf-8"),
        ("/openapi.json", "openapi.json", "application/json"),
        ("/healthz", "healthz", "application/json"),
        ("/README.txt", "README.txt", "text/plain; charset=utf-8"),
        ("/icon.svg", "icon.svg", "image/svg+xml"),
        ("/card.png", "card.png", "image/png"),
        ("/manifest.webmanifest", "manifest.webmanifest", "application/manifest+json"),
    ],
)
def test_addresses_of_the_service_lead_to_files_with_its_types(copy, site, address, file, type):
    response, body = get(site, address)
    assert (response.status, response.headers["Content-Type"]) == (200, type)
    assert body == (copy / file).read_bytes()
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("page", ["/2023", "/2023/18", "/drivers", "/drivers/alonso"])
def test_a_page_with_a_slash_at_the_end_leads_to_the_page_as_in_the_service(site, page):
    response, _ = get(site, f"{page}/?a=b")
    assert (response.status, response.headers["Location"]) == (301, f"{page}?a=b")


def test_answers_are_compressed_and_not_sent_again(copy, site):
    for name in ("2023/18/laps.json", "2023/results.csv", "current.ics"):
        response, body = get(site, f"/ergast/f1/{name}", Accept_Encoding="gzip")
        assert response.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(body) == (copy / "ergast/f1" / name).read_bytes()
        assert len(body) * 3 < (copy / "ergast/f1" / name).stat().st_size
        again, _ = get(site, f"/ergast/f1/{name}", If_None_Match=response.headers["ETag"])
        assert again.status == 304


@pytest.mark.parametrize(
    "address",
    [
        *("/.racedata-site", "/_headers", "/ergast/f1/1949.json", "/2023/99", "/ergast"),
        "/%5Cattacker.example/",  # browsers would read it as another host in a Location
    ],
)
def test_what_the_copy_does_not_have_is_not_found(site, address):
    assert get(site, address)[0].status == 404

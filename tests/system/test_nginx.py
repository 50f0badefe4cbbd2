"""The service behind a real nginx with deploy/nginx.conf, over a unix socket."""

import gzip
import http.client
import json
import random

import pytest
from servers import nginx
from service import service
from traffic import Client, run

ADDRESS = "/ergast/f1/2023/18.json"


@pytest.fixture(scope="module")
def site(sample_database, tmp_path_factory):
    """nginx's (host, port)."""
    folder = tmp_path_factory.mktemp("nginx")
    socket_path = folder / "gunicorn.sock"
    settings = {
        "WEB_CONCURRENCY": "2",
        "RACEDATA_TRUSTED_PROXIES": "unix",
        "RACEDATA_SUSTAINED_LIMIT": "6/day",
        "RACEDATA_BURST_LIMIT": "off",
    }
    with service(sample_database, folder / "log", socket_path, **settings), nginx(folder, socket_path) as address:
        yield address


def ask(site, path=ADDRESS, source="127.0.0.1", **headers):
    connection = http.client.HTTPConnection(*site, source_address=(source, 0), timeout=10)
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_two_clients_have_a_bucket_each(site):
    clients = [Client(ADDRESS, 1, connections=8, source=source) for source in ("127.0.0.2", "127.0.0.3")]
    run(site, *clients)
    assert [client.statuses[200] for client in clients] == [6, 6]


def invented():
    address = ".".join(str(random.randrange(256)) for _ in range(4))
    return random.choice(
        [
            address,
            f"{address}, 198.51.100.7",
            "127.0.0.1, 10.0.0.1",
            "unix",
            f"2001:db8::{random.randrange(9999):x}",
            "".join(chr(random.randrange(33, 127)) for _ in range(30)),
            "," * 50,
            f"for={address}",
            "a" * 900,
        ]
    )


def test_a_client_that_invents_forwarded_addresses_has_still_one_bucket(site):
    statuses = []
    for _ in range(60):
        name = random.choice(["X-Forwarded-For", "X-Real-IP", "Forwarded", "X_Forwarded_For", "X-Client-IP"])
        statuses.append(ask(site, source="127.0.0.4", **{name.replace("-", "_"): invented()})[0].status)
    assert statuses == [200] * 6 + [429] * 54


def test_large_answers_are_compressed_for_who_takes_that(site):
    answer, body = ask(site, "/ergast/f1/2023/18/laps.json", source="127.0.0.5", Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(body))["MRData"]["total"] == "1014"
    plain, body = ask(site, "/ergast/f1/2023/18/laps.json", source="127.0.0.5")
    assert plain.headers["Content-Encoding"] is None
    assert json.loads(body)["MRData"]["total"] == "1014"


def test_the_url_has_the_host_that_the_client_asked_and_the_scheme_that_nginx_has(site):
    _, body = ask(site, source="127.0.0.6", Host="f1.example.org:8080", X_Forwarded_Proto="https", X_Forwarded_Ssl="on")
    assert json.loads(body)["MRData"]["url"] == "http://f1.example.org:8080/ergast/f1/2023/18/races.json"


def test_a_body_that_nobody_needs_is_refused_by_nginx(site):
    connection = http.client.HTTPConnection(*site, timeout=10)
    connection.request("POST", ADDRESS, body=b"x" * 5000)
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize("path", [ADDRESS, "/", "/openapi.json", "/healthz", "/none"])
def test_answers_tell_nothing_that_is_nobodys_business(site, path):
    answer, _ = ask(site, path, source="127.0.0.7")
    assert answer.headers["Server"] == "nginx"
    assert answer.headers.get_all("X-Content-Type-Options") == ["nosniff"]
    assert not {"set-cookie", "x-powered-by", "via"} & {name.lower() for name in answer.headers}


def test_while_the_service_is_down_nginx_answers_a_problem(tmp_path):
    with nginx(tmp_path, tmp_path / "none.sock") as address:
        answer, body = ask(address)
    assert answer.status == 503
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Retry-After"] == "10"
    assert json.loads(body)["detail"] == "The service does not answer at the moment."

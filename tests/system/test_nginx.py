"""The service behind a real nginx with deploy/nginx.conf, over a unix socket."""

import gzip
import http.client
import json
import random
import re
import shutil
import subprocess
import urllib.robotparser

import pytest
from support import PACKAGE, ROOT
from support.hostile import MALFORMED, request, send, statuses
from support.processes import (
    OFF,
    SITE,
    balancer,
    free_port,
    logged,
    make_certificate,
    nginx,
    replaced,
    site_with_nginx,
    until,
)
from support.traffic import ADDRESS, get

RUN = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
LOGS = RUN.partition("\n## Logs\n")[2].partition("\n## ")[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("nginx")


@pytest.fixture(scope="module")
def site(sample_database, folder):
    limits = {"RACEDATA_SUSTAINED_LIMIT": "6/day", "RACEDATA_BURST_LIMIT": "off"}
    with site_with_nginx(sample_database, folder, WEB_CONCURRENCY="2", **limits) as (address, _):
        yield address


def test_a_client_that_invents_forwarded_addresses_still_has_one_bucket(site):
    chance = random.Random(1)

    def invented():
        address = ".".join(str(chance.randrange(256)) for _ in range(4))
        signs = "".join(chr(chance.randrange(33, 127)) for _ in range(30))
        several = (f"{address}, 198.51.100.7", "127.0.0.1, 10.0.0.1", f"for={address}", "," * 50)
        return chance.choice(
            [address, f"2001:db8::{chance.randrange(9999):x}", "unix", signs, "a" * 900, *several]
        )

    names = ["X-Forwarded-For", "X-Real-IP", "Forwarded", "X_Forwarded_For", "X-Client-IP"]
    sent = [request(ADDRESS, f"{chance.choice(names)}: {invented()}") for _ in range(60)]
    answers = [statuses(send(site, content, source="127.0.0.4")) for content in sent]
    assert answers == [[200]] * 6 + [[429]] * 54


URL = '"url":"http://{}/ergast/f1/2023/18/races.json"'


@pytest.mark.parametrize(
    ("target", "headers", "status", "form", "text"),
    [
        # a URL has the host of the request and the scheme of nginx
        (ADDRESS, {"Host": "example.org:81", "X_Forwarded_Proto": "https"}, 200, "json", URL),
        (ADDRESS, {"Host": "example.org:81", "X_Forwarded_Ssl": "on"}, 200, "json", URL),
        (f"http://example.org:81{ADDRESS}", {"Host": "other.example"}, 200, "json", URL),
        (f"HTTP://example.org:81{ADDRESS}", {"Host": "other.example"}, 200, "json", URL),
        # a browser gets a page
        ("/none", {"Accept": "text/html"}, 404, "html", "<h1>"),
        ("/none", {"Accept": "*/*"}, 404, "problem", '"status":404'),
        # what gunicorn refuses does no harm
        ("/healthz", {"Accept": "text/html\x01"}, 200, "json", "sample"),
        ("/healthz", {"Accept": "\x7f"}, 200, "json", "sample"),
        ("/healthz", {"Accept": "x" * 8000}, 200, "json", "sample"),
    ],
)
def test_the_service_gets_the_host_and_the_accept_header(site, target, headers, status, form, text):
    types = dict(json="application/json", html="text/html; charset=utf-8")
    response, body = get(site, target, source="127.0.0.16", **headers)
    assert response.status == status
    assert response.headers["Content-Type"] == types.get(form, "application/problem+json")
    assert text.format("example.org:81") in body.decode()


@pytest.mark.parametrize("trusts", [True, False])
def test_behind_another_proxy_each_client_has_a_bucket_if_nginx_is_told_of_the_proxy(
    sample_database, tmp_path, trusts
):
    lines = "".join(re.findall(r"^    ((?:set_real_ip|real_ip).*\n)", RUN, re.M))
    name, own = "    server_name _;\n", lines.replace("192.0.2.10", "127.0.0.1")
    changes = [(name, f"{name}{own}")] if trusts else []
    limits = {**OFF, "RACEDATA_SUSTAINED_LIMIT": "3/day"}
    with (
        site_with_nginx(sample_database, tmp_path, *changes, **limits) as (site, _),
        balancer(tmp_path, "", [site]) as proxy,
    ):

        def answered(site, source, **headers):
            return [get(site, source=source, **headers)[0].status for _ in range(5)].count(200)

        forged = {"X_Forwarded_For": "198.51.100.7"}
        assert answered(proxy, "127.0.0.2") == 3
        assert answered(proxy, "127.0.0.3") == (3 if trusts else 0)
        assert answered(proxy, "127.0.0.2", **forged) == 0  # the proxy appends the real one
        assert answered(site, "127.0.0.4", **forged) == 3
        # not from the proxy
        assert answered(site, "127.0.0.4", X_Forwarded_For="198.51.100.8") == 0


def test_a_site_with_its_own_certificate_answers_https_with_http_2_and_hsts_and_redirects_http(
    sample_database, tmp_path
):
    make_certificate(tmp_path)
    port = free_port()
    (lines,) = re.findall(r"^    listen 443(?:.*\n)+?    }\n", RUN, re.M)
    (hsts,) = re.findall("^    add_header Strict.*\n", RUN, re.M)
    lines = replaced(
        lines,
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("    listen [::]:443 ssl http2 default_server;\n", ""),
        ("/etc/ssl/certs/racedata.pem", f"{tmp_path}/certificate"),
        ("/etc/ssl/private/racedata.key", f"{tmp_path}/key"),
    )
    change = "    location / {\n", f"{hsts}{lines}    location / {{\n"
    with site_with_nginx(sample_database, tmp_path, change, **OFF) as (site, _):
        response, _ = get(site)
        assert response.status == 301
        assert response.headers["Location"] == f"https://f1.example.org{ADDRESS}"
        for version in ("1.1", "2"):
            head, _, body = subprocess.run(
                f"curl -sSi --http{version} --cacert certificate "
                f"https://localhost:{port}{ADDRESS}".split(),
                cwd=tmp_path, capture_output=True, check=True,
            ).stdout.partition(b"\r\n\r\n")  # fmt: skip
            assert head.startswith(f"HTTP/{version} 200".encode())
            assert b"\nstrict-transport-security: max-age=15768000" in head.lower()
            assert json.loads(body)["MRData"]["url"].startswith(f"https://localhost:{port}/")


def test_the_command_for_http_2_changes_the_lines_of_certbot(tmp_path):
    (tmp_path / "site").write_text(
        "    listen [::]:443 ssl ipv6only=on; # managed by Certbot\n"
        "    listen 443 ssl; # managed by Certbot\n    listen 80;\n"
    )
    (command,) = re.findall("^    sudo (sed -i 's/listen .*) /etc/nginx/\\S+$", RUN, re.M)
    subprocess.run(["sh", "-c", f"{command} site"], cwd=tmp_path, check=True)
    assert (tmp_path / "site").read_text() == (
        "    listen [::]:443 ssl http2 ipv6only=on; # managed by Certbot\n"
        "    listen 443 ssl http2; # managed by Certbot\n    listen 80;\n"
    )


def test_single_clients_are_refused_or_slowed_down_as_the_document_says(sample_database, tmp_path):
    (refusing,) = re.findall(r"^    deny 203.*\n", RUN, re.M)
    (slowing,) = re.findall(r"^    198\.51.* 1;\n", RUN, re.M)
    (naming,) = re.findall(r"^    if \(\$http_user_agent(?:.*\n)+?    }\n", RUN, re.M)
    changes = [
        ("    server_name _;\n", f"    server_name _;\n{refusing}"),
        ("    default 0;\n", f"    default 0;\n{slowing}"),
        ("    location / {\n", f"    location / {{\n{naming}"),
        ("203.0.113.7", "127.0.0.7"),
        ("198.51.100.0/24", "127.0.8.0/24"),
        # a busy machine may take ten seconds for the requests, after which another one is allowed
        ("zone=racedata_slowed:1m rate=6r/m", "zone=racedata_slowed:1m rate=1r/m"),
    ]
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "racedata.db").symlink_to(sample_database)
    with site_with_nginx(sample_database, tmp_path, *changes, **OFF) as (site, _):

        def refusal(**request):
            response, body = get(site, **request)
            assert response.headers["Content-Type"] == "application/problem+json"
            assert json.loads(body)["status"] == response.status
            return response.status

        for path in (ADDRESS, "/racedata.db"):
            assert refusal(path=path, source="127.0.0.7") == 403
            assert get(site, path, source="127.0.0.8")[0].status == 200
        assert refusal(User_Agent="Mozilla (compatible; ExampleBot/2.1)") == 403
        paths = [ADDRESS, "/racedata.db"] * 3
        assert [get(site, path, source="127.0.8.1")[0].status for path in paths] == [200] * 6
        assert (
            refusal(source="127.0.8.1") == refusal(path="/racedata.db", source="127.0.8.1") == 429
        )
        assert get(site, source="127.0.8.2")[0].status == 200
        assert [get(site, source="127.0.0.9")[0].status for _ in range(9)] == [200] * 9


def test_crawlers_are_asked_to_read_only_pages(site):
    response, body = get(site, "/robots.txt")
    assert response.headers["Content-Type"] == "text/plain"
    rules = urllib.robotparser.RobotFileParser()
    rules.parse(body.decode().splitlines())
    for path in ("/", "/docs", "/2023/18", "/openapi.json"):
        assert rules.can_fetch("bot", path)
    for path in (ADDRESS, "/ergast/f1/races", "/racedata.db"):
        assert not rules.can_fetch("bot", path)


def test_the_log_has_the_user_agent_and_the_seconds_and_the_commands_of_the_document_read_it(
    sample_database, tmp_path
):
    agents = ["f1dataR/2.0", 'a"b', "x" * 500, ""]
    with site_with_nginx(sample_database, tmp_path, **OFF) as (site, _):
        for number, agent in enumerate(agents, 1):
            get(site, source="127.0.0.9", User_Agent=agent)
            logged(tmp_path, number)
        get(site, "/docs")
        lines = logged(tmp_path, 5)
    form = r'127\.0\.0\.9 - - \[.*\] "GET \S+ HTTP/1\.1" 200 \d+ "-" "(.*)" \d+\.\d{3}'
    assert [re.fullmatch(form, line)[1] for line in lines[:4]] == [
        *("f1dataR/2.0", "a", "x" * 100, "-")
    ]
    clients, slowest = (
        run_in_shell(command.replace("/var/log/nginx/racedata.log", f"{tmp_path}/access.log"))
        for command in re.findall(r"^    (awk .*)$", RUN, re.M)
    )
    assert clients.split()[:2] == ["4", "127.0.0.9"]
    assert {line.split()[1] for line in slowest.splitlines()} == {ADDRESS, "/docs"}


def test_the_document_shortens_logs_and_leaves_addresses_out(sample_database, tmp_path):
    rotation, addresses = re.findall(r"^    sudo (sed -i .*) (?:/etc/\S+)$", LOGS, re.M)
    shutil.copy("/etc/logrotate.d/nginx", tmp_path / "rotation")
    run_in_shell(f"{rotation} {tmp_path}/rotation")
    assert "\trotate 7\n" in (tmp_path / "rotation").read_text()
    (tmp_path / "site").write_text(SITE)
    run_in_shell(f"{addresses} {tmp_path}/site")
    change = (SITE, (tmp_path / "site").read_text())
    with site_with_nginx(sample_database, tmp_path, change, **OFF) as (site, _):
        get(site)
        (line,) = logged(tmp_path, 1)
    assert line.startswith("- - - [")


def run_in_shell(command):
    return subprocess.run(["sh", "-c", command], capture_output=True, check=True, text=True).stdout


REFUSED_BY_NGINX = {
    **{
        name: (400, MALFORMED[name])
        for name in ("two Hosts", "7,000 bytes above 127", "TLS", "HTTP/2")
    },
    "the address of these answers": (404, request("/problem")),
    **{
        f"the method {method}": (405, request(ADDRESS, method=method)) for method in ("POST", "A_B")
    },
    "TRACE": (405, request(method="TRACE")),
    "a long body": (413, request(ADDRESS, "Content-Length: 5000", method="POST", body=b"x" * 5000)),
    **{name: (414, MALFORMED[name]) for name in ("a path of 1 MB", "a query of 1 MB")},
    **{name: (431, MALFORMED[name]) for name in ("a header of 64 KB", "64 KB of headers")},
    "chunked, but not last": (501, MALFORMED["chunked, but not last"]),
    "HTTP/3.7": (505, MALFORMED["HTTP/3.7"]),
}


@pytest.mark.parametrize("name", REFUSED_BY_NGINX)
def test_errors_of_nginx_itself_are_problem_json_too(site, name):
    status, content = REFUSED_BY_NGINX[name]
    head, _, body = send(site, content).partition(b"\r\n\r\n")
    problem = json.loads(body)
    assert [*problem] == ["type", "title", "status", "detail"]
    assert (statuses(head), problem["status"]) == ([status], status)
    assert b"\r\nContent-Type: application/problem+json\r\n" in head
    assert b"\r\nAccess-Control-Allow-Origin: *\r\n" in head
    assert (b"\r\nAllow: GET, HEAD, OPTIONS\r\n" in head) == (status == 405)


def test_http_1_0_needs_no_host(site):
    head, _, body = send(site, request(version="HTTP/1.0", host=None)).partition(b"\r\n\r\n")
    assert statuses(head) == [200]
    url = "http://{}:{}/ergast/f1/2023/18/races.json".format(*site)
    assert json.loads(body)["MRData"]["url"] == url


def test_nginx_passes_on_each_header_that_the_service_reads():
    source = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    read = {name.replace("_", "-") for name in re.findall('"HTTP_([A-Z_]+)"', source)}
    read |= {name.upper() for name in re.findall(r'get_header\(\s*"([\w-]+)"', source)}
    read.remove("TRANSFER-ENCODING")  # of a connection, not of a request
    assert "IF-NONE-MATCH" in read
    assert read <= {name.upper() for name in re.findall(r"proxy_set_header ([\w-]+)", SITE)}


def test_a_body_is_not_passed_on(site):
    connection = http.client.HTTPConnection(*site, source_address=("127.0.0.10", 0), timeout=10)
    for _ in range(5):  # on one connection: no byte of a body is taken for the next request
        connection.request("GET", ADDRESS, body=b"GET / HTTP/1.1\r\n\r\n")
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())["MRData"]["total"]) == (200, "1")
    connection.close()


def test_the_log_of_nginx_has_only_the_start_of_a_long_request(site, folder):
    def long_requests():
        lines = (folder / "access.log").read_text().splitlines()
        return [line for line in lines if "/?long=" in line]  # of no other test

    for sign in 'a"\\\xff':
        send(site, request("/?long=" + sign * 7000))
    until(lambda: len(long_requests()) == 4)
    assert all('"GET /' in line and len(line) < 450 for line in long_requests())


@pytest.mark.parametrize("path", [ADDRESS, "/", "/openapi.json", "/healthz", "/none"])
def test_an_answer_is_compressed_once_and_not_by_nginx_and_its_headers_reveal_nothing(site, path):
    """A 304 has Vary too."""
    response, body = get(site, path, source="127.0.0.7", Accept_Encoding="gzip")
    compressed = path in ("/", "/openapi.json")
    assert response.headers.get_all("Content-Encoding") == (["gzip"] if compressed else None)
    assert int(response.headers["Content-Length"]) == len(body)
    assert compressed == (body[:2] == b"\x1f\x8b")
    assert compressed or len(body) < 2000
    plain, whole = get(site, path, source="127.0.0.7", Accept_Encoding="gzip;q=0")
    assert plain.headers["Content-Encoding"] is None
    assert whole == (gzip.decompress(body) if compressed else body)
    for each in (response, get(site, path, source="127.0.0.7", If_None_Match="*")[0]):
        assert each.headers["Server"] == "nginx"
        assert each.headers.get_all("X-Content-Type-Options") == ["nosniff"]
        assert not {"set-cookie", "x-powered-by", "via"} & {name.lower() for name in each.headers}
        if compressed:
            assert each.headers.get_all("Vary") == ["Accept-Encoding"]
            assert each.status == (200 if each is response else 304)


def test_nginx_answers_with_a_problem_while_the_service_is_down(tmp_path):
    with nginx(tmp_path) as address:
        response, body = get(address)
    assert response.status == 503
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.headers["Retry-After"] == "10"
    assert json.loads(body)["detail"] == (
        "The service is not responding at the moment; try again later."
    )

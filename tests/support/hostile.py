"""Malformed, truncated, unusual and ambiguous requests, as bytes.

MALFORMED are wrong: a server must refuse them. TRUNCATED end too early. UNUSUAL are odd, and HTTP
allows an answer to some of them. SMUGGLED contain a second request, for two servers that disagree
on where the first one ends.
"""

import re
import socket
from contextlib import suppress
from urllib.parse import quote

from support.processes import Site

RACE = "/ergast/f1/2023/18.json"
LAPS = "/ergast/f1/2023/18/laps.json"


def request(
    target: str = RACE,
    *fields: str,
    method: str = "GET",
    version: str = "HTTP/1.1",
    host: str | None = "Host: localhost",
    body: bytes = b"",
) -> bytes:
    """A request with `Connection: close` and any further header `fields`."""
    lines = [
        f"{method} {target} {version}",
        *([host] if host else []),
        "Connection: close",
        *fields,
        "",
        "",
    ]
    return "\r\n".join(lines).encode("latin-1") + body


def keep_alive(content: bytes) -> bytes:
    """The same request without `Connection: close`."""
    return content.replace(b"Connection: close\r\n", b"")


GOOD = request()
GOOD_KEEP_ALIVE = keep_alive(GOOD)
CHUNKED = "Transfer-Encoding: chunked"

TRUNCATED = {
    "nothing": b"",
    "half a request line": b"GET /ergast/f1/20",
    "headers without an end": b"GET /ergast/f1/2023.json HTTP/1.1\r\nHost: localhost\r\n",
    "less body than announced": request(RACE, "Content-Length: 1000", method="POST", body=b"x"),
}

MALFORMED = {
    # too large
    "a header of 64 KB": request(RACE, "X-Much: " + "a" * 65536),
    "64 KB of headers": request(RACE, *(f"X-{number}: {'a' * 55}" for number in range(1000))),
    "a path of 1 MB": request("/ergast/f1/" + "2" * (1 << 20)),
    "a query of 1 MB": request(LAPS + "?limit=" + "1" * (1 << 20)),
    "a method of 1 MB": request(method="G" * (1 << 20)),
    # wrong paths
    "a path out of the root": request("/../../../../etc/passwd"),
    "a path out of the base address": request("/ergast/f1/../../etc/passwd"),
    "encoded slashes": request("/ergast/f1/..%2f..%2fetc%2fpasswd"),
    "a season encoded twice": request("/ergast/f1/%2532023.json"),
    "NUL": request("/ergast/f1/2023\x00.json"),
    "an encoded NUL": request("/ergast/f1/2023%00.json"),
    "invalid UTF-8": request("/ergast/f1/%ff%fe.json"),
    "an escape without digits": request("/ergast/f1/20%zz"),
    "7,000 bytes above 127": request("/ergast/f1/2023.json?x=" + "\xff" * 7000),
    "a space in the path": request("/ergast/f1/20 23.json"),
    # other protocols
    "binary data": b"\x00\x01\x02\x03\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "HTTP/0.9": b"GET /ergast/f1/2023.json\r\n\r\n",
    "HTTP/3.7": request(version="HTTP/3.7"),
    "no target": b"GET HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "CONNECT": request("localhost:443", method="CONNECT"),
    "a method with signs": request(method="G(T"),
    # contradictory headers
    "no Host in HTTP/1.1": request(host=None),
    "two Hosts": request(RACE, "Host: example.org"),
    "an invalid Host": request(host="Host: local host/<script>"),
    "two lengths": request(RACE, "Content-Length: 5", "Content-Length: 6", body=b"GET /x"),
    "a negative length": request(RACE, "Content-Length: -1"),
    "a length and chunks": request(RACE, "Content-Length: 5", CHUNKED, body=b"0\r\n\r\n"),
    "chunked, but not last": request(RACE, f"{CHUNKED}, identity", body=b"0\r\n\r\n"),
    "chunks in HTTP/1.0": request(RACE, CHUNKED, version="HTTP/1.0", body=b"0\r\n\r\n"),
    "a space before the colon": request(RACE, "X-Space : x"),
    "a folded header": request(RACE, "X-Folded: a", " b"),
    "NUL in a header": request(RACE, "X-Nul: a\x00b"),
    "a lone CR in a header": request(RACE, "X-CR: a\rb: c"),
    # SQL where an address or a query has a value
    **{
        f"SQL in {place}": request(target.format(quote("1' OR 1=1; DROP TABLE races--", safe="")))
        for place, target in {
            "limit": LAPS + "?limit={}",
            "season": "/ergast/f1/{}.json",
            "an id": "/ergast/f1/drivers/{}/results.json",
            "a number": "/ergast/f1/grid/{}/results.json",
        }.items()
    },
}

UNUSUAL = {
    "a header without a colon": request(RACE, "nonsense"),
    "a target of another protocol": request(f"gopher://localhost{RACE}"),
    "an absolute target on another host": request("http://example.org/ergast/f1/2023/18.json"),
    "line ends without CR": GOOD.replace(b"\r\n", b"\n"),
    "empty lines before the request": b"\r\n\r\n" + GOOD,
    "OPTIONS *": request("*", method="OPTIONS"),
    "GET with a body": request(RACE, "Content-Length: 5", body=b"hello"),
    "GET with chunks": request(RACE, CHUNKED, body=b"0\r\n\r\n"),
    "HTTP/1.0 without Host": request(version="HTTP/1.0", host=None),
    "an If-None-Match with everything": request(RACE, 'If-None-Match: "a", W/"b", *, ;, "'),
    "an unknown expectation": request(RACE, "Expect: the unexpected"),
    "a range": request(RACE, "Range: bytes=0-,5-4,a-"),
}


INNER = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LENGTH = f"Content-Length: {len(INNER) + 5}"


def smuggled(*fields: str, before: bytes = b"0\r\n\r\n", after: bytes = b"") -> bytes:
    """A request with a second one inside: its body for one server, the next request for another."""
    return keep_alive(request(RACE, *fields, method="POST", body=before + INNER + after))


SMUGGLED = {
    "a length, then chunks": smuggled(LENGTH, CHUNKED),
    "chunks, then a length": smuggled(
        CHUNKED, "Content-Length: 4", before=b"%x\r\n" % len(INNER), after=b"\r\n0\r\n\r\n"
    ),
    "a length of 0, then another length": smuggled("Content-Length: 0", LENGTH),
    "a list of lengths": smuggled(f"Content-Length: 0, {len(INNER)}", before=b""),
    "a length with an underscore": smuggled(LENGTH.replace("-", "_"), before=b""),
    **{
        f"chunks in disguise: {field!r}": smuggled(LENGTH, field)
        for field in [
            "Transfer-Encoding : chunked",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding:\tchunked",
            "Transfer_Encoding: chunked",
            "Transfer-Encoding: CHUNKED",
            " Transfer-Encoding: chunked",
            "Transfer-Encoding: \x0bchunked",
            "X: y\nTransfer-Encoding: chunked",
            f"{CHUNKED}\r\nTransfer-Encoding: x",
        ]
    },
    "a chunk size with a line end": smuggled(CHUNKED, before=b"0;a\nb\r\n\r\n"),
    "a negative chunk size": smuggled(CHUNKED, before=b"-1\r\n\r\n"),
    "a chunk size of more than 64 bits": smuggled(CHUNKED, before=b"f" * 17 + b"\r\n"),
}


def send(
    address: Site, content: bytes, end: bool = False, seconds: float = 10, source: str = ""
) -> bytes:
    """Sends `content` and returns what comes back until the server closes, or for `seconds`.

    `end` tells the server that nothing more will come. `source` is the address of the client.
    """
    answer = b""
    with socket.create_connection(
        address, timeout=seconds, source_address=(source, 0)
    ) as connection:
        with suppress(ConnectionError):  # the server may refuse before it has read everything
            connection.sendall(content)
            if end:
                connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError, TimeoutError):  # or it waits for more
            while part := connection.recv(65536):
                answer += part
    return answer


def statuses(answer: bytes) -> list[int]:
    """The status of each response in `answer`."""
    return [int(status) for status in re.findall(rb"(?:^|\n|\}|>)HTTP/1\.[01] (\d{3}) ", answer)]

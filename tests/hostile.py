"""Bytes that no decent client sends, by what they are.

REFUSED are wrong. CUT_SHORT are too, and end before they are whole. UNUSUAL are odd, and HTTP lets some of them be
understood. SMUGGLED have a second request in them, for a server that disagrees with the one before it where the first
request ends.
"""

import re
import socket
from contextlib import suppress
from urllib.parse import quote

RACE = "/ergast/f1/2023/18.json"
LAPS = "/ergast/f1/2023/18/laps.json"


def request(target=RACE, *fields, method="GET", version="HTTP/1.1", host="Host: localhost", body=b""):
    lines = [f"{method} {target} {version}", *([host] if host else []), "Connection: close", *fields, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def kept_open(content):
    """The same request on a connection that is kept for the next one."""
    return content.replace(b"Connection: close\r\n", b"")


GOOD = request()
KEPT = kept_open(GOOD)
CHUNKED = "Transfer-Encoding: chunked"
SQL = [
    "1;DROP TABLE races",
    "1' OR '1'='1",
    "1 UNION SELECT sql FROM sqlite_master--",
    "1)--",
    "0x31",
    "1/**/",
    "NULL",
    "-1",
    "randomblob(1e9)",
    '1" OR ""="',
    "' ATTACH DATABASE '/tmp/x' AS x--",
    "%s",
    "{0}",
    "${7*7}",
    "1\x00",
    "1e3",
]

CUT_SHORT = {
    "nothing": b"",
    "half a request line": b"GET /ergast/f1/20",
    "no end of the headers": b"GET /ergast/f1/2023.json HTTP/1.1\r\nHost: localhost\r\n",
    "half a header": b"GET /ergast/f1/2023.json HTTP/1.1\r\nHo",
    "a promise of a body": request(RACE, "Content-Length: 1000", method="POST", body=b"x"),
}

REFUSED = {
    # too much
    "a header of 64 KB": request(RACE, "X-Much: " + "a" * 65536),
    "a name of 64 KB": request(RACE, "a" * 65536 + ": x"),
    "64 KB of headers": request(RACE, *(f"X-{number}: {'a' * 55}" for number in range(1000))),
    "a path of 1 MB": request("/ergast/f1/" + "2" * (1 << 20)),
    "a query of 1 MB": request(LAPS + "?limit=" + "1" * (1 << 20)),
    "a method of 1 MB": request(method="G" * (1 << 20)),
    # other paths
    "a path out of the root": request("/../../../../etc/passwd"),
    "a path out of the base": request("/ergast/f1/../../etc/passwd"),
    "an encoded path out": request("/ergast/f1/%2e%2e/%2e%2e/etc/passwd"),
    "an encoded slash": request("/ergast/f1/..%2f..%2fetc%2fpasswd"),
    "a path encoded twice": request("/ergast/f1/%252e%252e/2023.json"),
    "a season encoded twice": request("/ergast/f1/%2532023.json"),
    "backslashes": request("/ergast/f1/..\\..\\2023.json"),
    "NUL": request("/ergast/f1/2023\x00.json"),
    "an encoded NUL": request("/ergast/f1/2023%00.json"),
    "overlong UTF-8": request("/ergast/f1/%c0%ae%c0%ae/%c0%b2023.json"),
    "no UTF-8": request("/ergast/f1/%ff%fe.json"),
    "half an escape": request("/ergast/f1/2023%2"),
    "no escape": request("/ergast/f1/20%zz"),
    "bytes above 127": request("/ergast/f1/2023\xff.json"),
    "a space in the path": request("/ergast/f1/20 23.json"),
    # other HTTP
    "no HTTP": b"\x00\x01\x02\x03\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "HTTP/0.9": b"GET /ergast/f1/2023.json\r\n\r\n",
    "HTTP/3.7": request(version="HTTP/3.7"),
    "HTTP/1.1 twice": request(version="HTTP/1.1 HTTP/1.1"),
    "a version of words": request(version="FTP/1.1"),
    "no target": b"GET HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a tunnel": request("localhost:443", method="CONNECT"),
    "a method in small letters": request(method="get"),
    "a method of signs": request(method="G(T"),
    # headers that contradict
    "two Hosts": request(RACE, "Host: example.org"),
    "a Host that is none": request(host="Host: local host/<script>"),
    "a Host with a line break": request(host="Host: localhost\rX: y"),
    "two lengths": request(RACE, "Content-Length: 5", "Content-Length: 6", body=b"GET /x"),
    "a length of words": request(RACE, "Content-Length: five"),
    "a length below zero": request(RACE, "Content-Length: -1"),
    "a length with a sign": request(RACE, "Content-Length: +5", body=b"hello"),
    "a length and chunks": request(RACE, "Content-Length: 5", CHUNKED, body=b"0\r\n\r\n"),
    "chunked twice": request(RACE, CHUNKED, CHUNKED, body=b"0\r\n\r\n"),
    "not chunked last": request(RACE, f"{CHUNKED}, identity", body=b"0\r\n\r\n"),
    "chunks of HTTP/1.0": request(RACE, CHUNKED, version="HTTP/1.0", body=b"0\r\n\r\n"),
    "a space before the colon": request(RACE, "X-Space : x"),
    "a header without a name": request(RACE, ": x"),
    "a folded header": request(RACE, "X-Folded: a", " b"),
    "NUL in a header": request(RACE, "X-Nul: a\x00b"),
    "a lone CR in a header": request(RACE, "X-CR: a\rb: c"),
    # in the parameters
    **{
        f"SQL in {place}: {text}": request(target.format(quote(text, safe="")))
        for text in SQL
        for place, target in [
            ("limit", LAPS + "?limit={}"),
            ("offset", LAPS + "?offset={}"),
            ("season", "/ergast/f1/{}.json"),
            ("round", "/ergast/f1/2023/{}.json"),
            ("endpoint", "/ergast/f1/2023/18/{}.json"),
        ]
    },
}

UNUSUAL = {
    "a header without a colon": request(RACE, "nonsense"),
    "no Host": request(host=None),
    "a target of another protocol": request(f"gopher://localhost{RACE}"),
    "an absolute target": request("http://localhost/ergast/f1/2023/18.json"),
    "an absolute target of another host": request("http://example.org/ergast/f1/2023/18.json"),
    "line ends without CR": GOOD.replace(b"\r\n", b"\n"),
    "empty lines before": b"\r\n\r\n" + GOOD,
    "a fragment": request("/ergast/f1/2023/18.json#part"),
    "all servers asked at once": request("*", method="OPTIONS"),
    "a body that nobody asked for": request(RACE, "Content-Length: 5", body=b"hello"),
    "chunks that nobody asked for": request(RACE, CHUNKED, body=b"0\r\n\r\n"),
    "HTTP/1.0 without Host": request(version="HTTP/1.0", host=None),
    "every If-None-Match": request(RACE, 'If-None-Match: "a", W/"b", *, ;, "'),
    "an expectation": request(RACE, "Expect: 100-continue", "Content-Length: 0"),
    "another expectation": request(RACE, "Expect: the unexpected"),
    "an upgrade": request(RACE, "Connection: Upgrade", "Upgrade: h2c"),
    "a range": request(RACE, "Range: bytes=0-,5-4,a-"),
}


INNER = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LENGTH = f"Content-Length: {len(INNER) + 5}"


def smuggled(*fields, before=b"0\r\n\r\n", after=b""):
    """A request with another one in what one reader takes for its body, and the other for what comes next."""
    return kept_open(request(RACE, *fields, method="POST", body=before + INNER + after))


SMUGGLED = {
    "a length, then chunks": smuggled(LENGTH, CHUNKED),
    "chunks, then a length": smuggled(
        CHUNKED, "Content-Length: 4", before=b"%x\r\n" % len(INNER), after=b"\r\n0\r\n\r\n"
    ),
    "no length, then a length": smuggled("Content-Length: 0", LENGTH),
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
    "a chunk with a line end in its size": smuggled(CHUNKED, before=b"0;a\nb\r\n\r\n"),
    "a chunk of a size below zero": smuggled(CHUNKED, before=b"-1\r\n\r\n"),
    "a chunk of more than 64 bits": smuggled(CHUNKED, before=b"f" * 17 + b"\r\n"),
    "a chunk of a size with 0x": smuggled(CHUNKED, before=b"0x0\r\n\r\n"),
}


def send(address, content, cut_short=False, seconds=10):
    """What comes back for some bytes until the server closes, or for so many seconds.

    `cut_short` tells it that no more will come.
    """
    answer = b""
    with socket.create_connection(address, timeout=seconds) as connection:
        with suppress(ConnectionError):  # it did not want to hear all of it
            connection.sendall(content)
            if cut_short:
                connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError, TimeoutError):  # or it waits for more
            while part := connection.recv(65536):
                answer += part
    return answer


def statuses(answer):
    """The status of each answer among some bytes."""
    return [int(status) for status in re.findall(rb"(?:^|\n|\}|>)HTTP/1\.[01] (\d{3}) ", answer)]

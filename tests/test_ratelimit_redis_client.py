"""racedata.ratelimit.redis_client: URLs, and what a connection begins with. The store's tests send it bad replies."""

import pytest
from fake_redis import fake_redis

from racedata.ratelimit.redis_client import RedisClient, UnexpectedReply, encode

COMMAND = encode("EVAL", "return {1}", "0")


def answer(connection, command):
    connection.sendall(b"*1\r\n:1\r\n" if command == COMMAND else b"+OK\r\n")


def call(url, timeout=20):
    client = RedisClient(url, timeout)
    assert client.call(COMMAND, 1) == [1]
    (connection,) = client._idle
    connection.close()


def test_a_command_is_an_array_of_strings():
    assert encode("SET", b"\x00\r\n", "ä") == b"*3\r\n$3\r\nSET\r\n$3\r\n\x00\r\n\r\n$2\r\n\xc3\xa4\r\n"


@pytest.mark.parametrize(
    ("credentials", "database", "expected"),
    [
        ("", "", []),
        ("", "/", []),
        ("", "/0", []),
        ("", "/3", [encode("SELECT", "3")]),
        (":secret@", "", [encode("AUTH", "secret")]),
        ("jane:p%40ss%2F@", "/12", [encode("AUTH", "jane", "p@ss/"), encode("SELECT", "12")]),
    ],
)
def test_a_connection_begins_with_the_password_and_the_database_of_the_url(credentials, database, expected):
    with fake_redis(answer) as fake:
        call(fake.url.replace("//", f"//{credentials}") + database)
    assert fake.commands == [*expected, COMMAND]


@pytest.mark.parametrize(("query", "expected"), [("", []), ("?db=0", []), ("?db=3", [encode("SELECT", "3")])])
def test_a_redis_on_a_unix_socket_has_its_database_in_the_query(tmp_path, query, expected):
    with fake_redis(answer, unix_path=tmp_path / "a redis.sock") as fake:
        call(fake.url.replace(" ", "%20") + query)
    assert fake.commands == [*expected, COMMAND]


def test_a_refused_password_is_an_unexpected_reply():
    with fake_redis(lambda connection, command: connection.sendall(b"-WRONGPASS no\r\n")) as fake:
        client = RedisClient(fake.url.replace("//", "//:wrong@"), 20)
        with pytest.raises(UnexpectedReply, match="WRONGPASS no"):
            client.call(COMMAND, 1)
    assert fake.commands == [encode("AUTH", "wrong")]


def test_a_server_that_accepts_connections_and_never_answers_is_a_timeout():
    with fake_redis(lambda connection, command: None) as fake, pytest.raises(TimeoutError):
        RedisClient(fake.url, timeout=0.05).call(COMMAND, 1)


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis:///0",
        "redis://host:port",
        "redis://host:70000",
        "redis://host/zero",
        "redis://host/0/1",
        "redis://host/0?ssl_cert_reqs=none",
        "redis://host#0",
        "redis://[::1",
        "redis://" + "a" * 70,
        "redis://:pa#ss@host",
        "unix://",
        "unix://host/path",
        "unix:///path?db=zero",
        "unix:///path?socket_timeout=1",
    ],
)
def test_other_urls_are_refused(url):
    with pytest.raises(ValueError, match=r"^expected redis://"):
        RedisClient(url, 1)

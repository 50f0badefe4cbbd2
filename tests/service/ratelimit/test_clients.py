"""racedata.service.ratelimit.clients: which IP address a request comes from, and which addresses
share a bucket.
"""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from racedata.service.ratelimit.clients import TrustedProxies, bucket_key
from racedata.settings import proxies

PROXIES = TrustedProxies(proxies("127.0.0.1, 10.0.0.0/8,unix,fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),  # not a proxy: not trusted
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
        # the client wrote the left one itself
        ("127.0.0.1", "192.0.2.1, 198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "192.0.2.1, 198.51.100.1 ,10.1.2.3", "198.51.100.1"),
        ("127.0.0.1", "10.1.2.3,10.1.2.4", "10.1.2.3"),
        ("127.0.0.1", "198.51.100.1, garbage", "127.0.0.1"),
        ("127.0.0.1", "garbage, 10.1.2.3", "10.1.2.3"),
        ("127.0.0.1", ",,,", "127.0.0.1"),
        ("127.0.0.1", "unknown", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
        ("127.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
        ("127.0.0.1", "2001:db8::1", "2001:db8::1"),
        ("127.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"),
        ("::ffff:127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("::ffff:10.1.1.1", "198.51.100.1", "198.51.100.1"),
        ("fd00::5", "198.51.100.1", "198.51.100.1"),
        ("", "198.51.100.1", "198.51.100.1"),  # a unix socket
    ],
)
def test_the_client_is_the_first_address_from_the_right_that_is_not_a_trusted_proxy(
    peer, forwarded_for, client
):
    assert PROXIES.client(peer, forwarded_for) == ip_address(client)


def test_an_untrusted_unix_socket_is_one_client():
    trusted = TrustedProxies(proxies("127.0.0.1"))
    assert trusted.client("", "198.51.100.1") is trusted.client("", "") is None
    assert bucket_key(None) == b"unix"


def test_an_ipv6_client_is_its_64():
    same, other = (
        ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:2::1%eth0"],
        "2001:db8:1:3::1",
    )
    assert len({bucket_key(ip_address(text)) for text in same}) == 1
    assert bucket_key(ip_address(other)) != bucket_key(ip_address(same[0]))
    assert bucket_key(ip_address("198.51.100.1")) != bucket_key(ip_address("198.51.100.2"))
    # its four bytes are the ASCII text "unix"
    assert bucket_key(ip_address("117.110.105.120")) != bucket_key(None)


@given(st.text())
def test_no_header_raises_an_error_and_garbage_makes_no_new_client(text):
    client = PROXIES.client("127.0.0.1", text)
    if not any(character.isdigit() or character == ":" for character in text):
        assert client == ip_address("127.0.0.1")

"""Finds the client that sent a request, even behind trusted proxies, and its bucket's key.

It knows addresses, but neither limits nor requests.
"""

import ipaddress
from collections.abc import Sequence
from typing import NamedTuple

IP = ipaddress.IPv4Address | ipaddress.IPv6Address


class TrustedProxies(NamedTuple):
    """Proxies whose X-Forwarded-For is trusted."""

    networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network | None]  # None: a unix socket

    def trusts(self, hop: IP | None) -> bool:
        """Whether `hop` is a trusted proxy; None is a unix socket, which has no IP address."""
        if hop is None:
            return None in self.networks
        return any(hop in network for network in self.networks if network)

    def client(self, peer: str, forwarded_for: str) -> IP | None:
        """The client's IP address, or None for a unix socket.

        `peer` is the other end of the connection, `forwarded_for` the X-Forwarded-For header. A
        proxy appends its own peer to that header, so the header is read from the right: the client
        is the first hop that is not a trusted proxy. An entry that is not an IP address ends the
        search; then the client is the proxy that sent it.
        """
        client = parse_ip(peer)
        entries = forwarded_for.split(",")
        while self.trusts(client) and entries:
            hop = parse_ip(entries.pop())
            if hop is None:
                break
            client = hop
        return client


def parse_ip(text: str) -> IP | None:
    """The IP address in `text`, with or without a port; None if it has none.

    An IPv4 address mapped into IPv6 becomes IPv4.
    """
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        return None
    return ip.ipv4_mapped or ip if isinstance(ip, ipaddress.IPv6Address) else ip


def bucket_key(client: IP | None) -> bytes:
    """The key of a client's bucket: for IPv6 its /64, because one host can use all of it."""
    if client is None:
        return b"unix"
    return b"6" + client.packed[:8] if client.version == 6 else b"4" + client.packed

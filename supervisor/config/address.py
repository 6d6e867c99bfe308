"""Addresses as people write them. PURE."""

from __future__ import annotations


def split_address(listen: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[ipv6]:port`. Raises `ValueError` with what is wrong."""
    host, colon, port = listen.rpartition(":")
    if not colon or not host:
        raise ValueError("an address is host:port")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        raise ValueError("the port is a number from 0 to 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("an IPv6 address needs brackets: [::1]:3001")
    if not host or any(not ("!" <= character <= "~") for character in host):
        raise ValueError("the host is a name or an address")
    return host, int(port)


def base_url(host: str, port: int) -> str:
    """Return how a browser on this machine reaches a daemon that listens there: by the loopback address if it can."""
    name = host.strip("[]").lower()
    if name in ("", "*", "0.0.0.0", "localhost"):
        name = "127.0.0.1"
    elif name == "::":
        name = "::1"
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"

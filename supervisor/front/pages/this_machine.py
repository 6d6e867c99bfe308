"""Whether a request comes from this machine: only then it may order something of a server, or log in and out there.

`Host` says nothing of that, as any program can write it. The address of the socket does, unless a proxy on this machine
passes on what others sent; proxies say so in a header (RFC 7239, and the older ones). Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any, Final

from actors.errors import SupervisorError

FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"})


class FromElsewhere(SupervisorError):
    """Orders are taken from this machine only."""

    kind = "refused"


def check_from_here(scope: Any) -> None:
    """Raise `FromElsewhere` for a request whose ASGI scope says that it comes from another machine."""
    client, server = scope.get("client"), scope.get("server")
    if not (client and _is_here(client[0], server[0] if server else None)) or _forwarded(scope["headers"]):
        raise FromElsewhere(
            "orders are taken from the machine only that the daemon runs on, and not through a proxy: give this one "
            "there with the command `mcpvisor` (in a container: docker exec)"
        )


def _is_here(client: str, server: str | None) -> bool:
    try:
        address = ipaddress.ip_address(client.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback) or client == server


def _forwarded(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name in FORWARDED for name, _ in headers)

"""Where a request comes from, behind proxies that the configuration names (`trusted_proxies`). Pure.

Each proxy adds at the end of `X-Forwarded-For`, or of `Forwarded` (RFC 7239 5.2), whom it was reached from. Read from
there, the first that is no proxy of ours is who sent the request; what stands before it, anybody may have written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from supervisor.config.address import is_loopback
from supervisor.front.edge.fields import Fields

FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"})
"""What proxies write into what they send on (RFC 7239, RFC 9110 7.6.3, and the older ones)."""
MAX_HOPS: Final = 32
_MAPPED: Final = "::ffff:"
_LIST: Final = b"x-forwarded-for"
_FORWARDED: Final = b"forwarded"
_FOR: Final = re.compile(
    r"""(?:^|;)\s*for\s*=\s*("?)(\[[0-9A-Fa-f:.]+\]|[0-9.]+)(?::[0-9]+)?\1\s*(?=;|$)""", re.IGNORECASE
)


class TrustedProxies:
    """The proxies of one daemon: addresses and networks."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = tuple(map(ip_network, networks))

    def trusts(self, address: str) -> bool:
        """Say whether somebody at an address is believed."""
        try:
            ip = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        return any(ip in network for network in self._networks)

    def may_connect(self, address: str) -> bool:
        """Say whether somebody may connect where only proxies do: they encrypt, and this machine need not."""
        return self.trusts(address) or is_loopback(address.removeprefix(_MAPPED))

    def sender(self, peer: str, fields: Fields) -> str | None:
        """Return where a request comes from that a peer sent on; None: from that peer itself."""
        if not self.trusts(peer):
            return None
        address = None
        for address in _hops(fields):
            if not self.trusts(address):
                break
        return address


def is_from_here(address: str, own: str, names: Iterable[bytes]) -> bool:
    """Say whether a request comes from a program of this machine itself, as far as proxies say that they are one.

    A machine that reaches itself by an address of its `own`, which a request came to, sends from that as well. `names`
    are those of the lines of its head.
    """
    return (is_loopback(address.removeprefix(_MAPPED)) or address == own) and FORWARDED.isdisjoint(names)


def _hops(fields: Fields) -> Iterator[str]:
    """Yield the addresses that proxies added, the last one first, up to one that is none."""
    line = fields.lines.get(_LIST)
    name = _LIST if line is not None else _FORWARDED
    line = fields.lines.get(name) if line is None else line
    if line is None or name in fields.doubled:
        return
    for part in reversed(line.decode("ascii", "replace").split(",")[-MAX_HOPS:]):
        written = _FOR.search(part.strip()) if name == _FORWARDED else None
        text = part.strip() if name == _LIST else "" if written is None else written[2]
        try:
            yield str(ip_address(text.strip("[]")))
        except ValueError:
            return

"""What may not be said of the instances and replicas of a server. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.limits import SCHEMES, is_address
from supervisor.config.syntax.units import Kind

Fault = tuple[KeyPath, str, str]
"""Where it stands, what is wrong, and what to do about it."""


def instance_faults(own: Mapping[str, Any], kind: Kind) -> Iterator[Fault]:
    """Yield what is wrong with the keys of an entry, whose texts are expanded."""
    replicas = own.get("replicas", ())
    if kind == "stdio":
        if replicas:
            yield ("replicas",), "are addresses, and this server is a process", 'write "instances"'
        return
    if own.get("instances", 1) != 1:
        yield ("instances",), "are processes, and this server has an address", 'write "replicas"'
    known = [own.get("url")]
    for number, address in enumerate(replicas):
        if not is_address(address, kind):
            schemes = " or ".join(f"{scheme}://" for scheme in SCHEMES[kind])
            yield ("replicas", number), "is not an address for this type of server", f"it begins with {schemes}"
        elif address in known:
            yield ("replicas", number), "is there twice", "remove one of them"
        known.append(address)

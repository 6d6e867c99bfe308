"""What may not be said of a server: what makes the daemon a server of itself, and odd instances and replicas. Pure.

An entry that leads to the daemon itself belongs into the file of a client.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from supervisor.config.syntax.address import leads_to
from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.limits import SCHEMES, is_address
from supervisor.config.syntax.units import Kind
from supervisor.config.syntax.values import Remark

_BRIDGE: Final = re.compile(r"""(?:(?:^|[\s/"'])mcpvisor(?:@\S+)?|\s-m\s+supervisor)["']?\s+stdio\b""")
"""In the words of a command, whatever starts it: a shell, uvx, pipx, Python."""


def faults_of_itself(own: Mapping[str, Any], listen: str) -> Iterator[Remark]:
    """Yield what of an entry, expanded, leads to the daemon that listens at `listen`: key, message, hint."""
    ways = list(_ways(own, listen))
    for below in ways:
        what = f"this is the address of this daemon itself ({listen})"
        yield below, what, "remove the entry; it belongs into the file of a client only"
    if not ways and _is_bridge(own, listen):
        what = "`mcpvisor stdio` would be a client of this daemon itself"
        yield ("command",), what, "remove the entry, or say which other daemon is meant: --url URL"


def _ways(own: Mapping[str, Any], listen: str) -> Iterator[KeyPath]:
    """Yield which keys lead there: the address of the entry, or one that a bridge of others is started with."""
    if own.get("url") and leads_to(own["url"], listen, doors_only=False):
        yield ("url",)
    for at, text in enumerate(own.get("args", ())):
        if leads_to(text, listen, doors_only=True):
            yield ("args", at)


def _is_bridge(own: Mapping[str, Any], listen: str) -> bool:
    """Say whether `mcpvisor stdio` is started as a client of us.

    Without `--url` it is: who else is meant, nobody can say before it runs.
    """
    words = [str(own.get("command", "")), *map(str, own.get("args", ()))]
    if _BRIDGE.search(" ".join(words)) is None:
        return False
    given = [word.removeprefix("--url=") for word in words if word.startswith("--url=")]
    given += [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--url"]
    given += [own["env"]["MCPVISOR_URL"]] if "MCPVISOR_URL" in own.get("env", {}) else []
    urls = (url if "://" in url else f"http://{url}" for url in given[:1])
    return not given or any(leads_to(url, listen, doors_only=False) for url in urls)


def instance_faults(own: Mapping[str, Any], kind: Kind) -> Iterator[Remark]:
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

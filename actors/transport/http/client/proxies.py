"""Which proxy of the environment stands before an address. Pure.

- The variables are those that curl reads, and names in `NO_PROXY` mean what they mean to httpx2: a name excepts itself
  and what is below it, `.name` and `*.name` only what is below; networks may be given, ports, and `*` for everything.
- This machine is asked directly, whatever the variables say: no proxy can reach it for us.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

import httpx2
import msgspec


class EnvironmentProxy(msgspec.Struct, frozen=True, kw_only=True):
    """A proxy, and the name of the variable that names it."""

    variable: str
    url: str


def proxy_for(url: httpx2.URL, environment: Mapping[str, str]) -> EnvironmentProxy | None:
    """Return the proxy by which an address is reached; None for one that is asked directly."""
    _, excepted = _variable("no", environment)
    if is_loopback(url.host) or any(_fits(entry.strip().lower(), url) for entry in excepted.split(",")):
        return None
    for scheme in (url.scheme, "all"):
        variable, address = _variable(scheme, environment)
        if address:
            return EnvironmentProxy(variable=variable, url=address if "://" in address else f"http://{address}")
    return None


def _variable(scheme: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the name of the variable that counts, and its value: one in small letters counts, even if it is empty."""
    small = f"{scheme}_proxy"
    name = small if small in environment else small.upper()
    return name, environment.get(name, "")


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine by its name alone (RFC 6761 6.3)."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _fits(entry: str, url: httpx2.URL) -> bool:
    """Say whether an entry of `NO_PROXY` excepts an address; one that cannot be read excepts nothing."""
    if entry in ("", "*"):
        return entry == "*"
    try:
        return ip_address(url.host) in ip_network(entry.strip("[]").replace("]/", "/"), strict=False)
    except ValueError:
        return _names(entry, url)


def _names(entry: str, url: httpx2.URL) -> bool:
    scheme, exact, place = entry.rpartition("://")
    try:
        parts = urlsplit(f"//{place}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.path or scheme not in ("", "all", url.scheme) or port not in (None, url.port):
        return False
    below = name.startswith((".", "*."))
    name = name.removeprefix("*.").removeprefix(".")
    return (url.host == name and not below) or (bool(name) and not exact and url.host.endswith(f".{name}"))

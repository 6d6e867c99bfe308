"""The object `fleet` of a configuration: with which other daemons this one works, and by which engine. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from actors.errors import ConfigError
from actors.transport.redaction import Confidential
from supervisor.config.syntax.address import split_address
from supervisor.config.syntax.values import Problem, read_members

FLEET: Final = "fleet"
SCHEMES: Final = ("redis", "rediss", "unix")
ANY_ADDRESS: Final = ("0.0.0.0", "::")
MIN_KEY_CHARS: Final = 32
MAX_PORT: Final = 65_535
NODE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
PREFIX: Final = re.compile(r"[A-Za-z0-9:._-]{1,64}")


class FleetSettings(Confidential, Struct, frozen=True, kw_only=True):
    """Other daemons behind the same address; see `docs/guides/fleet.md`."""

    engine: str = ""
    """Address of a Valkey or Redis server that all nodes use: `rediss://USER:PASSWORD@HOST:PORT`, without encryption
    `redis://`, or `unix:///PATH`. Variables are filled in. Empty: this daemon is alone."""
    node: str = ""
    """The name of this node, unlike that of every other one. Empty: the name of the machine. Variables are filled in,
    so that all nodes can have one file."""
    listen: str = "127.0.0.1:0"
    """Where other nodes reach this one, `host:port`: an address of this machine that they can reach. It is always
    encrypted. Variables are filled in."""
    keys: Annotated[tuple[str, ...], Meta(max_length=8)] = ()
    """Secrets of the fleet, the newest first, with 32 characters each at least; all nodes have the same. Variables are
    filled in."""
    prefix: str = "mcpvisor:"
    """How the names of all keys in the engine begin; another fleet on the same server has another prefix."""
    lease_s: Annotated[float, Meta(ge=2, le=600)] = 20.0
    """How long a node owns its servers without hearing from the engine. When it ends, others take them over."""
    max_commands_per_s: Annotated[float, Meta(ge=10, le=100_000)] = 1000.0
    """How often this node asks the engine in a second. What is more waits, for five seconds at most, and has
    `EngineAway` then; what keeps the lease never waits."""
    configuration: Literal["own", "published"] = "own"
    """`own`: this node reads its own file alone. `published`: what that file does not have, servers and settings, it
    takes from what was published last (`mcpvisor fleet publish`)."""
    nodes: Annotated[int, Meta(ge=1, le=64)] = 1
    """How many nodes `mcpvisor run` starts on this machine, behind its one address; see `docs/guides/cores.md`. They
    are called as `node` says, with `-1` and so on behind it. Without an `engine` they have one of their own."""


def read_fleet(written: Mapping[str, Any], expand: Callable[[str], str], problem: Problem) -> dict[str, Any]:
    """Return the members of the object. `problem` takes keys from `supervisor` inwards."""
    own = read_members(FleetSettings, written, (FLEET,), problem)
    try:
        own |= {name: expand(own[name]) for name in ("engine", "node", "listen") if name in own}
        if "keys" in own:
            own["keys"] = [expand(key) for key in own["keys"]]
    except ConfigError as error:
        problem((FLEET,), error.message, error.hint)
        return own
    nodes = own.get("nodes", FleetSettings().nodes)
    if own.get("engine") or nodes > 1:
        _check(own, nodes, problem)
    return own


def _check(own: Mapping[str, Any], nodes: int, problem: Problem) -> None:
    engine, keys = own.get("engine", ""), own.get("keys", ())
    if engine and urlsplit(engine).scheme not in SCHEMES:
        problem((FLEET, "engine"), "is no address of an engine", 'for example "rediss://valkey.example.com:6379"')
    if engine and not keys:
        hint = 'write "keys": ["${MCPVISOR_FLEET_KEY}"], and give all nodes the same: openssl rand -hex 32'
        problem((FLEET, "keys"), "is missing", hint)
    for at, key in enumerate(keys):
        if len(key) < MIN_KEY_CHARS:
            problem((FLEET, "keys", at), f"has less than {MIN_KEY_CHARS} characters", "openssl rand -hex 32")
    if own.get("node") and not NODE_NAME.fullmatch(own["node"]):
        problem((FLEET, "node"), "is no name of a node", "letters, digits, dots, dashes, underscores, 63 at most")
    if not PREFIX.fullmatch(own.get("prefix", FleetSettings().prefix)):
        problem((FLEET, "prefix"), "is no prefix", "letters, digits, colons, dots, dashes, underscores, 64 at most")
    try:
        host, port = split_address(own.get("listen", FleetSettings().listen))
    except ValueError as error:
        problem((FLEET, "listen"), str(error), 'for example "10.0.0.1:3002"')
    else:
        if host in ANY_ADDRESS:
            hint = "name the address of this machine by which the other nodes reach it"
            problem((FLEET, "listen"), "is no address that others can reach", hint)
        if port and port + nodes - 1 > MAX_PORT:
            problem(
                (FLEET, "listen"), "has no port left for each node", "they have as many in a row; 0 takes free ones"
            )

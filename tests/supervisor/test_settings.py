"""Every setting reaches what uses it: the configuration says nothing that is without effect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import msgspec
import pytest

from actors.instances.settings import InstanceSettings
from actors.life.policy import RestartPolicy
from actors.server import ServerSettings
from actors.transport.http.remote import HttpLimits
from actors.transport.stdio.command import Launch, ProcessLimits
from supervisor.config import ServerConfig, Settings
from supervisor.config.call_rules import CallRules
from supervisor.front.websocket import FAREWELL_S, WebSocketSettings
from supervisor.metatools.discovery import DiscoverySettings
from tests.sources import nodes

ROOT = Path(__file__).parents[2]

BY_NAME: dict[type[msgspec.Struct], tuple[type[msgspec.Struct], ...]] = {
    Settings: (DiscoverySettings,),
    ServerConfig: (ServerSettings, RestartPolicy, ProcessLimits, HttpLimits, InstanceSettings),
}
"""What takes over by name whatever has the same name there."""

OWN = {
    ServerSettings: {"installer", "known_to_hold", "terms"},
    HttpLimits: {"settle_s", "stop_s"},
    ProcessLimits: {"reap_s"},
}
"""What is not taken over: it is computed, or no setting."""

VIA = {"drain_s": "drain_within_s", "slug": "path_name", "tools": "tool_rules"}
"""Settings that are read through a property."""

RULES = re.compile(r"\b_?rules(_of\(.+\))?$")
"""How an expression ends that gives those of the calls of a server."""

DERIVED = (*BY_NAME[Settings], *BY_NAME[ServerConfig], Launch, WebSocketSettings)


@cache
def read() -> frozenset[str]:
    """Every attribute that is read somewhere, but by what describes the configuration."""
    return frozenset(node.attr for node in reads())


@cache
def reads() -> tuple[ast.Attribute, ...]:
    found = chain.from_iterable(map(nodes, files()))
    return tuple(node for node in found if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load))


@cache
def read_from(*owners: str) -> frozenset[str]:
    """Every attribute that is read of something that is called so."""
    return frozenset(node.attr for node in reads() if ast.unparse(node.value).split(".")[-1] in owners)


def files() -> Iterator[Path]:
    for package in ("actors", "supervisor"):
        for file in sorted((ROOT / package).rglob("*.py")):
            if file.parent.name != "reference":
                yield file


def taken(struct: type[msgspec.Struct]) -> set[str]:
    """The settings that something takes over by name."""
    return {name for part in BY_NAME[struct] for name in part.__struct_fields__ if name not in OWN.get(part, ())}


def unread(struct: type[msgspec.Struct], *owners: str) -> set[str]:
    """The settings that nothing takes over by name, or reads of something that is called so."""
    found = taken(struct) | read_from(*owners)
    return {name for name in struct.__struct_fields__ if VIA.get(name, name) not in found}


def test_every_setting_of_the_daemon_reaches_what_uses_it() -> None:
    assert unread(Settings, "settings", "_settings", "configured") == set()


def test_every_setting_of_a_server_reaches_what_uses_it() -> None:
    assert unread(ServerConfig, "config", "server") == set()


def test_every_rule_of_the_calls_of_a_server_is_followed() -> None:
    own = nodes(ROOT / "supervisor/config/call_rules.py")
    found = {node.attr for node in own if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"}
    found |= {node.attr for node in reads() if RULES.search(ast.unparse(node.value))}
    assert set(CallRules.__struct_fields__) - found == set()


@pytest.mark.parametrize("struct", DERIVED)
def test_every_part_of_what_is_derived_is_used(struct: type[msgspec.Struct]) -> None:
    assert set(struct.__struct_fields__) - read() == set()


@pytest.mark.parametrize(("struct", "part"), [(struct, part) for struct, parts in BY_NAME.items() for part in parts])
def test_what_is_taken_over_by_name_can_be_set(struct: type[msgspec.Struct], part: type[msgspec.Struct]) -> None:
    """A misspelt field would keep its default without a word."""
    missing = set(part.__struct_fields__) - set(struct.__struct_fields__)
    assert missing == OWN.get(part, set())


@pytest.mark.parametrize(("struct", "part"), [(struct, part) for struct, parts in BY_NAME.items() for part in parts])
def test_what_is_taken_over_by_name_has_the_same_default(
    struct: type[msgspec.Struct], part: type[msgspec.Struct]
) -> None:
    configured = struct(name="x") if struct is ServerConfig else struct()
    for name in set(part.__struct_fields__) - OWN.get(part, set()):
        assert getattr(part(), name) == getattr(configured, name), name


def test_what_has_another_name_in_the_front_arrives_there() -> None:
    settings = Settings(max_sockets_queue=3, websocket_stall_s=4.0, max_in_flight=7, drain_s=8.0, shutdown_s=100.0)
    socket = WebSocketSettings.of(settings)
    assert (socket.max_queued_messages, socket.stall_s) == (3, 4.0)
    assert socket.max_in_flight == WebSocketSettings().max_in_flight
    assert 8.0 < socket.drain_s < settings.drain_within_s + FAREWELL_S

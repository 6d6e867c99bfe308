"""Every fact becomes events with the fields of their kinds, and nothing of what a server says makes them large."""

from __future__ import annotations

from typing import Any

import msgspec

from actors.catalogue.diff import Change
from actors.catalogue.offer import Offer, Tool
from actors.facts import (
    ApprovalsWanted,
    BreakerReset,
    BreakerTripped,
    ConfigurationLoaded,
    Fact,
    Logged,
    PromptsChange,
    ResourcesChange,
    ToolsChange,
    ToolsCounted,
)
from actors.life.breakers import BreakerScope, OpenBreaker
from actors.protocol.wire.json import quoted
from supervisor.events.event import DaemonEvent, encode, size_of
from supervisor.events.kinds import (
    KINDS,
    TYPES,
    EventData,
    ToolsDiscovered,
)
from supervisor.events.translation import MAX_NAMES, MAX_TOOLS, Translator
from tests.fakes.told_events import SmallWorld

SCHEMA = msgspec.Raw(b'{"type":\n"object"}')


def offer(count: int = 2, schema: msgspec.Raw = SCHEMA, description: str = "Does it.") -> Offer:
    tools = tuple(
        Tool(name=f"t{number}", described=quoted(description), input_schema=schema) for number in range(count)
    )
    return Offer(tools=tools, token_counts={tool.name: 10 for tool in tools}, tokens_exact=True)


def told(fact: Fact, offers: Offer | None = None) -> list[EventData]:
    world = SmallWorld(a=offers) if offers is not None else SmallWorld()
    return [*Translator(world).events(Logged(time=5.0, fact=fact))]


COUNTED = ToolsCounted(launch="a")


def tools_changed(**change: Any) -> Fact:
    return ToolsChange(launch="a", change=Change(**change))


def written(data: EventData) -> dict[str, Any]:
    event = DaemonEvent(number=3, time=5.0, data=data, revision=2)
    text = encode(event, "1-3")
    assert b"\n" not in text
    envelope: dict[str, Any] = msgspec.json.decode(text)
    assert (envelope["id"], envelope["revision"], envelope["type"]) == ("1-3", 2, TYPES[type(data)])
    assert envelope["timestamp"] == "1970-01-01T00:00:05.000Z"
    inner: dict[str, Any] = envelope["data"]
    return inner


def test_an_event_of_many_large_tools_stays_small() -> None:
    large = msgspec.Raw(b'{"a":"%s"}' % (b"x" * 100_000))
    (data,) = told(COUNTED, offer(3000, large, "y" * 100_000))
    assert isinstance(data, ToolsDiscovered)
    assert (data.tool_count, len(data.tools)) == (3000, MAX_TOOLS)
    assert [bool(tool.input_schema) for tool in data.tools[:4]] == [True, True, False, False]
    assert size_of(data) < 1_500_000
    (changed,) = told(tools_changed(added=tuple(f"t{number}" for number in range(5000))))
    assert len(written(changed)["added_tools"]) == MAX_NAMES


def test_changes_of_lists_have_names() -> None:
    (tools,) = told(tools_changed(added=("n",), removed=("o",), renamed={"o": "n"}), offer())
    assert (
        written(tools).items()
        >= {
            "added_tools": ["n"],
            "removed_tools": ["o"],
            "renamed_tools": {"o": "n"},
            "total_tools": 2,
        }.items()
    )
    for fact, name in ((ResourcesChange, "resources"), (PromptsChange, "prompts")):
        (data,) = told(fact(launch="a", change=Change(changed=("x",))))
        assert TYPES[type(data)] == f"mcp.{name}.updated"
        assert written(data)["changed"] == ["x"]
    (waiting,) = told(ApprovalsWanted(launch="a", waiting=1, held=True, tools={"t": "new"}))
    assert written(waiting).items() >= {"waiting": 1, "held": True, "tools": {"t": "new"}}.items()


def test_a_configuration_tells_of_each_server() -> None:
    loaded, *servers = told(
        ConfigurationLoaded(added=("n",), removed=("o",), replaced=("r",), adjusted=("j",), settings=("env",))
    )
    assert written(loaded) == {
        "config_hash": "abc",
        "server_count": 3,
        "teams_count": 1,
        "change_detected": True,
        "added": ["n"],
        "removed": ["o"],
        "changed": ["r", "j"],
        "settings": ["env"],
    }
    assert [(TYPES[type(each)], written(each)["server_slug"], written(each).get("replaced")) for each in servers] == [
        ("mcp.server.registered", "n", None),
        ("mcp.server.updated", "r", True),
        ("mcp.server.updated", "j", False),
        ("mcp.server.unregistered", "o", None),
    ]


def test_what_has_no_kind_is_not_told() -> None:
    assert told(Fact()) == []
    assert len(TYPES) == len(KINDS), "a struct is one kind"


def breaker(scope: BreakerScope, tool: str = "") -> OpenBreaker:
    return OpenBreaker(breaker=scope, tool=tool, until=9.0, seconds=30.0, failures=3, reason="x" * 1000)


def test_breakers_say_what_is_left_alone_for_how_long_and_why() -> None:
    (opened,) = told(BreakerTripped(launch="a", breaker=breaker("tool", "t"), reason="x" * 1000))
    assert TYPES[type(opened)] == "mcp.breaker.opened"
    assert written(opened).items() >= {"breaker": "tool", "tool": "t", "reason": "x" * 500, "seconds": 30.0}.items()
    (closed,) = told(BreakerReset(launch="a", breaker=breaker("server")))
    assert TYPES[type(closed)] == "mcp.breaker.closed"
    assert written(closed).keys() & {"breaker", "tool", "seconds"} == {"breaker"}

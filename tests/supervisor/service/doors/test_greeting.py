"""What a client of one server is told when it connects, where the server's answer is odd or not known any more."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.catalogue.offer import Offer, Tool
from actors.protocol import tasks
from actors.protocol.agreement.versions import META_SERVER_INFO, Era
from supervisor.service.doors import one_server
from tests.fakes.json_texts import raw


def test_what_an_earlier_version_kept_is_enough_for_a_greeting() -> None:
    info = raw({"name": "a", "version": "1"})
    offer = Offer(instructions="Use it.", server_info=info, capabilities=raw({"tools": {}}))
    told = json.loads(one_server.initialize_result("s", offer, "2025-06-18"))
    assert told == {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "a", "version": "1"},
        "instructions": "Use it.",
    }


@pytest.mark.parametrize(
    ("info", "told"),
    [
        ({}, {"name": "s", "version": "2025-11-25"}),
        ({"name": "a", "title": "A"}, {"name": "a", "version": "2025-11-25", "title": "A"}),
        ([], {"name": "s", "version": "2025-11-25"}),
    ],
)
def test_a_server_that_does_not_say_who_it_is_is_called_by_its_entry(info: Any, told: Any) -> None:
    offer = Offer(server_info=raw(info), version="2025-11-25")
    assert json.loads(one_server.initialize_result("s", offer, "2025-11-25"))["serverInfo"] == told
    discovered = json.loads(one_server.discover_result("s", offer, "2026-07-28"))
    assert discovered["_meta"] == {META_SERVER_INFO: told}
    assert "instructions" not in discovered


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"tools": {"listChanged": True}, "x": 1}, {"tools": {"listChanged": True}, "x": 1}),
        ({"tasks": {}, "resources": {"subscribe": True}}, {"resources": {"subscribe": True}}),
        ({"resources": 5, "extensions": None}, {"resources": 5, "extensions": None}),
        ({"extensions": {"io.modelcontextprotocol/tasks": {}, "x/y": {}}}, {"extensions": {"x/y": {}}}),
        ([], {}),
        ({}, {}),
    ],
)
def test_only_what_gets_through_is_announced(declared: Any, told: Any) -> None:
    assert json.loads(bytes(one_server.capabilities(Offer(capabilities=raw(declared)), "2025-11-25"))) == told


EVENTS = "io.modelcontextprotocol/events"
CHANGING = {"listChanged": True}


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    ("declared", "told"),
    [
        (
            {"extensions": {EVENTS: CHANGING, "x/y": {}}},
            {"events": CHANGING, "extensions": {EVENTS: CHANGING, "x/y": {}}},
        ),
        ({"tools": {}, "events": {}}, {"tools": {}, "events": {}, "extensions": {EVENTS: {}}}),
        ({"events": {}, "extensions": {EVENTS: CHANGING}}, {"events": CHANGING, "extensions": {EVENTS: CHANGING}}),
        ({"events": None, "extensions": {EVENTS: None}}, {"events": None, "extensions": {EVENTS: None}}),
    ],
)
def test_events_are_announced_where_the_extension_has_them_and_where_its_sketch_had(
    version: str, declared: Any, told: Any
) -> None:
    assert json.loads(bytes(one_server.capabilities(Offer(capabilities=raw(declared)), version))) == told


OF_CALLS: dict[str, Any] = {"requests": {"tools": {"call": {}}, "x": {}}}
TASKS = {"list": {}, "cancel": {}, **OF_CALLS}
KEPT: dict[str, Any] = {"cancel": {}, "requests": {"tools": {"call": {}}}}


@pytest.mark.parametrize(
    ("era", "version", "declared", "told"),
    [
        ("legacy", "2025-11-25", {"tasks": TASKS}, {"tasks": KEPT}),
        ("legacy", "2025-11-25", {"tasks": OF_CALLS}, {"tasks": {"requests": {"tools": {"call": {}}}}}),
        ("legacy", "2025-06-18", {"tasks": TASKS}, {}),
        ("legacy", "2026-07-28", {"tasks": TASKS}, {}),
        ("modern", "2025-11-25", {"tasks": TASKS, "extensions": {tasks.EXTENSION: {}}}, {"extensions": {}}),
        (
            "modern",
            "2026-07-28",
            {"extensions": {tasks.EXTENSION: {"x": 1}}},
            {"extensions": {tasks.EXTENSION: {"x": 1}}},
        ),
        ("modern", "2026-07-28", {"extensions": {tasks.EXTENSION: None}}, {"extensions": {}}),
    ],
)
def test_tasks_are_announced_to_clients_of_the_same_kind(era: Era, version: str, declared: Any, told: Any) -> None:
    offer = Offer(capabilities=raw(declared), era=era)
    assert json.loads(bytes(one_server.capabilities(offer, version))) == told


def test_what_is_null_in_an_answer_is_not_told() -> None:
    answer = raw({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": None, "instructions": None})
    told = json.loads(one_server.initialize_result("s", Offer(answer=answer, version="2025-06-18"), "2025-11-25"))
    assert told == {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "serverInfo": {"name": "s", "version": "2025-06-18"},
    }


def test_capabilities_that_all_get_through_stay_the_bytes_they_were() -> None:
    declared = msgspec.Raw(b'{ "tools" : {} , "n": 1.0 }')
    assert one_server.capabilities(Offer(capabilities=declared), "2025-11-25") is declared


# Lists of what is known -----------------------------------------------------------------------------------------------


def offer_of(count: int, size: int = 10, **more: Any) -> Offer:
    rest = {"inputSchema": {"type": "object"}, "x": "y" * size}
    tools = [Tool(name=f"t{n}", definition=raw({"name": f"t{n}", **rest})) for n in range(count)]
    return Offer(tools=tuple(tools), capabilities=raw({"tools": {}}), **more)


@pytest.mark.parametrize(("count", "size", "pages"), [(0, 10, 1), (500, 10, 1), (1234, 10, 3), (20, 200_000, 7)])
def test_pages_have_everything_once_as_it_was(count: int, size: int, pages: int) -> None:
    offer = offer_of(count, size)
    listed, params, seen = [], msgspec.Raw(b""), 0
    while True:
        position = one_server.position_of(params)
        assert position is not None
        page = json.loads(one_server.page(offer, "tools", position, "2025-11-25"))
        listed += page["tools"]
        seen += 1
        if "nextCursor" not in page:
            break
        params = raw({"cursor": page["nextCursor"], "_meta": {}})
    assert listed == [json.loads(bytes(tool.definition)) for tool in offer.tools]
    assert seen == pages


def test_a_definition_is_told_as_its_clients_era_has_it() -> None:
    (tool,) = offer_of(1).tools
    written = {**json.loads(bytes(tool.definition)), "execution": {"taskSupport": "forbidden"}}
    offer = Offer(tools=(Tool(name="t0", definition=raw(written)),))
    versions = ("2025-11-25", "2026-07-28")
    listed = [json.loads(one_server.page(offer, "tools", 0, version))["tools"] for version in versions]
    assert listed == [[written], [json.loads(bytes(tool.definition))]]


OTHERS = ["", "5", "known:5", *(f"mcpvisor:known:{rest}" for rest in ("", "-1", "1 ", "123456789")), 5]


@pytest.mark.parametrize("cursor", OTHERS)
def test_the_cursor_of_a_server_is_the_servers_matter(cursor: Any) -> None:
    assert one_server.position_of(raw({"cursor": cursor})) is None


def test_a_cursor_that_is_null_is_none() -> None:
    assert one_server.position_of(raw({"cursor": None})) == 0


def test_a_list_is_whole_if_nothing_of_it_was_left_out() -> None:
    assert one_server.is_whole(offer_of(1), "tools")
    assert not one_server.is_whole(offer_of(1, problems=("one tool is broken",)), "tools")
    assert not one_server.is_whole(offer_of(1, partial=True), "tools")
    assert not one_server.is_whole(offer_of(1), "prompts")

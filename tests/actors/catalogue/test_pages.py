"""Pages of lists: one bad entry costs that entry, and nothing that was known is lost to a list cut short."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from actors.catalogue.documents import parameters_of
from actors.catalogue.lists import MAX_PROBLEMS, Draft, ListPage, ListRoom, read_page
from actors.catalogue.offer import Offer, Prompt, Resource, Tool
from actors.protocol.listing import Listed, ListLimits, PageArrived
from tests.fakes.pages import AGREEMENT, ID, LIMITS, ROOM, line, offer_of, page

DEEP = b'{"name":"bad","inputSchema":' + b'{"a":' * 1600 + b"1" + b"}" * 1600 + b"}"
GOOD = b'{"name":"good"}'


def broken(value: bytes) -> bytes:
    return b'{"name":"bad","inputSchema":{"default":' + value + b"}}"


def read(message: bytes, id_: bytes | None = ID) -> ListPage:
    return read_page(PageArrived("tools", message, id_), ROOM, Draft(LIMITS, None).known)


@pytest.mark.case("L11", "L16")
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        pytest.param(DEEP, "nested more than 128 levels", id="1,600 levels"),
        pytest.param(broken(b"1" * 5000), "not JSON that we can read", id="an integer of 5,000 digits"),
        pytest.param(broken(b"NaN"), "not JSON that we can read", id="NaN"),
        pytest.param(broken(b"-Infinity"), "not JSON that we can read", id="infinity"),
        pytest.param(broken(b"1e999"), "not JSON that we can read", id="a number out of range"),
        pytest.param(broken(b'"\\ud800"'), "not JSON that we can read", id="half a surrogate pair"),
        pytest.param(broken(b'"\xff\xfe"'), "not JSON that we can read", id="no UTF-8"),
        pytest.param(broken(b'"\x01"'), "not JSON that we can read", id="a control character"),
        pytest.param(
            broken(b"[" + b"1," * 200_001 + b"1]"), "more than 200000 brackets and commas", id="too many values"
        ),
        pytest.param(broken(b'"' + b"x" * 1_100_000 + b'"'), "over 1048576 bytes", id="too large"),
        pytest.param(b'{"name":"bad" "x":1}', "not JSON that we can read", id="no JSON"),
    ],
)
def test_a_tool_that_nobody_can_read_is_named_and_costs_no_other(bad: bytes, reason: str) -> None:
    offer = offer_of({"name": "before"}, bad, GOOD)
    assert [tool.name for tool in offer.tools] == ["before", "good"]
    (problem,) = offer.problems
    assert problem.startswith("tool 2 ('bad') left out: ")
    assert reason in problem
    assert not offer.partial


def test_commas_and_brackets_in_texts_count_for_nothing() -> None:
    text = {"name": "a", "inputSchema": {"description": "{[,]}" * 50_000}}
    assert [tool.name for tool in offer_of(text).tools] == ["a"]


def test_a_list_that_is_null_is_one_without_entries() -> None:
    for result in (b'{"tools":null}', b'{ "x":1, "tools": null , "y":[2]}'):
        found = read(b'{"jsonrpc":"2.0","id":"s1-1","result":' + result + b"}")
        assert (found.failure, found.entries, found.cut) == ("", {}, "")


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        (b'{"jsonrpc":"2.0","id":"s1-1","error":{"code":-32603,"message":"no"}}', "-32603 no"),
        (b'{"jsonrpc":"2.0","id":"s1-1","error":7}', "an error without a proper code"),
        (b'{"jsonrpc":"2.0","id":"s1-1","error":"' + b"x" * 100_000 + b'"}', "65536 bytes"),
        (b'{"jsonrpc":"2.0","id":"s1-1","result":7}', "malformed"),
        (b'{"jsonrpc":"2.0","id":"s1-1","result":{}}', "malformed"),
        (b'{"jsonrpc":"2.0","id":"s1-1","result":{"tools":{}}}', "malformed"),
        (b'{"jsonrpc":"2.0","id":"s1-1","result":{"tools":[1}}}', "malformed"),
        (b'{"jsonrpc":"2.0","id":"s1-1","result":{"tools":[]', "malformed"),
        (b'{"jsonrpc":"1.0","id":"s1-1","result":{"tools":[]}}', "malformed"),
        (b'{"id":"s1-1","result":{"tools":[]}}', "malformed"),
        (line("tools", [GOOD], b',"nextCursor":"\\ud800"'), ""),
    ],
)
def test_an_answer_that_is_no_page_is_a_failure_with_a_reason(message: bytes, failure: str) -> None:
    found = read(message)
    assert failure in found.failure
    assert bool(found.failure) is bool(failure)
    assert found.cursor is None


def test_a_message_that_was_over_its_limit_fails_with_the_reason_it_comes_with() -> None:
    why = "it answered with 2000 bytes, over its limit of 1000 bytes (max_line_bytes)"
    found = read_page(PageArrived("tools", b"", None, why), ROOM, Draft(LIMITS, None).known)
    assert (found.failure, found.entries, found.foreign) == (why, {}, False)


@pytest.mark.case("L02")
def test_a_cursor_is_passed_on_and_one_that_cannot_be_used_cuts_the_list() -> None:
    assert page(GOOD, more=b',"nextCursor":"x y"').cursor == "x y"
    assert page(GOOD, more=b',"nextCursor":""').cursor == ""
    for value in (b"0", b"false", b"null", b"{}", b'["x"]'):
        assert page(GOOD, more=b',"nextCursor":' + value) == page(GOOD)
    for value in (b'"\\ud800"', b'"' + b"x" * 100_000 + b'"'):
        assert "cursor" in page(GOOD, more=b',"nextCursor":' + value).cut


def test_a_message_that_only_looks_like_the_answer_is_foreign() -> None:
    assert read(b'{"jsonrpc":"2.0","id":"other","result":{"id":"s1-1","tools":[]}}').foreign
    assert read(b'{"jsonrpc":"2.0","id":"s1-1","method":"ping"}').foreign
    assert not read(b'{"jsonrpc":"2.0","id":"other","result":{"tools":[]}}', None).foreign


@pytest.mark.case("L04")
def test_the_limit_of_entries_holds_within_a_page_and_over_pages() -> None:
    limits = ListLimits(max_entries=5)
    draft = Draft(limits, None)
    first = page(*({"name": f"t{n}"} for n in range(3)), room=draft.room("tools"))
    assert draft.add("tools", first)
    second = page(*({"name": f"t{n}"} for n in range(3, 9)), room=draft.room("tools"), more=b',"nextCursor":"x"')
    assert draft.add("tools", second)
    assert (second.cut, second.cursor) == ("5 entries", None)
    assert draft.count("tools") == 5


def test_exactly_as_many_entries_as_allowed_are_not_cut() -> None:
    assert not page(*({"name": f"t{n}"} for n in range(5)), room=ListRoom(5, 10_000)).cut


def test_the_limit_of_bytes_holds() -> None:
    found = page(*({"name": f"t{n}", "text": "x" * 1000} for n in range(50)), room=ListRoom(100, 10_000))
    assert 0 < found.size <= 10_000
    assert "for their size" in found.cut


@pytest.mark.case("L04")
def test_a_page_of_two_hundred_thousand_entries_is_cut() -> None:
    found = page(*[b"1"] * 200_000)
    assert found.cut
    assert len(found.broken) <= 10_000


def test_a_page_with_only_bad_entries_brings_something_new_but_only_once() -> None:
    draft = Draft(LIMITS, None)
    assert draft.add("tools", page(DEEP))
    assert not draft.add("tools", page(DEEP))
    assert not draft.add("tools", page())
    assert len(draft.offer(AGREEMENT, Listed()).problems) == 1


def test_a_page_that_repeats_what_was_there_brings_nothing_new() -> None:
    draft = Draft(LIMITS, None)
    assert draft.add("tools", page(GOOD, {"name": "a", "x": 1}))
    assert not draft.add("tools", page(GOOD))
    assert not draft.add("tools", page({"name": "a", "x": 2}))
    offer = draft.offer(AGREEMENT, Listed())
    assert [tool.name for tool in offer.tools] == ["good", "a"]
    assert offer.problems == ("tools/list: 'a' is there twice; the first one counts",)


def test_problems_are_bounded() -> None:
    assert len(offer_of(*range(1000)).problems) == MAX_PROBLEMS


def test_problems_are_bounded_over_pages_too() -> None:
    draft = Draft(LIMITS, None)
    for start in (0, MAX_PROBLEMS // 2):
        draft.add("tools", page(*range(start, start + MAX_PROBLEMS)))
    problems = draft.offer(AGREEMENT, Listed()).problems
    assert len(problems) == len(set(problems)) == MAX_PROBLEMS


@pytest.mark.parametrize(
    ("announced", "tools", "told"),
    [
        ({}, [GOOD], {"tools": {}}),
        ([], [GOOD], {"tools": {}}),
        ({"tools": None, "logging": {"a": 1}}, [GOOD], {"tools": {}, "logging": {"a": 1}}),
        ({"tools": {"listChanged": True}}, [GOOD], {"tools": {"listChanged": True}}),
        ({"logging": {}}, [], {"logging": {}}),
    ],
)
def test_tools_that_are_not_announced_are_a_capability(announced: Any, tools: list[Any], told: Any) -> None:
    draft = Draft(LIMITS, None)
    draft.add("tools", page(*tools))
    agreement = replace(AGREEMENT, capabilities=msgspec.Raw(json.dumps(announced).encode()))
    assert json.loads(bytes(draft.offer(agreement, Listed()).capabilities)) == told


def test_lists_whose_pages_have_no_end_are_known() -> None:
    assert offer_of(GOOD, listed=Listed(circular=frozenset({"tools", "prompts"}))).circular == ("prompts", "tools")


CUT = Listed(missing=frozenset({"tools"}))
KNOWN = Offer(
    tools=(Tool(name="t", definition=msgspec.Raw(b'{"name":"t"}')),),
    resources=(Resource(uri="x:1"),),
    templates=(Resource(uri="x:{a}", template=True),),
    prompts=(Prompt(name="p"),),
)


def test_what_could_not_be_listed_is_kept_from_before() -> None:
    kept = offer_of(known=KNOWN, listed=Listed(missing=frozenset({"tools", "templates"})))
    assert (len(kept.tools), len(kept.resources), len(kept.templates), len(kept.prompts)) == (1, 0, 1, 0)
    assert kept.partial


def test_a_list_that_was_cut_adds_to_what_was_known_and_removes_nothing() -> None:
    offer = offer_of({"name": "new"}, {"name": "t", "description": "changed"}, known=KNOWN, listed=CUT)
    assert [(tool.name, tool.description) for tool in offer.tools] == [("new", ""), ("t", "changed")]
    more = offer_of({"name": "new"}, known=offer, listed=CUT)
    assert [tool.name for tool in more.tools] == ["new", "t"]


def test_a_server_that_invents_names_at_each_cut_list_does_not_make_the_catalogue_grow() -> None:
    known: Offer | None = None
    limits = ListLimits(max_entries=5)
    for turn in range(4):
        names = [{"name": f"t{turn}{number}"} for number in range(4)]
        known = offer_of(*names, known=known, listed=CUT, limits=limits)
    assert known is not None
    assert [tool.name for tool in known.tools][:4] == ["t30", "t31", "t32", "t33"]
    assert len(known.tools) == 5


def test_what_did_not_change_stays_the_same_object() -> None:
    tools: list[dict[str, Any]] = [{"name": "a"}, {"name": "b"}, {"name": "c"}]
    before = offer_of(*tools)
    assert offer_of(*tools, known=before).tools is before.tools
    tools[1]["description"] = "changed"
    after = offer_of(*tools, known=before)
    assert [new is old for new, old in zip(after.tools, before.tools, strict=True)] == [True, False, True]


def test_what_a_tool_costs_in_memory_beside_its_definition_is_bounded() -> None:
    long = "x" * 10_000
    schema = {"properties": {f"{number}{long}": {} for number in range(90)}, "required": [long, *map(str, range(9999))]}
    (tool,) = offer_of({"name": "a", "inputSchema": schema}).tools
    assert len(parameters_of(tool)) == 60
    assert max(len(name) for name, _ in parameters_of(tool)) == 256
    assert tool.required == tuple(map(str, range(256)))
    plain = json.dumps({"name": "a", "inputSchema": {"type": "object"}}, separators=(",", ":")).encode()
    (same,) = offer_of(plain).tools
    assert bytes(same.input_schema) == b'{"type":"object"}'


def test_an_entry_that_is_fitted_is_no_second_one_of_its_name() -> None:
    entry = {"name": "mail", "description": "d", "delivery": ["push"], "inputSchema": {}, "payloadSchema": {}}
    other = {**entry, "description": "another one"}
    listed = page(entry, entry, other, kind="events")
    assert list(listed.entries) == ["mail"]
    (problem,) = listed.broken.values()
    assert problem == "event type 2 ('mail') left out: a second event type of the name 'mail'"

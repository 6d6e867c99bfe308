"""Which door a client gets, from what is known of it and what the daemon has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.clients.doors import (
    BY_EFFECT,
    EXECUTE,
    WORDS,
    Door,
    Offered,
    address,
    choose,
    door_at,
    door_of,
    keeps_loaded,
)
from supervisor.config.clients import Fact, Facts, Limit
from supervisor.service.doors import addresses
from tests.supervisor.config.test_client_table import BY_NAME

MANY = Offered(tools=612, tokens=81_000, servers=("git", "time"), meta_tokens=350)
FIVE = Offered(tools=612, tokens=81_000, servers=(), meta_tokens=350, by_effect=True)
FEW = Offered(tools=3, tokens=240, servers=(), meta_tokens=350)
URL = "http://127.0.0.1:3001/mcp"

MANY_TOOLS: dict[str, tuple[Door, Door]] = {
    "claude-code": ("four", "by-effect"),
    "codex": ("all", "all"),
    "cursor": ("all", "all"),
    "qwen": ("four", "by-effect"),
    "vscode": ("all", "all"),
    "vscode-insiders": ("all", "all"),
    "warp": ("all", "all"),
}
"""What a client gets with many tools, of a daemon without and with the door for execution by effect."""


@pytest.mark.parametrize("name", BY_NAME)
def test_each_client_gets_the_door_that_its_facts_make_the_best(name: str) -> None:
    facts = BY_NAME[name].facts
    doors = (choose(facts, MANY).door, choose(facts, FIVE).door)
    assert doors == MANY_TOOLS.get(name, ("four", "four"))


@pytest.mark.parametrize(
    ("name", "offered", "line"),
    [
        ("codex", None, "the four tools at /mcp, as no daemon says how many tools there are"),
        (
            "codex",
            MANY,
            "all tools at /mcp/all, as it searches the 612 itself, and would have to search for the four first",
        ),
        (
            "claude-code",
            MANY,
            "the four tools at /mcp, as it keeps these loaded, and would have to search the 612 others",
        ),
        (
            "claude-code",
            FIVE,
            "the five tools at /mcp?execute=by-effect, as it keeps these loaded, and would have to search the 612 "
            "others, and runs reads side by side",
        ),
        (
            "copilot",
            FEW,
            "all tools at /mcp/all, as all 3 cost 240 tokens, the four 350, and it searches many itself",
        ),
        (
            "zed",
            MANY,
            "the four tools at /mcp, as it would send its model all 612 and 81,000 tokens with every request",
        ),
        ("zed", FEW, "the four tools at /mcp, as it would send its model all 3 and 240 tokens with every request"),
        ("windsurf", MANY, "the four tools at /mcp, as it takes 100 tools at most, and there are 612"),
        (
            "windsurf",
            FEW,
            "the four tools at /mcp, as it takes 100 tools, more are left out, and nothing says what 3 cost its model",
        ),
        ("junie", MANY, "the four tools at /mcp, as nothing says what it does with 612 tools"),
    ],
)
def test_a_choice_says_why(name: str, offered: Offered | None, line: str) -> None:
    assert str(choose(BY_NAME[name].facts, offered)) == line


def test_tools_that_are_not_counted_or_not_there_are_no_reason_to_show_them_all() -> None:
    copilot = BY_NAME["copilot"].facts
    assert choose(copilot, Offered(tools=3, tokens=None, servers=(), meta_tokens=350)).door == "four"
    assert choose(BY_NAME["codex"].facts, Offered(tools=0, tokens=0, servers=(), meta_tokens=350)).door == "four"


def test_a_client_that_searches_itself_gets_no_more_than_it_takes() -> None:
    limited = Facts(searches=Fact("always", "s"), limit=Fact(Limit(100, "left out"), "s"))
    assert choose(limited, MANY).door == "four"
    grouped = Facts(searches=Fact("always", "s"), limit=Fact(Limit(100, "grouped"), "s"))
    assert choose(grouped, MANY).door == "all"


def told(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.builds(Fact, values, st.just("s"))


all_facts = st.builds(
    Facts,
    searches=told(st.sampled_from(["always", "many", "never"])),
    heeds_hint=told(st.booleans()),
    keeps_loaded=told(st.just({"alwaysLoad": True})),
    side_by_side=told(st.sampled_from(["all", "read-only", "none"])),
    heeds_changes=told(st.booleans()),
    limit=told(st.builds(Limit, st.integers(1, 900), st.sampled_from(["left out", "warned of", "grouped"]))),
)
counts = st.integers(1, 1000)


@given(all_facts, counts, counts, counts, counts, st.booleans())
def test_with_more_tools_nobody_comes_to_see_them_all(
    facts: Facts, tools: int, more: int, tokens: int, more_tokens: int, by_effect: bool
) -> None:
    now = Offered(tools=tools, tokens=tokens, servers=(), meta_tokens=350, by_effect=by_effect)
    later = Offered(tools=tools + more, tokens=tokens + more_tokens, servers=(), meta_tokens=350, by_effect=by_effect)
    if choose(facts, later).door == "all":
        assert choose(facts, now).door == "all"


@given(all_facts, st.none() | st.builds(Offered, tools=counts, tokens=counts, servers=st.just(()), meta_tokens=counts))
def test_what_is_asked_for_always_wins_and_what_is_not_there_is_never_chosen(
    facts: Facts, offered: Offered | None
) -> None:
    assert [choose(facts, offered, door).door for door in WORDS] == list(WORDS)
    assert choose(facts, offered).door in ("four", "all")


@given(st.none() | st.builds(Offered, tools=counts, tokens=counts, servers=st.just(()), meta_tokens=counts))
def test_of_a_client_of_which_nothing_is_said_little_is_asked(offered: Offered | None) -> None:
    assert choose(Facts(), offered).door == "four"


@pytest.mark.parametrize(
    ("door", "path"),
    [
        ("four", "/mcp"),
        ("by-effect", "/mcp?execute=by-effect"),
        ("all", "/mcp/all"),
        ("servers", "/mcp/servers/a%20b"),
    ],
)
def test_a_door_is_known_by_its_address(door: Door, path: str) -> None:
    base, query = f"{URL}?profile=work", path.partition("?")[2]
    assert address(URL, door, "a b") == URL.removesuffix("/mcp") + path
    there = address(base, door, "a b")
    assert there == f"{URL.removesuffix('/mcp')}{path.partition('?')[0]}?profile=work{'&' if query else ''}{query}"
    assert {door_at(there), door_at(path)} == {door}
    listens = ("127.0.0.1:3001",)
    assert door_of({"url": there}, listens) == door
    assert door_of({"command": "mcpvisor", "args": ["stdio", "--url", there]}, listens) == door


def test_the_door_by_effect_is_asked_for_as_the_daemon_reads_it() -> None:
    assert (addresses.EXECUTE, addresses.BY_EFFECT) == (EXECUTE, BY_EFFECT)


def test_the_door_of_an_entry_without_an_address_is_the_first_one() -> None:
    assert door_of({"command": "/opt/mcpvisor", "args": ["stdio"]}, ("127.0.0.1:3001",)) == "four"
    assert door_of({"command": "npx"}, ("127.0.0.1:3001",)) is None


def test_only_the_meta_tools_are_kept_loaded_and_only_where_their_hint_does_not_do_it() -> None:
    facts = BY_NAME["copilot"].facts
    kept = {"deferTools": "never"}
    assert [keeps_loaded(facts, door) for door in WORDS] == [kept, kept, {}, {}]
    assert [keeps_loaded(BY_NAME[name].facts, "four") for name in ("cursor", "claude-code")] == [{}, {}]

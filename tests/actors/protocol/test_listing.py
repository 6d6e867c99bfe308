"""Walking the lists of a server: every walk ends, and says where it ended early."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.protocol.listing import METHODS, Kind, Listed, ListLimits, ListWalk, PageSummary

ALL = msgspec.Raw(b'{"tools":{},"resources":{},"prompts":{}}')
TOOLS = msgspec.Raw(b'{"tools":{}}')


def page(**more: Any) -> PageSummary:
    return PageSummary(**{"fresh": True, **more})


def walking(capabilities: msgspec.Raw = TOOLS, **limits: Any) -> ListWalk:
    return ListWalk(capabilities, ListLimits(**limits), 0.0)


@pytest.mark.parametrize(
    ("capabilities", "kinds"),
    [
        (ALL, ["tools", "resources", "templates", "prompts"]),
        (TOOLS, ["tools"]),
        (msgspec.Raw(b'{"tools":null,"prompts":{"listChanged":true}}'), ["prompts"]),
    ],
)
def test_only_what_is_announced_is_asked_for(capabilities: msgspec.Raw, kinds: list[str]) -> None:
    listing = walking(capabilities)
    assert [kind for kind in METHODS if listing.waits_for(kind)] == kinds
    assert not listing.done


@pytest.mark.parametrize(
    "text", [b"{}", b'{"tools":null,"logging":{}}', b"null", b"[1]", b"", b'{"tools":{},"\xff":{}}']
)
def test_a_server_that_announces_no_list_is_asked_for_tools_and_may_refuse(text: bytes) -> None:
    listing = walking(msgspec.Raw(text))
    assert [kind for kind in METHODS if listing.waits_for(kind)] == ["tools"]
    assert listing.on_page("tools", page(failure="-32601 no such method"), 0.0) is None
    assert (listing.done, listing.result()) == (True, Listed())


@pytest.mark.case("L02")
def test_a_page_with_a_cursor_is_followed_by_the_next_one() -> None:
    listing = walking()
    assert listing.on_page("tools", page(cursor="c"), 0.0) == ("tools", b'{"cursor":"c"}')
    assert listing.on_page("tools", page(cursor=""), 0.0) == ("tools", b'{"cursor":""}')
    assert listing.on_page("tools", page(), 0.0) is None
    assert listing.done
    assert listing.result().missing == frozenset()


def test_a_thousand_small_pages_are_all_asked_for() -> None:
    listing = walking()
    for number in range(1000):
        assert listing.on_page("tools", page(cursor=f"{number}"), 1.0) is not None


def test_equal_cursors_say_nothing_as_long_as_there_is_something_new() -> None:
    listing = walking()
    assert listing.on_page("tools", page(cursor="same"), 0.0) is not None
    assert listing.on_page("tools", page(cursor="same"), 0.0) is not None


@pytest.mark.case("L01")
def test_a_page_that_brings_nothing_new_ends_the_walk() -> None:
    listing = walking()
    assert listing.on_page("tools", page(cursor="1", fresh=False), 0.0) is None
    assert listing.done
    assert listing.result() == Listed(circular=frozenset({"tools"}))


def test_after_half_a_minute_no_further_page_is_asked_for() -> None:
    listing = walking()
    assert listing.on_page("tools", page(cursor="1"), 30.0) is not None
    assert listing.on_page("tools", page(cursor="2"), 30.1) is None
    found = listing.result()
    assert found.missing == {"tools"}
    assert found.problems == ("tools/list: cut at 30 s; the server has more",)


def test_a_list_that_is_cut_is_missing_and_it_is_said() -> None:
    listing = walking()
    assert listing.on_page("tools", page(cut="10000 entries"), 0.0) is None
    assert listing.done
    assert listing.result().missing == {"tools"}
    assert "10000 entries" in listing.result().problems[0]


def test_a_list_that_fails_ends_alone_and_missing_templates_are_no_problem() -> None:
    listing = walking(ALL)
    listing.on_page("tools", page(failure="-32603 no"), 0.0)
    listing.on_failure("templates", "-32601 unknown method")
    assert not listing.done
    found = listing.result()
    assert found.problems == ("tools/list: -32603 no",)
    assert found.missing == {"tools", "templates"}


def test_a_walk_that_is_given_up_misses_what_was_not_answered() -> None:
    listing = walking(ALL)
    listing.on_page("tools", page(), 0.0)
    listing.give_up(60.0)
    assert listing.done
    assert listing.result().missing == {"resources", "templates", "prompts"}
    assert "resources/list: not answered within 60 s" in listing.result().problems


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (b'{"jsonrpc":"2.0","id":71,"result":{', "tools"),
        (b'{"id" : 71,"result":{', "tools"),
        (b'{"jsonrpc":"2.0","result":{"x":"' + b"x" * 100_000 + b'"},"id":71}', "tools"),
        (b'{"jsonrpc":"2.0","id":711,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":"other","result":{"text":71}}', None),
        (b'{"jsonrpc":"2.0","method":71}', None),
    ],
)
def test_a_page_is_recognised_by_its_id_alone(message: bytes, found: Kind | None) -> None:
    listing = walking()
    listing.expect("tools", b"71")
    arrived = listing.recognise(message)
    assert (arrived.kind if arrived is not None else None) == found


def test_one_page_is_taken_once() -> None:
    listing = walking()
    listing.expect("tools", b"71")
    assert listing.recognise(b'{"id":71}') is not None
    assert listing.recognise(b'{"id":71}') is None
    assert listing.take("tools", b"{}") is None
    listing.expect_again("tools")
    assert listing.take("tools", b"{}") is not None
    assert listing.recognise(b'{"id":71}') is None


def test_each_list_but_the_tools_has_a_quarter_of_the_bytes() -> None:
    limits = ListLimits(max_bytes=400)
    assert [limits.bytes_of(kind) for kind in ("tools", "resources", "templates", "prompts")] == [400, 100, 100, 100]

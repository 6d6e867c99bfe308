"""The example plugins and the template by themselves: rules, patterns, and that the time grows with the text alone."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.plugins.contract import (
    DiscoveryFacts,
    Rejection,
    ServerFacts,
    ToolCall,
    ToolDefinition,
    Viewer,
    decode_result,
)
from supervisor.plugins.loading import find, make
from tests.fakes.plugins import install_example

NAMES = ("access", "redaction", "template")
CARD = "4111 1111 1111 1111"


@pytest.fixture(scope="module", autouse=True)
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    site, before = tmp_path_factory.mktemp("site"), set(sys.modules)
    for name in NAMES:
        install_example(name, site)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        yield
    for name in set(sys.modules) - before:
        if name.startswith("mcpvisor_"):
            del sys.modules[name]


def call(path: str = "s:t", user: str = "", teams: tuple[str, ...] = (), arguments: bytes = b"{}") -> ToolCall:
    server, _, tool = path.partition(":")
    return ToolCall(
        user=user, role="member", teams=frozenset(teams), client="c", server=server, tool=tool, arguments=arguments
    )


def access(*rules: dict[str, Any]) -> Any:
    return make(find("access"), {"rules": list(rules)})


@pytest.mark.parametrize(
    ("who", "path", "allowed"),
    [
        ({"user": "ann"}, "any:thing", True),
        ({"user": "bob", "teams": ("support",)}, "tickets:close", True),
        ({"user": "bob", "teams": ("support",)}, "wiki:read_page", True),
        ({"user": "bob", "teams": ("support",)}, "wiki:write_page", False),
        ({"user": "cyd"}, "time:now", True),
        ({"user": "cyd"}, "time:reset", False),
        ({}, "tickets:close", False),
        ({"user": "cyd"}, "xtime:now", False),
    ],
)
async def test_the_first_rule_that_fits_decides(who: dict[str, Any], path: str, allowed: bool) -> None:
    plugin = access(
        {"users": ["ann"], "tools": ["*"]},
        {"teams": ["support"], "tools": ["tickets:*", "wiki:read_*"]},
        {"tools": ["time:reset"], "effect": "deny"},
        {"tools": ["time:*"]},
    )
    answer = await plugin.before_call(call(path, **who))
    assert (answer is None) is allowed
    assert allowed or "not allowed" in answer.reason


async def test_without_rules_nobody_calls_anything() -> None:
    assert isinstance(await access().before_call(call()), Rejection)


def redaction(**options: Any) -> Any:
    return make(find("redaction"), options)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("ann@example.com", "#"),
        ("<ann.b+c@mail.example.com>, x", "<#>, x"),
        ("a@b, @c.d, e@", "a@b, @c.d, e@"),
        ("a@b.cd@e.fg", "#@e.fg"),
        (CARD, "#"),
        (f"12 {CARD}-7", "12 #-7"),
        ("4111-1111-1111-1111", "#"),
        ("4111111111111111", "#"),
        ("4111111111111112 20260727120000", "4111111111111112 20260727120000"),
        ("1" * 200, "1" * 200),
        ("nothing here", "nothing here"),
    ],
)
def test_addresses_and_numbers_of_cards_are_taken_out(text: str, redacted: str) -> None:
    assert redaction(replacement="#").text(text) == redacted


def test_all_texts_of_a_result_are_looked_at_and_the_rest_stays() -> None:
    result = {
        "content": [
            {"type": "text", "text": "a@b.cd"},
            {"type": "resource", "resource": {"uri": "x", "text": "a@b.cd", "blob": "a@b.cd"}},
            {"type": "image", "data": "a@b.cd"},
        ],
        "structuredContent": {"a@b.cd": [{"n": 4111111111111111, "to": "a@b.cd"}]},
        "_meta": {"by": "a@b.cd"},
    }
    told = redaction(replacement="#").after_call(call(), msgspec.json.encode(result))
    assert decode_result(told) == {
        "content": [
            {"type": "text", "text": "#"},
            {"type": "resource", "resource": {"uri": "x", "text": "#", "blob": "a@b.cd"}},
            {"type": "image", "data": "a@b.cd"},
        ],
        "structuredContent": {"#": [{"n": 4111111111111111, "to": "#"}]},
        "_meta": {"by": "a@b.cd"},
    }


def test_a_result_with_nothing_to_take_out_stays_byte_for_byte() -> None:
    assert redaction().after_call(call(), b'{"content": [{"text":"x"}], "big": 123456789012345678901234567890}') is None
    assert redaction(except_tools=["s:*"]).after_call(call(), b"no JSON") is None
    assert redaction(patterns=[]).after_call(call(), b'{"content":["a@b.cd"]}') is None


@given(st.text(alphabet="a1@. -", max_size=200))
def test_what_is_left_has_no_address_and_taking_out_twice_is_taking_out_once(text: str) -> None:
    plugin = redaction(replacement="")
    once = plugin.text(text)
    assert len(once) <= len(text)
    assert plugin.text(text) == once
    assert not re.search(r"(?<![a1.-])[a1.-]{1,64}@[a1-]+\.[a1-]+", redaction(replacement="\n").text(text))


class Steps:
    """Counts the lines that Python runs."""

    def __init__(self) -> None:
        self.count = 0

    def trace(self, frame: Any, event: str, argument: Any) -> Any:
        self.count += event == "line"
        return self.trace


@pytest.mark.parametrize("piece", ["@", "a@", "a@b.", "1 ", "1-", "1" * 20 + " ", f"{CARD} ", "a.", "@a.b"])
def test_steps_grow_with_the_text_alone(piece: str) -> None:
    """No pattern here can be made to look at the same text over and over; what C does in a step is bounded, too."""
    plugin = redaction()
    counts = []
    for times in (200, 400):
        steps, before = Steps(), sys.gettrace()
        sys.settrace(steps.trace)
        try:
            plugin.text(piece * times)
        finally:
            sys.settrace(before)
        counts.append(steps.count)
    assert counts[1] <= 2.2 * counts[0] + 20


async def test_the_template_does_what_it_says() -> None:
    options = {"commands": ["npx"], "prefix": "[x] ", "hide": ["gone"], "max_items": 5, "dangerous_for": ["ann"]}
    plugin: Any = make(find("my-plugin"), options)
    assert plugin.before_discovery(ServerFacts(name="s", kind="stdio", command="npx")) is None
    assert isinstance(plugin.before_discovery(ServerFacts(name="s", kind="stdio", command="sh")), Rejection)
    tool = ToolDefinition(server="s", name="t", text=b'{"name":"t","description":"does"}')
    assert plugin.transform_tool(tool).decode() == {"name": "t", "description": "[x] does"}
    assert isinstance(plugin.transform_tool(ToolDefinition(server="s", name="gone", text=b"{}")), Rejection)
    drop = ToolDefinition(server="s", name="drop", text=b"{}", safety="dangerous")
    assert await plugin.hide_tool(drop, Viewer(user="ann")) is None
    assert await plugin.hide_tool(drop, Viewer(user="bob")) == Rejection("it is dangerous")
    await plugin.after_discovery(DiscoveryFacts(server="s", tools=("t",)))
    assert plugin.tools_of == {"s": 1}
    assert await plugin.before_call(call(arguments=b'{"limit":9,"a":1}')) == {"limit": 5, "a": 1}
    assert await plugin.before_call(call(arguments=b'{"limit":5}')) is None
    assert plugin.after_call(call(), b'{"isError":true}') is None
    assert plugin.after_call(call(), b'{"content":[]}') == {"content": [], "_meta": {"example.com/seen": True}}


def test_the_examples_import_nothing_of_ours_but_the_contract() -> None:
    for file in (Path(__file__).parents[3] / "examples" / "plugins").rglob("*.py"):
        imported = set(re.findall(r"^from ((?:supervisor|actors)\S*)", file.read_text(encoding="utf-8"), re.MULTILINE))
        assert (
            {"supervisor.plugins.contract"}
            <= imported
            <= {"supervisor.plugins.contract", "supervisor.plugins.questions"}
        )

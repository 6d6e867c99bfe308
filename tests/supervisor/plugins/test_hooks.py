"""All plugins in a row: who decides, what is passed on, and what a failure means to each kind of hook."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio

from actors.catalogue.lists import tool as read
from actors.catalogue.offer import Offer
from actors.catalogue.tool_rules import NO_CHANGES
from actors.errors import CallRefused, ConfigError
from actors.facts import FactLog
from actors.kit import Conditions
from actors.protocol.asking.forms import MAX_FIELDS
from supervisor.config import Settings
from supervisor.events.kinds import PluginDisabled
from supervisor.plugins.answers import PluginQuestion
from supervisor.plugins.contract import (
    DiscoveryFacts,
    Plugin,
    PluginOptions,
    Rejection,
    ServerFacts,
    ToolCall,
    ToolDefinition,
    decode_result,
)
from supervisor.plugins.hooks import Nobody, PluginTable
from supervisor.plugins.loading import PluginPackage
from supervisor.plugins.questions import ConfirmationInput, FormInput, GivenAnswer, TextInput, UserQuestion
from supervisor.plugins.running import MAX_FAILURES, RunningPlugin

CALL = ToolCall(user="ana", role="member", teams=frozenset(), client="c", server="s", tool="t", arguments=b'{"n":1}')
RESULT = b'{"content":[]}'
OWN = Offer(
    tools=tuple(
        read(msgspec.Raw(b'{"name":"%b","description":"does %b","inputSchema":{"type":"object"}}' % (name, name)))
        for name in (b"a", b"b", b"c")
    )
)


def table_of(**plugins: type[Plugin[Any]]) -> PluginTable:
    return plugged(PluginTable(), **plugins)


def plugged(table: PluginTable, **plugins: type[Plugin[Any]]) -> PluginTable:
    """Have a table use these plugins, and return it."""
    made = [
        RunningPlugin(name, PluginPackage(kind, "d", "1"), kind(PluginOptions()), {}, table, threads=2)
        for name, kind in plugins.items()
    ]
    table.use(made, Settings())
    return table


class Quiet(Plugin[PluginOptions]):
    """Has no hook."""


class Fails(Plugin[PluginOptions]):
    """Has no answer to anything."""

    def before_discovery(self, server: ServerFacts) -> None:
        raise ValueError

    def transform_tool(self, tool: ToolDefinition) -> None:
        raise ValueError

    def after_discovery(self, discovery: DiscoveryFacts) -> None:
        raise ValueError

    def before_call(self, call: ToolCall) -> None:
        raise ValueError

    def after_call(self, call: ToolCall, result: bytes) -> None:
        raise ValueError


class Guards(Fails):
    """The same, as a guard."""

    guards = True


class Adds(Plugin[PluginOptions]):
    """Adds to what passes through."""

    async def before_call(self, call: ToolCall) -> dict[str, Any]:
        arguments = call.decode_arguments()
        return {**arguments, "n": arguments["n"] + 1}

    def after_call(self, call: ToolCall, result: bytes) -> dict[str, Any]:
        value = decode_result(result)
        return {**value, "content": [*value["content"], call.decode_arguments()["n"]]}

    def transform_tool(self, tool: ToolDefinition) -> ToolDefinition:
        return tool.with_members(description=f"{tool.decode()['description']}!")


class Refuses(Plugin[PluginOptions]):
    """Says no to all that it is asked."""

    def before_discovery(self, server: ServerFacts) -> Rejection | None:
        return Rejection("not\x1b[31m here") if server.name == "bad" else None

    async def transform_tool(self, tool: ToolDefinition) -> Rejection | None:
        return Rejection("not this one") if tool.name == "b" else None

    def before_call(self, call: ToolCall) -> Rejection:
        return Rejection("not you")


class Nonsense(Plugin[PluginOptions]):
    """Answers what no hook may answer."""

    answer: Any = 7

    def before_discovery(self, server: ServerFacts) -> Any:
        return self.answer

    def transform_tool(self, tool: ToolDefinition) -> Any:
        return self.answer

    def after_discovery(self, discovery: DiscoveryFacts) -> Any:
        return self.answer

    def before_call(self, call: ToolCall) -> Any:
        return self.answer

    def after_call(self, call: ToolCall, result: bytes) -> Any:
        return self.answer


async def test_a_call_and_its_result_pass_through_all_plugins_in_their_order() -> None:
    table = table_of(one=Adds, two=Quiet, three=Adds)
    call = await table.before_call(CALL, Nobody())
    assert call.arguments == b'{"n":3}'
    assert await table.after_call(call, RESULT, Nobody()) == b'{"content":[3,3]}'


async def test_the_first_that_says_no_decides_and_is_named() -> None:
    with pytest.raises(CallRefused) as caught:
        await table_of(adds=Adds, refuses=Refuses, guards=Guards).before_call(CALL, Nobody())
    assert caught.value.message == "s:t was refused by plugin refuses, nothing was called: not you"
    assert caught.value.data() == {
        "type": "refused",
        "outcome": "not_sent",
        "retryable": False,
        "server": "s",
        "plugin": "refuses",
    }


@pytest.mark.parametrize("kind", [Fails, Nonsense])
async def test_one_that_fails_costs_no_call(kind: type[Plugin[Any]]) -> None:
    table = table_of(bad=kind, adds=Adds)
    for _ in range(MAX_FAILURES + 2):
        call = await table.before_call(CALL, Nobody())
        assert call.arguments == b'{"n":2}'
        assert await table.after_call(call, RESULT, Nobody()) == b'{"content":[2]}'


async def test_a_guard_that_fails_refuses_the_call_and_holds_the_result_back() -> None:
    table = table_of(guards=Guards)
    with pytest.raises(CallRefused, match="plugin guards decides whether s:t may be called, and it failed") as before:
        await table.before_call(CALL, Nobody())
    with pytest.raises(CallRefused, match="its result is held back") as after:
        await table.after_call(CALL, RESULT, Nobody())
    assert (before.value.outcome, after.value.outcome) == ("not_sent", "completed")


async def test_one_that_fails_too_often_is_told_of_in_the_feed_and_as_a_condition() -> None:
    conditions = Conditions(lambda: 5.0)
    facts = FactLog(lambda: 5.0)
    table = PluginTable(facts, conditions)
    made = [RunningPlugin("bad", PluginPackage(Fails, "d", "1"), Fails(PluginOptions()), {}, table, threads=1)]
    table.use(made, Settings())
    for _ in range(MAX_FAILURES + 2):
        await table.before_call(CALL, Nobody())
    (noted,) = facts.events()
    off = noted.fact
    assert isinstance(off, PluginDisabled)
    assert (noted.time, off.plugin, off.hook, off.guards) == (5.0, "bad", "before_call", False)
    assert "raised ValueError at test_hooks.py" in off.reason
    (condition,) = conditions.now()
    assert (condition.what, condition.why.split(",")[0]) == ("plugin bad, before_call", "it is passed over")
    assert [status.off for status in table.statuses()] == [("before_call",)]
    table.use([], Settings())
    assert conditions.now() == []


async def test_a_server_is_refused_with_a_reason_that_can_be_read() -> None:
    table = table_of(fails=Fails, refuses=Refuses)
    servers = [ServerFacts(name=name, kind="stdio") for name in ("good", "bad")]
    plugins = table._plugins
    refused = await table.refusals(servers, plugins, 5)
    assert refused == {"bad": "plugin refuses refuses it: not [31m here"}
    assert await table_of(quiet=Quiet).refusals(servers, (), 5) == {}


@pytest.mark.parametrize("kind", [Guards])
async def test_a_guard_that_fails_refuses_every_server(kind: type[Plugin[Any]]) -> None:
    table = table_of(guards=kind)
    refused = await table.refusals([ServerFacts(name="s", kind="stdio")], table._plugins, 5)
    assert refused["s"].startswith("plugin guards refuses it: it guards this, and failed (before_discovery raised")


async def test_tools_are_changed_one_after_the_other_and_hidden_by_the_first_that_says_so() -> None:
    changes = await table_of(one=Adds, two=Refuses, three=Adds, four=Fails).review("s", OWN)
    assert {name: tool.description for name, tool in changes.tools.items()} == {"a": "does a!!", "c": "does c!!"}
    assert changes.rejected == {"b": "plugin two: not this one"}
    assert changes.failed


async def test_a_guard_that_fails_hides_all_tools_and_no_plugin_changes_nothing() -> None:
    changes = await table_of(guards=Guards, adds=Adds).review("s", OWN)
    assert (changes.tools, [*changes.rejected], changes.failed) == ({}, ["a", "b", "c"], True)
    assert await table_of(quiet=Quiet).review("s", OWN) is NO_CHANGES
    assert await table_of(adds=Adds).review("s", Offer()) is NO_CHANGES


async def test_what_came_of_a_discovery_is_told_and_a_failure_of_that_changes_nothing() -> None:
    told: list[DiscoveryFacts] = []

    class Hears(Plugin[PluginOptions]):
        async def after_discovery(self, discovery: DiscoveryFacts) -> None:
            told.append(discovery)

    table = table_of(fails=Fails, refuses=Refuses, nonsense=Nonsense, hears=Hears)
    changes = await table.review("s", OWN)
    await table.tell("s", OWN, changes)
    rejected = {"b": "plugin refuses: not this one"}
    assert told == [DiscoveryFacts(server="s", tools=("a", "c"), rejected=rejected)]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"[]", "what is no JSON object"),
        (b'{"a":', "what is no JSON object"),
        ({"a": object()}, "what is no JSON object"),
        ({1: {2: b"\xff"}}, None),
        (Rejection(7), "a value of the type Rejection"),  # type: ignore[arg-type]  # a plugin may do that
        ("no", "a value of the type str"),
        (b'{"a":"' + b"x" * (16 * 1024 * 1024) + b'"}', "over 16777216 bytes"),
    ],
)
async def test_what_a_hook_of_a_call_may_not_answer(answer: Any, why: str | None) -> None:
    table = table_of(bad=type("Bad", (Nonsense,), {"answer": answer}))
    call = await table.before_call(CALL, Nobody())
    (status,) = table.statuses()
    if why is None:
        assert (status.failures, call.decode_arguments()) == ({}, {"1": {"2": "/w=="}})
    else:
        assert (call, status.failures) == (CALL, {"before_call": f"returned {why}"})


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"name": "z"}, "a definition with another name"),
        ({"inputSchema": 7}, "a definition that is of no use"),
        ({"name": ""}, "a definition that is of no use"),
    ],
)
async def test_a_definition_of_no_use_leaves_the_tool_as_it_is(members: dict[str, Any], why: str) -> None:
    class Changes(Plugin[PluginOptions]):
        def transform_tool(self, tool: ToolDefinition) -> ToolDefinition:
            return tool.with_members(**members)

    table = table_of(changes=Changes)
    changes = await table.review("s", OWN)
    assert (changes.tools, changes.rejected, changes.failed) == ({}, {}, True)
    assert table.statuses()[0].failures == {"transform_tool": f"returned {why}"}


async def test_a_plain_function_that_gives_a_coroutine_says_so() -> None:
    async def later() -> None: ...

    class Gives(Plugin[PluginOptions]):
        def before_call(self, call: ToolCall) -> Any:
            return later()

    table = table_of(gives=Gives)
    assert await table.before_call(CALL, Nobody()) == CALL
    (status,) = table.statuses()
    assert status.failures == {"before_call": "returned a coroutine from a function that is not async"}


def test_a_plugin_that_is_not_installed_is_refused_with_its_place() -> None:
    with pytest.raises(ConfigError) as caught:
        PluginTable().prepare({"nowhere": {}}, {"nowhere": ("mcp.json", 3)}, 1)
    assert str(caught.value).startswith("mcp.json:3: supervisor.plugins.nowhere: no plugin of this name is installed")


class Answers:
    """Implements `Asker`: everybody says yes, after a while."""

    def __init__(self, most: int = 3) -> None:
        self.most = most
        self.asked: list[tuple[str, str]] = []

    def answers(self, plugin: str) -> dict[str, GivenAnswer]:
        return {key: GivenAnswer("accept", b'{"answer":true}') for name, key in self.asked if name == plugin}

    async def ask(self, plugin: str, question: PluginQuestion) -> None:
        self.asked.append((plugin, question.key))
        await trio.lowlevel.checkpoint()


SURE = UserQuestion("sure", "Sure?", ConfirmationInput())


class AsksInThread(Plugin[PluginOptions]):
    """Asks before a call in a thread, and after it on the loop."""

    def before_call(self, call: ToolCall) -> UserQuestion[bool] | dict[str, Any]:
        answer = call.answer(SURE)
        return SURE if answer is None else {"sure": answer.value}

    async def after_call(self, call: ToolCall, result: bytes) -> UserQuestion[bool] | bytes:
        shown = UserQuestion("shown", "Shown?", ConfirmationInput())
        return shown if call.answer(shown) is None else b'{"content":[1]}'


class AsksTwice(Plugin[PluginOptions]):
    """Asks what it was answered."""

    guards = True

    async def before_call(self, call: ToolCall) -> UserQuestion[bool]:
        return SURE


class AsksOddly(Plugin[PluginOptions]):
    """Asks what no page could show."""

    guards = True

    async def before_call(self, call: ToolCall) -> UserQuestion[Any]:
        fields = {"a": TextInput()}
        question = UserQuestion("k", "What?", FormInput(fields=fields))
        fields.update({f"f{at}": TextInput() for at in range(MAX_FIELDS)})
        return question


async def test_a_hook_that_asks_is_asked_again_with_the_answer_in_a_thread_and_on_the_loop() -> None:
    table, asker = table_of(first=AsksInThread, second=AsksInThread), Answers()
    call = await table.before_call(CALL, asker)
    assert call.arguments == b'{"sure":true}'
    assert call.answers == {}, "nobody else sees them"
    assert await table.after_call(call, RESULT, asker) == b'{"content":[1]}'
    assert asker.asked == [("first", "sure"), ("second", "sure"), ("first", "shown"), ("second", "shown")]


@pytest.mark.parametrize(
    ("kind", "most", "why"),
    [
        (AsksTwice, 3, "returned a question that was asked before"),
        (AsksInThread, 0, "returned more questions than 0 (max_questions_per_call)"),
        (AsksOddly, 3, "returned a question that cannot be shown"),
    ],
)
async def test_a_question_of_no_use_is_a_failure(kind: type[Plugin[Any]], most: int, why: str) -> None:
    table = table_of(asks=kind)
    if kind.guards:
        with pytest.raises(CallRefused, match="it failed"):
            await table.before_call(CALL, Answers(most))
    else:
        assert await table.before_call(CALL, Answers(most)) == CALL
    assert table.statuses()[0].failures == {"before_call": why}


async def test_where_nobody_can_be_asked_the_answer_is_none() -> None:
    table = table_of(asks=AsksInThread)
    assert (await table.before_call(CALL, Nobody())).arguments == b'{"sure":null}'

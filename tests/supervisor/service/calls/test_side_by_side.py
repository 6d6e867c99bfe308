"""Several calls of one request over real actors: side by side, in order, each with what it would have alone."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import MalformedRequest
from actors.protocol.agreement.capabilities import OF_CLIENTS
from actors.protocol.agreement.era import Terms
from actors.protocol.asking.input_required import Retry
from actors.server import ServerSettings
from actors.server.calls.turns import FIRST_WORD_S, QUIET_CALLS
from supervisor.config import ServerConfig
from supervisor.config.values import Ask
from supervisor.fleet.peers import HeldElsewhere
from supervisor.plugins.contract import Plugin, PluginOptions, ToolCall
from supervisor.plugins.questions import TextInput, UserQuestion
from supervisor.service.asking.confirmations import UNSENT_S
from supervisor.service.asking.exchange import QuestionTable
from supervisor.service.calls.tool_calls import ToolCalls
from supervisor.service.client import Client
from supervisor.service.drain import RequestDrain
from supervisor.service.results import keeper
from supervisor.service.results.cutting import tokens_of
from supervisor.usage.records import CallArguments, CallRecord
from tests.fakes.exchanges import LEGACY, Ear, exchange
from tests.fakes.late_clock import lasting
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.published import Served, served
from tests.supervisor.plugins.test_hooks import plugged

TOOLS = [*map(tool, ("echo", "sleep", "hang", "fail", "refuse", "ask", "progress", "crash"))]
ABLE = msgspec.Raw(b'{"elicitation":{}}')
MODERN = Client(era="modern", version="2026-07-28", capabilities=ABLE)
YES = {"action": "accept", "content": {}}


class Rig:
    """A gateway before a server; `records` are of the calls that ended."""

    def __init__(self, server: FakeServer, running: Served, records: list[CallRecord]) -> None:
        self.server = server
        self.running = running
        self.records = records

    async def execute(
        self,
        arguments: Any,
        client: Client = LEGACY,
        ear: Ear | None = None,
        retry: Any = None,
        table: QuestionTable | None = None,
        **meta: Any,
    ) -> Any:
        params = {"name": "execute_mcp_tool", "arguments": arguments, **({"_meta": meta} if meta else {})}
        asked = exchange(client, "tools/call", json.dumps(params).encode(), ear=ear, questions=table)
        asked.retry = retry
        return await self.running.answer(asked)

    async def made(self, *calls: Any, **more: Any) -> Any:
        """Return what several calls come to; each is the name of a tool, and its arguments."""
        return (await self.execute({"calls": [call(*each) for each in calls]}, **more))["result"]

    @property
    def called(self) -> list[str]:
        return [each["params"]["name"] for each in self.server.messages if each.get("method") == "tools/call"]


def call(name: str, arguments: Any, **beside: Any) -> Any:
    return {"tool_path": f"s:{name}", "arguments": arguments, **beside}


@asynccontextmanager
async def rig(ask: Ask = "clients", annotations: Any = None, at_a_time: int = 64, **entry: Any) -> AsyncIterator[Rig]:
    tools = TOOLS if annotations is None else [{**each, "annotations": annotations} for each in TOOLS]
    server, records = FakeServer(tools=tools), list[CallRecord]()

    def used(record: CallRecord, given: CallArguments | None = None) -> None:
        records.append(record)

    start = ServerSettings(terms=Terms(capabilities=OF_CLIENTS), max_in_flight=at_a_time)
    config = ServerConfig(name="s", command="x", ask=ask, **entry)
    async with served({"s": server}, start=start, used=used, entries=[config]) as running:
        yield Rig(server, running, records)


def entries(result: Any) -> Any:
    return result["structuredContent"]["results"]


async def test_calls_run_side_by_side_and_results_keep_their_order(autojump_clock: MockClock) -> None:
    async with rig() as here:
        began = trio.current_time()
        result = await here.made(("sleep", {"s": 3}), ("sleep", {"s": 1}), ("sleep", {"s": 2}))
        assert trio.current_time() - began < 3.5
        assert [each["structuredContent"]["s"] for each in entries(result)] == [3, 1, 2]
        labels = [re.fullmatch(r"\[(\d) ([0-9a-f]{4})\] s:sleep", each["text"]) for each in result["content"]]
        assert [label and label[1] for label in labels] == ["1", "2", "3"]
        assert len({label and label[2] for label in labels}) == 1, "a mark that no server knows"
        assert sorted(record.took_ms > 0 for record in here.records) == [True] * 3
        assert {(record.server, record.tool, record.outcome) for record in here.records} == {("s", "sleep", "ok")}


ONE_CALL = st.sampled_from(
    [
        ("echo", {"n": 1}),
        ("echo", {"text": "two"}),
        ("sleep", {"s": 2}),
        ("fail", {}),
        ("refuse", {}),
        ("nothing", {}),
    ]
)


@settings(max_examples=25)
@given(st.lists(ONE_CALL, min_size=2, max_size=6, unique_by=lambda each: json.dumps(each)))
def test_each_outcome_is_that_of_the_call_alone(calls: list[Any]) -> None:
    async def main() -> None:
        async with rig() as here:
            alone = [(await here.execute(call(*each)))["result"] for each in calls]
            before = len(here.records)
            whole = await here.made(*calls)
            for one, entry in zip(alone, entries(whole), strict=True):
                assert entry.get("isError", False) == one.get("isError", False)
                if "structuredContent" in one:
                    assert entry["structuredContent"] == one["structuredContent"]
                else:
                    assert entry["text"] == "\n".join(block["text"] for block in one["content"])
            blocks = [block for one in alone for block in one["content"]]
            label = re.compile(r"\[\d [0-9a-f]{4}\] s:")
            assert [each for each in whole["content"] if not label.match(each["text"])] == blocks
            assert whole.get("isError", False) == all(one.get("isError", False) for one in alone)
            told = [(record.tool, record.outcome, record.error) for record in here.records]
            assert sorted(told[before:]) == sorted(told[:before])

    trio.run(main, clock=MockClock(autojump_threshold=0))


async def test_a_bug_in_one_call_costs_the_others_nothing(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig() as here:
        usual = ToolCalls.call

        async def broken(self: Any, part: Any, pending: Any, wanted: Any, *more: Any, **beside: Any) -> bytes:
            if wanted.tool_path == "s:fail":
                raise ZeroDivisionError("canary")
            return await usual(self, part, pending, wanted, *more, **beside)

        monkeypatch.setattr(ToolCalls, "call", broken)
        result = await here.made(("echo", {"n": 1}), ("fail", {}))
        first, second = entries(result)
        assert first["structuredContent"] == {"n": 1}
        assert second["structuredContent"]["error"]["type"] == "internal"
        assert "canary" not in json.dumps(result)
        assert "a bug while performing one of several calls" in caplog.text


async def test_a_call_that_waits_at_another_node_is_to_be_gone_on_with_alone(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def elsewhere(*more: Any, **beside: Any) -> bytes:
        raise HeldElsewhere("01", MalformedRequest("requestState: there", outcome="unknown"))

    async with rig() as here:
        monkeypatch.setattr(ToolCalls, "call", elsewhere)
        error = entries(await here.made(("echo", {"n": 1}), ("echo", {"n": 2})))[0]["structuredContent"]["error"]
        assert error["message"].startswith("continuation: this call waits at another node")
        assert error["outcome"] == "unknown"


async def test_calls_begin_in_their_order(autojump_clock: MockClock) -> None:
    async with rig() as here:
        await here.made(*(("echo", {"n": number}) for number in range(10)))
        sent = [each["params"]["arguments"]["n"] for each in here.server.messages if each.get("method") == "tools/call"]
        assert sent == [*range(10)]


async def test_a_repeated_call_is_made_once_and_one_call_has_the_result_of_one(autojump_clock: MockClock) -> None:
    async with rig() as here:
        result = await here.made(("echo", {"n": 1}), ("echo", {"n": 2}), ("echo", {"n": 1}))
        assert here.called == ["echo", "echo"]
        assert entries(result)[2] == {"tool_path": "s:echo", "same_as": 1}
        single = call("echo", {"n": 1})
        alone = await here.execute(single)
        assert await here.execute({**single, "calls": [single]}) == alone


async def test_cancelling_the_request_cancels_all(autojump_clock: MockClock) -> None:
    async with rig() as here:
        with trio.move_on_after(5):
            await here.made(("sleep", {"s": 60}), ("sleep", {"s": 70}), ("echo", {}))
        await wait_all_tasks_blocked()
        cancelled = [each for each in here.server.messages if each.get("method") == "notifications/cancelled"]
        assert len(cancelled) == 2
        assert sorted(record.outcome for record in here.records) == ["cancelled", "cancelled", "ok"]


@pytest.mark.parametrize(("ask", "client"), [("clients", LEGACY), ("everyone", LEGACY), ("everyone", MODERN)])
async def test_where_the_daemon_ends_each_call_has_what_is_known_of_it(
    autojump_clock: MockClock, ask: Ask, client: Client
) -> None:
    told: list[Any] = []

    async def make(drain: RequestDrain) -> None:
        made = {"calls": [call("echo", {"n": 1}), call("hang", {}), call("echo", {"n": 2})]}
        params = json.dumps({"name": "execute_mcp_tool", "arguments": made}).encode()
        with trio.CancelScope() as scope:
            told.append(json.loads((await drain.answer(scope, exchange(client, "tools/call", params))).body)["result"])

    async with rig(ask, at_a_time=1) as here, trio.open_nursery() as nursery:
        drain = RequestDrain(here.running.gateway, trio.Event())
        nursery.start_soon(make, drain)
        while not here.running.actors["s"].status().waiting:
            await trio.sleep(0.1)
            await wait_all_tasks_blocked()
        drain.end()
    assert here.called == ["echo", "hang"]
    done, hanging, waiting = entries(told[0])
    assert done["structuredContent"] == {"n": 1}
    errors = [each["structuredContent"]["error"] for each in (hanging, waiting)]
    assert [each["type"] for each in errors] == ["shutdown", "shutdown"]
    assert [each["outcome"] for each in errors] == ["unknown", "not_sent"]
    assert "isError" not in told[0]


async def test_nothing_is_called_if_one_of_them_cannot_be_read(autojump_clock: MockClock) -> None:
    async with rig() as here:
        result = await here.made(("echo", {}), ("echo", 5))
        assert result["isError"]
        assert "call 2: " in result["content"][0]["text"]
        assert (here.called, [record.outcome for record in here.records]) == ([], ["rejected"])


async def test_progress_of_all_is_told_with_one_token_and_grows(autojump_clock: MockClock) -> None:
    async with rig() as here:
        ear = Ear()
        steps = {"progress": [1, 5, 2, 9], "pause_s": 1}
        await here.made(("progress", steps), ("progress", {**steps, "n": 2}), ear=ear, progressToken="t")
        told = [each["params"] for each in ear.heard]
        assert {(each["progressToken"], each["total"]) for each in told} == {("t", 2)}
        grown = [each["progress"] for each in told]
        assert grown == sorted(set(grown))
        assert grown[-1] == 2
        assert {each["message"][:3] for each in told if "message" in each} == {"[1]", "[2]"}


async def test_a_question_parks_its_own_call_which_goes_on_by_itself(autojump_clock: MockClock) -> None:
    async with rig(ask="everyone") as here:
        result = await here.made(("echo", {"n": 1}), ("ask", {"message": "Sure?"}))
        first, second = entries(result)
        assert first["structuredContent"] == {"n": 1}
        told = second["structuredContent"]
        assert told["status"] == "input_required"
        assert told["questions"]["question-1"]["message"] == "Sure?"
        assert "isError" not in result
        assert [record.tool for record in here.records] == ["echo"]
        going_on = {"continuation": told["continuation"], "answers": {"question-1": YES}}
        done = await here.execute(call("ask", {"message": "Sure?"}, **going_on))
        assert done["result"]["structuredContent"]["got"]["result"] == YES
        assert here.called == ["echo", "ask"]
        assert [record.tool for record in here.records] == ["echo", "ask"]


@pytest.mark.parametrize("client", [LEGACY, MODERN])
async def test_of_two_that_ask_the_second_is_not_sent_before_the_first_is_answered(
    autojump_clock: MockClock, client: Client
) -> None:
    async with rig(ask="everyone") as here:
        began = trio.current_time()
        told, refused = entries(await here.made(("ask", {"message": "A?"}), ("ask", {"message": "B?"}), client=client))
        assert trio.current_time() - began < 1
        assert told["structuredContent"]["status"] == "input_required"
        error = refused["structuredContent"]["error"]
        assert (error["type"], error["outcome"], error["retryable"]) == ("answer_first", "not_sent", True)
        assert error["message"].endswith("go on with that call first, which is given up in 300 s, then call this again")
        assert 0 < error["retry_after_ms"] <= 300_000
        assert here.called == ["ask"]
        assert [(record.outcome, record.error) for record in here.records] == [("rejected", "answer_first")]


async def test_one_request_goes_on_with_a_call_and_makes_the_next_one_that_asks(autojump_clock: MockClock) -> None:
    async with rig(ask="everyone") as here:
        first, second = ("ask", {"message": "A?"}), ("ask", {"message": "B?"})
        told = entries(await here.made(first, second))[0]["structuredContent"]
        going_on = {"continuation": told["continuation"], "answers": {"question-1": YES}}
        both = {"calls": [call(*first, **going_on), call(*second)]}
        done, told = entries((await here.execute(both))["result"])
        assert done["structuredContent"]["got"]["result"] == YES
        assert told["structuredContent"]["questions"]["question-1"]["message"] == "B?"
        assert here.called == ["ask", "ask"]


async def test_a_client_that_takes_requests_is_asked_about_one_call_after_the_other_whatever_it_takes(
    autojump_clock: MockClock,
) -> None:
    client, ear, table = Client(version="2025-11-25", capabilities=ABLE), Ear(), QuestionTable()
    async with rig() as here, trio.open_nursery() as nursery:
        results: list[Any] = []

        async def make() -> None:
            made = [call("ask", {"message": message}) for message in ("A?", "B?")]
            results.append((await here.execute({"calls": made}, client, ear, table=table))["result"])

        nursery.start_soon(make)
        for number, message in enumerate(("A?", "B?"), 1):
            await trio.sleep(200)  # longer than a call may take that asks nothing
            assert len(ear.heard) == number, "nothing else is asked meanwhile"
            assert message in ear.heard[-1]["params"]["message"]
            table.on_answer(ear.heard[-1]["id"], msgspec.Raw(json.dumps({**YES, "n": number}).encode()), msgspec.Raw())
    assert [each["structuredContent"]["got"]["result"]["n"] for each in entries(results[0])] == [1, 2]


async def test_what_asks_nothing_is_waited_for_a_moment_until_that_is_known(autojump_clock: MockClock) -> None:
    async with rig(ask="everyone") as here:
        for took_s in (3 + 2 * FIRST_WORD_S, 3):
            began = trio.current_time()
            await here.made(*(("sleep", {"s": 3, "n": number}) for number in range(QUIET_CALLS)))
            assert trio.current_time() - began == lasting(took_s)


@pytest.mark.parametrize("entry", [{"ask": "everyone", "annotations": {"readOnlyHint": True}}, {"ask": "none"}])
async def test_what_surely_asks_nothing_waits_for_nothing(autojump_clock: MockClock, entry: dict[str, Any]) -> None:
    async with rig(**entry) as here:
        began = trio.current_time()
        await here.made(*(("sleep", {"s": 3, "n": number}) for number in range(3)))
        assert trio.current_time() - began == lasting(3)


@pytest.mark.parametrize("confirmed", [False, True])
async def test_a_modern_client_is_asked_itself_once_the_call_is_made_alone(
    autojump_clock: MockClock, confirmed: bool
) -> None:
    entry: dict[str, Any] = {"confirm": ("echo",)} if confirmed else {}
    name = "echo" if confirmed else "ask"
    key, yes = ("confirm", {"action": "accept", "content": {"run": True}}) if confirmed else ("question-1", YES)
    async with rig(**entry) as here:
        result = await here.made((name, {"n": 1}), ("sleep", {"s": 1}), client=MODERN)
        assert result["resultType"] == "complete"
        told = entries(result)[0]["structuredContent"]
        assert told["status"] == "input_required"
        assert "questions" not in told
        state, before = told["continuation"], here.called.count(name)
        for _ in range(2):  # a model answers nothing in the place of its user
            alone = call(name, {"n": 1}, continuation=state, answers={key: yes})
            asked = (await here.execute(alone, MODERN))["result"]
            assert asked["resultType"] == "input_required"
            assert list(asked["inputRequests"]) == [key]
            state = asked["requestState"]
        retry = _retry({key: yes}, state)
        done = (await here.execute(alone, MODERN, retry=retry))["result"]
        assert done["resultType"] == "complete"
        assert "isError" not in done
        assert here.called.count(name) == 1 - (before if confirmed else 0)


def _retry(answers: Any, state: str) -> Any:
    return Retry(msgspec.Raw(json.dumps(answers).encode()), msgspec.Raw(json.dumps(state).encode()))


async def test_results_share_one_budget_and_what_was_cut_is_read_on() -> None:
    lines = "\n".join(f"line {number} of a long text" for number in range(2000))
    async with rig(result_token_budget=4000) as here:
        calls = [("echo", {"text": lines, "n": number}) for number in range(3)]
        result = await here.made(*calls, ("echo", {"n": 3}))
        assert entries(result)[3]["structuredContent"] == {"n": 3}
        texts = "".join(block["text"] for block in result["content"])
        assert 1000 < tokens_of(texts.encode()) < 4000
        heads = [each["structuredContent"]["head"] for each in entries(result)[:3]]
        assert max(map(len, heads)) - min(map(len, heads)) < 200
        uris = {meta["mcpvisor/result"]["uri"] for meta in result["_meta"]["mcpvisor/results"][:3]}
        assert len(uris) == 3
        assert sorted(record.tokens_saved > 0 for record in here.records) == [False, True, True, True]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("kept", [64 << 20, 1])
async def test_results_of_one_request_are_held_up_to_a_number_of_bytes_together(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, kept: int, whole: bool
) -> None:
    monkeypatch.setattr(keeper, "MAX_BYTES", 250_000)
    monkeypatch.setattr(keeper, "MAX_BYTES", 250_000)
    lines = "\n".join(f"line {number} of a long text" for number in range(5000))
    async with rig() as here:
        cell = here.running.gateway.parts.deployment
        cell.set(replace(cell.value, settings=replace(cell.value.settings, max_kept_result_bytes=kept)))
        calls = [("sleep", {"s": number, "text": lines}) for number in range(4)]
        result = await here.made(*calls, ("sleep", {"s": 9}), **({"mcpvisor/whole": True} if whole else {}))
        first, *beside, last = entries(result)
        assert (first["structuredContent"]["text"], last["structuredContent"]) == (lines, {"s": 9})
        assert here.called == ["sleep"] * 5
        for each in beside:
            if kept > 1:
                assert each["structuredContent"]["head"].startswith('{\n "s": ')
                assert "read_mcp_resource, uri: mcpvisor-result://" in each["structuredContent"]["note"]
            else:
                assert each["text"].startswith("[The tool has run. Its result of ")
                assert "left out: those of all calls of one request may have 250,000 together" in each["text"]
        assert len(json.dumps(result)) < 300_000


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("beside", [{}, {"pick": ["$.text"]}])
async def test_a_call_that_was_made_has_its_result_however_much_waits_to_be_read(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, calls: int, beside: dict[str, Any]
) -> None:
    async with rig() as here, trio.open_nursery() as nursery:

        async def fill() -> None:
            await trio.sleep(1)
            monkeypatch.setattr(here.running.gateway.parts.bench, "_max_waiting", 0)

        nursery.start_soon(fill)
        large = {"s": 2, "text": "a long text " * 20_000}
        asked = {"calls": [call("sleep", {**large, "n": number}, **beside) for number in range(calls)]}
        result = (await here.execute(asked))["result"]
        assert "isError" not in json.dumps(result)
        assert here.called == ["sleep"] * calls
        assert [record.outcome for record in here.records] == ["ok"] * calls


async def test_what_a_client_sends_again_is_no_request_for_several(autojump_clock: MockClock) -> None:
    async with rig() as here:
        asked = {"calls": [call("echo", {"n": 1}), call("echo", {"n": 2})]}
        told = await here.execute(asked, MODERN, retry=_retry({}, "state"))
        assert "requestState" in told["error"]["message"]
        assert here.called == []


class AsksBefore(Plugin[PluginOptions]):
    """Asks about each call by its arguments, and lets it pass where that is what was answered."""

    guards = True

    async def before_call(self, call: ToolCall) -> UserQuestion[Any] | None:
        return asked_about(call)


class AsksAfter(Plugin[PluginOptions]):
    """The same of the results."""

    guards = True

    async def after_call(self, call: ToolCall, result: bytes) -> UserQuestion[Any] | None:
        return asked_about(call)


def asked_about(call: ToolCall) -> UserQuestion[Any] | None:
    wanted = str(json.loads(call.arguments)["n"])
    question = UserQuestion("key", f"Call {wanted}?", TextInput())
    answer = call.answer(question)
    if answer is None:
        return question
    assert answer.value == wanted, "a plugin that fails refuses the call"
    return None


PAIR = [("echo", {"n": 1}), ("echo", {"n": 2})]
PLUGINS = pytest.mark.parametrize(("plugin", "sent"), [(AsksBefore, 0), (AsksAfter, 2)])


def text_answer(number: int) -> Any:
    return {"action": "accept", "content": {"answer": str(number)}}


@PLUGINS
async def test_what_a_plugin_asks_of_each_is_told_of_each_and_answered_for_each(
    autojump_clock: MockClock, plugin: type[Plugin[Any]], sent: int
) -> None:
    async with rig(ask="everyone") as here:
        plugged(here.running.gateway.parts.plugin_table, asks=plugin)
        told = [each["structuredContent"] for each in entries(await here.made(*PAIR))]
        assert [each["status"] for each in told] == ["input_required"] * 2
        questions = [next(iter(each["questions"].items())) for each in told]
        assert [question["message"] for _, question in questions] == ["Call 1?", "Call 2?"]
        assert len(here.called) == sent
        going_on = [
            call(*made, continuation=each["continuation"], answers={key: text_answer(number)})
            for number, (made, each, (key, _)) in enumerate(zip(PAIR, told, questions, strict=True), 1)
        ]
        done = entries((await here.execute({"calls": going_on}))["result"])
        assert [each["structuredContent"] for each in done] == [{"n": 1}, {"n": 2}]
        assert here.called == ["echo"] * 2
        assert [record.outcome for record in here.records] == ["ok"] * 2


@PLUGINS
async def test_a_modern_client_is_asked_itself_what_a_plugin_asks_of_one_of_several(
    autojump_clock: MockClock, plugin: type[Plugin[Any]], sent: int
) -> None:
    async with rig() as here:
        plugged(here.running.gateway.parts.plugin_table, asks=plugin)
        told = [each["structuredContent"] for each in entries(await here.made(*PAIR, client=MODERN))]
        assert ["questions" in each for each in told] == [False] * 2
        assert len(here.called) == sent
        for number, (made, each) in enumerate(zip(PAIR, told, strict=True), 1):
            alone = call(*made, continuation=each["continuation"])
            asked = (await here.execute(alone, MODERN))["result"]
            ((key, request),) = asked["inputRequests"].items()
            assert request["params"]["message"].endswith(f"Call {number}?")
            retry = _retry({key: text_answer(number)}, asked["requestState"])
            assert (await here.execute(alone, MODERN, retry=retry))["result"]["structuredContent"] == {"n": number}
        assert here.called == ["echo"] * 2


@PLUGINS
async def test_a_client_that_takes_requests_is_asked_by_a_plugin_about_all_calls_at_once(
    autojump_clock: MockClock, plugin: type[Plugin[Any]], sent: int
) -> None:
    client, ear, table = Client(version="2025-11-25", capabilities=ABLE), Ear(), QuestionTable()
    results: list[Any] = []

    async def make() -> None:
        asked = {"calls": [call(*each) for each in PAIR]}
        results.append((await here.execute(asked, client, ear, table=table))["result"])

    async with rig() as here, trio.open_nursery() as nursery:
        plugged(here.running.gateway.parts.plugin_table, asks=plugin)
        nursery.start_soon(make)
        await trio.sleep(5)
        assert len(here.called) == sent
        for each in reversed(ear.heard):
            number = int(each["params"]["message"].removesuffix("?")[-1])
            table.on_answer(each["id"], msgspec.Raw(json.dumps(text_answer(number)).encode()), msgspec.Raw())
    assert len(ear.heard) == 2
    assert [each["structuredContent"] for each in entries(results[0])] == [{"n": 1}, {"n": 2}]
    assert here.called == ["echo"] * 2


SAID_YES = {"confirm": {"action": "accept", "content": {"run": True}}}


async def confirmed(here: Rig, *calls: Any) -> Any:
    """Make calls that need a yes, say it for each, and return what they come to."""
    told = [each["structuredContent"] for each in entries(await here.made(*calls))]
    assert [[*each["questions"]] for each in told] == [["confirm"]] * len(calls)
    going_on = [
        call(*made, continuation=each["continuation"], answers=SAID_YES) for made, each in zip(calls, told, strict=True)
    ]
    return [each["structuredContent"] for each in entries((await here.execute({"calls": going_on}))["result"])]


async def questions_of(here: Rig, made: Any, client: Client = LEGACY) -> list[str]:
    return [*(await here.execute(call(*made), client))["result"]["structuredContent"]["questions"]]


FIRST, SECOND, THIRD = (("ask", {"message": message}) for message in ("A?", "B?", "C?"))


async def test_a_yes_to_a_call_that_was_not_sent_is_good_for_the_same_call_of_the_same_client_once(
    autojump_clock: MockClock,
) -> None:
    async with rig(ask="everyone", confirm=("ask",)) as here:
        asked, refused = await confirmed(here, FIRST, SECOND)
        assert refused["error"]["type"] == "answer_first"
        assert await questions_of(here, THIRD) == ["confirm"]
        assert await questions_of(here, SECOND, replace(LEGACY, name="another")) == ["confirm"]
        going_on = call(*FIRST, continuation=asked["continuation"], answers={"question-1": YES})
        done, asked = entries((await here.execute({"calls": [going_on, call(*SECOND)]}))["result"])
        assert done["structuredContent"]["got"]["result"] == YES
        assert [*asked["structuredContent"]["questions"]] == ["question-1"]
        assert await questions_of(here, SECOND) == ["confirm"]
        assert here.called == ["ask", "ask"]


async def test_a_yes_to_a_call_that_was_not_sent_does_not_last(autojump_clock: MockClock) -> None:
    async with rig(ask="everyone", confirm=("ask",)) as here:
        _, refused = await confirmed(here, FIRST, SECOND)
        await trio.sleep(refused["error"]["retry_after_ms"] / 1000 + UNSENT_S)
        assert await questions_of(here, SECOND) == ["confirm"]
        assert here.called == ["ask"]


async def test_what_a_plugin_was_told_of_a_call_that_was_not_sent_it_is_not_asked_again(
    autojump_clock: MockClock,
) -> None:
    async with rig(ask="everyone") as here:
        plugged(here.running.gateway.parts.plugin_table, asks=AsksBefore)
        pair: list[Any] = [("ask", {"message": "A?", "n": 1}), ("ask", {"message": "B?", "n": 2})]
        told = [each["structuredContent"] for each in entries(await here.made(*pair))]
        going_on = [
            call(*made, continuation=each["continuation"], answers={next(iter(each["questions"])): text_answer(number)})
            for number, (made, each) in enumerate(zip(pair, told, strict=True), 1)
        ]
        asked, refused = entries((await here.execute({"calls": going_on}))["result"])
        assert refused["structuredContent"]["error"]["type"] == "answer_first"
        answered = {"continuation": asked["structuredContent"]["continuation"], "answers": {"question-1": YES}}
        both = {"calls": [call(*pair[0], **answered), call(*pair[1])]}
        done, asked = entries((await here.execute(both))["result"])
        assert done["structuredContent"]["got"]["result"] == YES
        assert asked["structuredContent"]["questions"]["question-1"]["message"] == "B?"
        told = (await here.execute(call(*pair[1])))["result"]["structuredContent"]
        assert [each["message"] for each in told["questions"].values()] == ["Call 2?"]
        assert here.called == ["ask", "ask"]

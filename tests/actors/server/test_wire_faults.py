"""What servers write beside, around and instead of answers: each call gets its own answer, or an error in time."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CallTimedOut, ProtocolViolation, SupervisorError
from actors.kit import Reply
from actors.life.states import State
from actors.messages import Result
from actors.protocol.exchanges import Interest
from actors.server import ServerSettings
from actors.server.inbox import Received
from actors.server.incarnation import MAX_LINES
from actors.server.parts.traffic import Traffic
from tests.actors.server.rig import Rig, content, running_server
from tests.actors.server.test_answers import answered, begun, id_of, lives
from tests.actors.server.test_dialogue import Caller
from tests.fakes.lines import line
from tests.fakes.mcp_server import FakeServer, Probe, tool
from tests.fakes.memory import MemoryPeer

TEXT_NOISE = {
    "a line of a human": b"listening on port 3000\n",
    "JSON that is no message": b'{"status":200,"message":"Success","results":[]}\n',
    "scalars": b'1\ntrue\nnull\n"text"\n[1,2]\n3.5\n',
    "blank lines": b"\n\r\n   \n\t\n",
    "colours and a title": b"\x1b[31mred\x1b[0m \x1b[2J\x1b]0;title\x07\n",
    "zeros": b"\0" * 100 + b"\n",
}
BINARY_NOISE = {
    "random bytes": random.Random(1).randbytes(4096).replace(b"\n", b"") + b"\n",
    "UTF-16": json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}).encode("utf-16")
    + b"\n\0",
    "no UTF-8": b'{"jsonrpc":"2.0","method":"notifications/message","params":{"a":"\xff\xfe"}}\n',
}


class Noisy(FakeServer):
    """Prints a banner before it reads anything, and a line before it greets."""

    async def _live(self, peer: MemoryPeer) -> None:
        await peer.write(TEXT_NOISE["a line of a human"])
        await super()._live(peer)

    async def _on_message(self, peer: MemoryPeer, message: dict[str, Any], nursery: trio.Nursery) -> None:
        if message.get("method") == "initialize":
            await peer.write(b'{"level":"info","msg":"hello there"}\n')
        await super()._on_message(peer, message, nursery)


@pytest.mark.case("S01")
async def test_noise_before_and_in_the_handshake_is_counted_and_shown_and_costs_nothing(
    autojump_clock: MockClock,
) -> None:
    async with running_server(Noisy()) as rig:
        await rig.wake()
        await wait_all_tasks_blocked()
        status = await rig.status()
        assert (status.state, rig.listed, rig.fake.starts) == (State.READY, [["echo"]], 1)
        assert status.noise == 2
        shown = str(rig.journal.render(rig.journal.last(1000)))
        assert "listening on port 3000" in shown
        assert "hello there" in shown


@pytest.mark.case("S02", "S03")
async def test_noise_between_messages_costs_no_call_and_reaches_no_client(autojump_clock: MockClock) -> None:
    caller = Caller()
    async with running_server() as rig:
        await rig.wake()
        for number, noise in enumerate((*TEXT_NOISE.values(), *BINARY_NOISE.values())):
            before = trio.current_time()
            call = rig.submit("sleep", s=0.5, n=number, exchange=caller, interest=Interest(b"1", "debug"))
            await wait_all_tasks_blocked()
            await rig.fake.write(noise)
            assert await content(call) == {"s": 0.5, "n": number}
            assert trio.current_time() - before < 1
        assert (rig.fake.starts, rig.actor.life.state) == (1, State.READY)
        assert (caller.notes, caller.questions) == ([], [])


Write = Callable[[Rig, bytes], Awaitable[None]]


async def at_once(rig: Rig, text: bytes) -> None:
    await rig.fake.write(text)


async def in_halves(rig: Rig, text: bytes) -> None:
    await rig.fake.write(text[: len(text) // 2])
    await trio.sleep(2)
    await rig.fake.write(text[len(text) // 2 :])


async def in_bytes(rig: Rig, text: bytes) -> None:
    for place in range(len(text)):
        await rig.fake.write(text[place : place + 1])
        await trio.sleep(0.005)


ANSWER = b'{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":"\xc3\xa9"}}'


@pytest.mark.case("S04", "S07", "S11")
@pytest.mark.parametrize(
    ("write", "text"),
    [
        pytest.param(in_halves, ANSWER + b"\n", id="in halves"),
        pytest.param(in_bytes, ANSWER + b"\n", id="byte by byte"),
        pytest.param(at_once, ANSWER + b"\r\n", id="CRLF"),
        pytest.param(at_once, b"\xef\xbb\xbf" + ANSWER + b"\n", id="byte order mark"),
    ],
)
async def test_an_answer_arrives_however_it_is_written(autojump_clock: MockClock, write: Write, text: bytes) -> None:
    async with running_server() as rig:
        call = await begun(rig, 10.0)
        await write(rig, text.replace(b"ID", id_of(rig)))
        assert await content(call) == "é"
        await lives(rig)


# What is no answer, or half of one -----------------------------------------------------------------------------------


@pytest.mark.case("S08", "S09", "S10")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ANSWER[:30], id="half of it"),
        pytest.param(ANSWER, id="no end of line"),
        pytest.param(
            json.dumps({"jsonrpc": "2.0", "id": "ID", "result": {}}, indent=1).encode() + b"\n", id="many lines"
        ),
    ],
)
@pytest.mark.parametrize("late", [False, True])
async def test_an_answer_that_does_not_end_costs_no_call_but_its_own_and_the_one_beside_it(
    autojump_clock: MockClock, text: bytes, late: bool
) -> None:
    async with running_server() as rig:
        call = await begun(rig, 10.0)
        await rig.fake.write(text.replace(b'"ID"', b"ID").replace(b"ID", id_of(rig)))
        before = trio.current_time()
        if late:
            with pytest.raises(CallTimedOut):
                await call.wait()
        else:
            ends = [await end_of(each) for each in (call, rig.submit("echo", 10.0, n=0))]
            assert isinstance(ends[0], CallTimedOut | ProtocolViolation)
            assert ends[1] == {"n": 0} or isinstance(ends[1], CallTimedOut)
        assert trio.current_time() - before < 13
        for number in range(1, 5):
            assert await rig.call(n=number, deadline_s=3) == {"n": number}


@pytest.mark.case("S13")
@pytest.mark.parametrize("value", [b"9007199254740993", b"-" + b"1" * 30, b"1" + b"0" * 4000, b"1.0", b"1e2"])
async def test_a_number_is_passed_on_to_its_last_digit(autojump_clock: MockClock, value: bytes) -> None:
    async with running_server() as rig:
        call = await begun(rig, 10.0)
        await rig.fake.write(b'{"jsonrpc":"2.0","id":%b,"result":{"a":%b}}\n' % (id_of(rig), value))
        assert bytes((await call.wait()).body) == b'{"a":%b}' % value


@pytest.mark.case("S16")
async def test_escaped_control_characters_arrive_escaped(autojump_clock: MockClock) -> None:
    text = rb'{"structuredContent":"\u0000\u001b[31m\u0007\u009b"}'
    async with running_server() as rig:
        call = await begun(rig, 10.0)
        await rig.fake.write(b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id_of(rig), text))
        assert bytes((await call.wait()).body) == text


@pytest.mark.case("S17", "S18")
@pytest.mark.parametrize(
    "text",
    [
        b'{"jsonrpc":"2.0","id":ID,"result":{"a":1},"result":{"a":2}}',
        b'{"jsonrpc":"2.0","id":7,"result":{"a":2},"id":ID}',
        b'{"jsonrpc":"2.0","id":ID,"Result":{"a":1},"result":{"a":2},"ID":7,"Method":"tools/call","RESULT":{"a":3}}',
    ],
)
async def test_of_members_that_are_there_twice_the_last_counts_and_none_counts_by_its_capitals(
    autojump_clock: MockClock, text: bytes
) -> None:
    async with running_server() as rig:
        call = await begun(rig, 10.0)
        await rig.fake.write(text.replace(b"ID,", id_of(rig) + b",").replace(b"ID}", id_of(rig) + b"}") + b"\n")
        assert bytes((await call.wait()).body) == b'{"a":2}'  # and nothing else of the message
        await lives(rig)


async def end_of(call: Reply[Result]) -> Any:
    try:
        return await content(call)
    except SupervisorError as error:
        return error


# Answers to others ---------------------------------------------------------------------------------------------------


def next_ids(rig: Rig, number: int) -> list[int]:
    """The ids that the next calls will have."""
    last = json.loads(id_of(rig))
    return list(range(last + 1, last + number + 1))


@pytest.mark.case("S23")
async def test_answers_to_what_was_not_asked_yet_are_nobodys(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        assert await rig.call(n=0) == {"n": 0}
        early = [*range(51), *next_ids(rig, 50)]
        await rig.fake.write(b"".join(line(id=id_, result={"structuredContent": "EARLY"}) for id_ in early))
        await wait_all_tasks_blocked()
        for number in range(20):
            assert await rig.call(n=number) == {"n": number}
        asked = [message["id"] for message in rig.fake.messages if message.get("method") == "tools/call"]
        assert set(asked[1:]) <= set(early)  # they would have fitted
        assert (await rig.status()).strays == len(early)


@pytest.mark.case("S24")
async def test_a_second_answer_is_nobodys(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        call = await begun(rig, 10.0)
        first, second = (line(id=json.loads(id_of(rig)), result={"structuredContent": n}) for n in (1, 2))
        await rig.fake.write(first + second)
        assert await content(call) == 1
        for number in range(5):
            assert await rig.call(n=number) == {"n": number}
        assert (await rig.status()).strays == 1


@pytest.mark.case("S25")
async def test_a_late_answer_arrives_among_many_calls_and_is_none_of_theirs(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        await rig.wake()
        with pytest.raises(CallTimedOut):
            await rig.call("sleep", deadline_s=1, s=3)
        for number in range(100):
            assert await rig.call("sleep", s=0.05, n=number) == {"s": 0.05, "n": number}
        assert trio.current_time() > 3
        assert (await rig.status()).strays == 1


@pytest.mark.case("S21", "S22")
@pytest.mark.parametrize(
    "text",
    [
        *(
            b'{"jsonrpc":"2.0","id":%b,"result":{"structuredContent":"ALIAS"}}' % id_
            for id_ in (
                b"1",
                b"-ID",
                b"ID.5",
                b"ID0",
                b"true",
                b"null",
                b"[ID]",
                b'{"a":ID}',
                b'" ID"',
                b'"ID "',
                b'"0ID"',
                b'"one"',
                b"1987654321",
            )
        ),
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody","progress":1}}',
        b'{"jsonrpc":"2.0","method":"notifications/of/its/own","params":{"id":ID,"result":{}}}',
        b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":NaN,"id":ID,"result":{}}}',
        b'{"jsonrpc":"2.0","id":null,"result":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":ID,"method":"sampling/createMessage","params":{"a":NaN}}',
        b'{"level":"error","text":"no answer to ","id":ID}',
        b"[INFO] still thinking about id ID",
    ],
)
async def test_what_only_resembles_an_answer_to_a_call_in_flight_leaves_it_alone(
    autojump_clock: MockClock, text: bytes
) -> None:
    async with running_server() as rig:
        await rig.wake()
        call = rig.submit("sleep", s=2)
        await wait_all_tasks_blocked()
        await rig.fake.write(text.replace(b"ID", id_of(rig)) + b"\n")
        assert await rig.call(n=1) == {"n": 1}
        assert await content(call) == {"s": 2}
        assert rig.fake.starts == 1


class OnlyIntegers(FakeServer):
    """Reads ids and progress tokens as integers of 32 bits, and nothing that has another one."""

    written: Callable[[int], Any] = int

    async def _on_message(self, peer: MemoryPeer, message: dict[str, Any], nursery: trio.Nursery) -> None:
        meta = message.get("params", {}).get("_meta", {})
        for id_ in (message.get("id", 0), meta.get("progressToken", 0), message.get("params", {}).get("requestId", 0)):
            if type(id_) is not int or not 0 <= id_ < 2**31:
                return
        await super()._on_message(peer, message, nursery)

    async def _send(self, peer: MemoryPeer, message: dict[str, Any]) -> None:
        if "id" in message and "method" not in message:
            message = {**message, "id": self.written(message["id"])}
        if (params := message.get("params")) is not None and "progressToken" in params:
            message = {**message, "params": {**params, "progressToken": self.written(params["progressToken"])}}
        await super()._send(peer, message)


@pytest.mark.parametrize("written", [int, str, float])
@pytest.mark.parametrize("probe", ["error", "modern"])
async def test_a_server_that_reads_every_id_as_an_integer_is_used_however_it_writes_them(
    autojump_clock: MockClock, probe: Probe, written: Callable[[int], Any]
) -> None:
    fake = OnlyIntegers(tools=[tool("echo"), tool("progress")], probe=probe)
    fake.written = written
    caller = Caller()
    async with running_server(fake) as rig:
        assert await rig.call(a=1) == {"a": 1}
        assert rig.listed == [["echo", "progress"]]
        asked: dict[str, Any] = {"progress": [1, 2]}
        assert await rig.call("progress", exchange=caller, interest=Interest(progress=b'"mine"'), **asked) == asked
        assert [told["progressToken"] for _, told in caller.notes] == ["mine", "mine"]
        with pytest.raises(CallTimedOut):
            await rig.call("hang", deadline_s=1)
        await wait_all_tasks_blocked()
        assert rig.fake.cancelled.is_set()
        assert rig.fake.starts == 1


async def test_no_id_is_used_twice_by_the_processes_of_a_launch(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        for number in range(3):
            await rig.call(n=number)
            await rig.sleep()
        ids = [message["id"] for message in rig.fake.messages if "id" in message]
        assert len(ids) == len(set(ids)) == 3 * 3


@pytest.mark.case("S30")
async def test_requests_of_a_server_with_the_ids_of_ours_are_none_of_ours(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        await rig.wake()
        calls = [rig.submit("sleep", s=1, n=number) for number in range(20)]
        await wait_all_tasks_blocked()
        asked = [message["id"] for message in rig.fake.messages if message.get("method") == "tools/call"]
        await rig.fake.write(b"".join(line(id=id_, method="ping") for id_ in (*asked, *range(21))))
        assert [(await content(call))["n"] for call in calls] == list(range(20))
        answers = [message["id"] for message in rig.fake.messages if "result" in message]
        assert answers == [*asked, *range(21)]


# Floods --------------------------------------------------------------------------------------------------------------


class Flooding(FakeServer):
    """Says the same a thousand times at once before it answers a call, so often."""

    def __init__(self, text: bytes, times: int) -> None:
        super().__init__()
        self._flood = (text * 1000, times)

    async def _call(self, peer: MemoryPeer, message: dict[str, Any]) -> None:
        text, times = self._flood
        for _ in range(times):
            await peer.write(text)
        await super()._call(peer, message)


NOTE = line(method="notifications/message", params={"level": "info", "data": "flood"})


@pytest.mark.case("S28")
@pytest.mark.parametrize("text", [NOTE, b"flood\n", line(id=1, method="ping")], ids=["notes", "noise", "requests"])
async def test_the_answer_behind_thousands_of_messages_arrives_and_little_of_them_is_kept(
    autojump_clock: MockClock, text: bytes
) -> None:
    async with running_server(Flooding(text, 5)) as rig:
        assert await rig.call(deadline_s=60, a=1) == {"a": 1}
        assert rig.fake.starts == 1
        shown = rig.journal.render(rig.journal.last(1_000_000))
        assert sum(len(each.text) for each in shown) < 300_000
        assert len([each for each in shown if each.source == "supervisor"]) < 20


@pytest.mark.case("S28", "L06")
@pytest.mark.parametrize("text", [NOTE, line(method="notifications/tools/list_changed")], ids=["notes", "changes"])
async def test_others_have_their_turn_between_the_messages_of_one_read(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    handled: list[int] = [0]
    receive = Traffic.receive

    def noted(traffic: Traffic, received: Received) -> None:
        handled[-1] += len(received.lines)
        receive(traffic, received)

    async def take_turns() -> None:
        while True:
            handled.append(0)
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(Traffic, "receive", noted)
    async with running_server() as rig, trio.open_nursery() as nursery:
        await rig.wake()
        nursery.start_soon(take_turns)
        await rig.fake.write(text * 3000)
        assert await rig.call(a=1) == {"a": 1}
        nursery.cancel_scope.cancel()
    assert sum(handled) > 3000
    assert max(handled) <= 3 * MAX_LINES


@pytest.mark.case("S28", "S34")
async def test_a_server_that_asks_without_end_and_reads_nothing_is_replaced(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        await rig.wake()
        rig.fake.deaf = True
        assert await rig.call(n=0) == {"n": 0}  # it reads no more after that
        call = rig.submit("hang", n=1)
        await wait_all_tasks_blocked()
        for _ in range(10):
            await rig.fake.write(line(id=1, method="ping") * 1000)
        rig.fake.deaf = False
        with pytest.raises(SupervisorError):
            await call.wait()
        assert await rig.call(n=2) == {"n": 2}
        assert trio.current_time() < 20
        assert rig.fake.starts == 2


@pytest.mark.case("S35")
async def test_of_many_calls_half_of_which_are_given_up_each_is_answered_or_taken_back_once(
    autojump_clock: MockClock,
) -> None:
    async with running_server(settings=ServerSettings(max_in_flight=64)) as rig:
        await rig.wake()
        calls = [rig.submit("sleep", s=3, n=number) for number in range(64)]
        await wait_all_tasks_blocked()
        for call in calls[::2]:
            call.abandon()
        assert [(await content(call))["n"] for call in calls[1::2]] == list(range(1, 64, 2))
        sent = {message["id"]: message for message in rig.fake.messages if message.get("method") == "tools/call"}
        taken = [
            message["params"]["requestId"] for message in rig.fake.messages if "requestId" in message.get("params", {})
        ]
        assert sorted(sent[id_]["params"]["arguments"]["n"] for id_ in taken) == list(range(0, 64, 2))
        assert (await rig.status()).in_flight == 0


@pytest.mark.case("S06")
async def test_an_answer_just_under_the_limit_is_read_beside_the_loop_and_arrives_whole(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_server() as rig:
        beside: list[int] = []

        async def noted(decode: Callable[[], Any]) -> Any:
            beside.append(1)
            await trio.lowlevel.checkpoint()
            return decode()

        monkeypatch.setattr("actors.server.incarnation.decode_in_thread", noted)
        text = "x" * (15 * 1024 * 1024)
        assert (
            await answered(rig, b'{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":"%b"}}' % text.encode())
            == text
        )
        assert beside == [1]
        await lives(rig)

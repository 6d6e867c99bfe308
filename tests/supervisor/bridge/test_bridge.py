"""The program between a client and daemons that come and go, with neither: on the virtual clock."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import ProtocolViolation, UnknownDoor
from actors.protocol.wire.framing import Line, Oversized
from actors.protocol.wire.jsonrpc import encode
from supervisor.bridge.bridge import GRACE_S, MAX_PAUSE_S, Bridge
from supervisor.bridge.connection import NotReached
from supervisor.bridge.pipes import Unread
from supervisor.bridge.relay import MAX_WAITING, WAIT_S, Relay
from supervisor.bridge.start import NotStarted
from tests.supervisor.bridge.test_relay import GREETED, INITIALIZE, kinds, note, request, result

Json = dict[str, Any]
ENOUGH_S = 1000.0


class Pipe:
    """What one side says to the other, until it says no more."""

    def __init__(self) -> None:
        self._waiting: deque[Any] = deque()
        self._changed = trio.lowlevel.ParkingLot()

    def put(self, *messages: Any) -> None:
        self._waiting += messages
        self._changed.unpark_all()

    async def next(self) -> Any:
        while not self._waiting:
            await self._changed.park()
        return self._waiting.popleft()


class FakeConnection:
    """A connection to a daemon that does what the test does."""

    def __init__(self, max_message_bytes: int = 1000) -> None:
        self.max_message_bytes = max_message_bytes
        self.why = ""
        self.got: list[Json] = []
        self.says = Pipe()
        self.is_there = True
        self.reads = trio.Event()
        self.reads.set()
        self.closed = False

    def is_alive(self) -> bool:
        return self.is_there

    async def receive(self) -> bytes | None:
        message = await self.says.next()
        if message is None:
            self.why = "it fell"
            return None
        return encode(message)

    async def send(self, message: bytes) -> None:
        self.got.append(json.loads(message))
        await self.reads.wait()

    def fall(self) -> None:
        self.is_there = False
        self.says.put(None)


class World:
    """A client, a bridge, and what it finds when it connects: the first of `finds`, and the last one for ever."""

    def __init__(self, *finds: FakeConnection | NotReached) -> None:
        self.finds = deque(finds)
        self.attempts: list[float] = []
        self.steps: list[float] = []
        self.said: Iterable[str | NotStarted] = ()
        self.finished = 0
        self.heard: list[Any] = []
        self.settled: list[int] = []
        self.client = Pipe()
        self.code: int | None = None
        self.unread = False

    # What the bridge has

    async def lines(self) -> AsyncIterator[Line]:
        while (said := await self.client.next()) is not None:
            if isinstance(said, ProtocolViolation):
                raise said
            yield said if isinstance(said, bytes | Oversized) else json.dumps(said).encode()

    async def write(self, message: bytes) -> None:
        if self.unread:
            raise Unread("the client has closed its end")
        self.heard.append(json.loads(message))
        await trio.lowlevel.checkpoint()

    async def settle(self) -> None:
        self.settled.append(len(self.heard))
        await trio.lowlevel.checkpoint()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[FakeConnection]:
        await trio.lowlevel.checkpoint()
        self.attempts.append(trio.current_time())
        found = self.finds.popleft() if len(self.finds) > 1 else self.finds[0]
        if isinstance(found, NotReached):
            raise found
        try:
            yield found
        finally:
            found.closed = True

    def step(self, now: float) -> str:
        self.steps.append(now)
        said = next(iter(self.said), "")
        if isinstance(said, NotStarted):
            raise said
        return said

    def finish(self) -> None:
        self.finished += 1

    # What a test does

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Bridge]:
        """Run the bridge for the block; then the client leaves, and it has to end."""
        bridge = Bridge(Relay("http://here/mcp"), self.lines(), self, self.connect, self)  # type: ignore[arg-type] # plays all of them
        with trio.fail_after(ENOUGH_S):
            async with trio.open_nursery() as nursery:

                async def run() -> None:
                    self.code = await bridge.run()

                nursery.start_soon(run)
                await wait_all_tasks_blocked()
                yield bridge
                self.client.put(None)

    async def say(self, *messages: Any) -> None:
        self.client.put(*messages)
        await wait_all_tasks_blocked()


REFUSED = NotReached("nobody listens there", "refused")


async def test_messages_go_both_ways_and_the_client_ends_it(autojump_clock: MockClock) -> None:
    daemon = FakeConnection()
    world = World(daemon)
    async with world.running():
        await world.say(request(1, "tools/call"))
        daemon.says.put(note("notifications/progress"), result(1))
        await wait_all_tasks_blocked()
        assert kinds(world.heard) == ["notifications/progress", 1]
        assert not daemon.closed
    assert (world.code, daemon.closed, kinds(daemon.got)) == (0, True, ["tools/call"])


async def test_an_answer_waits_until_the_notes_before_it_are_taken(autojump_clock: MockClock) -> None:
    daemon = FakeConnection()
    world = World(daemon)
    async with world.running():
        daemon.says.put(result(1), note("notifications/progress"), note("notifications/message"), result(2), result(3))
        await wait_all_tasks_blocked()
        assert len(world.heard) == 5
        assert world.settled == [3]


async def test_a_daemon_that_falls_and_comes_again(autojump_clock: MockClock) -> None:
    first, second = FakeConnection(), FakeConnection()
    world = World(first, REFUSED, second)
    async with world.running():
        await world.say(request(0, "initialize", INITIALIZE))
        first.says.put(result(0, GREETED))
        await world.say(note("notifications/initialized"), request(1, "tools/call"))
        first.is_there = False  # the kernel knows it, and we do not yet
        await world.say(request(2, "tools/call"))
        first.says.put(None)
        await trio.sleep(1)
        second.says.put(result(0, GREETED))
        await wait_all_tasks_blocked()
        assert [each.get("id") for each in first.got] == [0, None, 1]
        assert [each.get("id") for each in second.got] == [0, None, 2]
        assert kinds(world.heard) == [
            0,
            -31503,
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
        ]
    assert world.steps == []


async def test_a_daemon_that_hangs_up_at_once_is_not_pressed(autojump_clock: MockClock) -> None:
    class Deaf(FakeConnection):
        async def receive(self) -> bytes | None:
            self.why = "it hangs up"
            await trio.lowlevel.checkpoint()
            return None

    world = World(Deaf())
    async with world.running():
        await trio.sleep(100)
        assert len(world.attempts) < 100 / MAX_PAUSE_S + 12


async def test_nobody_is_started_for_a_client_that_waits_for_nothing(autojump_clock: MockClock) -> None:
    world = World(REFUSED)
    async with world.running():
        await trio.sleep(60)
        assert world.steps == []
        assert len(world.attempts) < 60 / MAX_PAUSE_S + 12
        await world.say(request(1, "tools/list"))
        await trio.sleep(1)
        assert world.steps


async def test_whoever_looks_after_a_daemon_has_a_moment_to_start_it(autojump_clock: MockClock) -> None:
    daemon = FakeConnection()
    world = World(daemon, REFUSED)
    async with world.running():
        daemon.fall()
        await wait_all_tasks_blocked()
        fell = trio.current_time()
        await world.say(request(1, "tools/list"))
        await trio.sleep(GRACE_S + 0.5)
        assert min(world.steps) >= fell + GRACE_S


async def test_what_is_started_is_waited_for(autojump_clock: MockClock) -> None:
    daemon = FakeConnection()
    world = World(REFUSED, REFUSED, REFUSED, daemon)
    world.said = ["started one"]
    async with world.running():
        await world.say(request(1, "tools/list"))
        await trio.sleep(1)
        assert kinds(daemon.got) == ["tools/list"]
        assert len(world.steps) == 2  # the first attempt was for nobody
        assert world.finished == 1
    assert world.finished == 2


async def test_where_none_can_be_started_requests_get_to_know_why(autojump_clock: MockClock) -> None:
    world = World(REFUSED)
    world.said = [NotStarted("there is no configuration")]
    async with world.running():
        await world.say(request(1, "tools/list"))
        await trio.sleep(0.2)
        (answer,) = world.heard
        assert answer["error"]["message"] == "no daemon answers at http://here/mcp: there is no configuration"
        await trio.sleep(100)
        assert len(world.steps) == 1
        await world.say(request(2, "tools/list"))
        await trio.sleep(0.2)
        assert kinds(world.heard) == [-31503, -31503]


async def test_a_daemon_of_somebody_else_is_waited_for_though_none_can_be_started(autojump_clock: MockClock) -> None:
    before, after = FakeConnection(), FakeConnection()
    world = World(before, REFUSED)
    world.said = [NotStarted("there is no configuration")]
    async with world.running():
        before.fall()
        await world.say(request(1, "tools/list"))
        await trio.sleep(GRACE_S + 1)
        assert world.steps
        assert world.heard == []
        world.finds.append(after)
        await trio.sleep(2 * MAX_PAUSE_S)
        assert kinds(after.got) == ["tools/list"]


async def test_it_is_waited_for_up_to_the_deadline(autojump_clock: MockClock) -> None:
    before = FakeConnection()
    world = World(before, REFUSED)
    world.said = [NotStarted("there is no configuration")]
    async with world.running():
        before.fall()
        await world.say(request(1, "tools/list"))
        await trio.sleep(WAIT_S - 1)
        assert world.heard == []
        await trio.sleep(2)
        (answer,) = world.heard
        assert answer["error"]["message"] == "no daemon answers at http://here/mcp: there is no configuration"


async def test_a_daemon_that_was_started_here_and_cannot_be_again_is_not_waited_for(autojump_clock: MockClock) -> None:
    daemon = FakeConnection()
    world = World(REFUSED, REFUSED, daemon, REFUSED)
    world.said = ["started one"]
    async with world.running():
        await world.say(request(1, "tools/list"))
        await trio.sleep(1)
        assert kinds(daemon.got) == ["tools/list"]
        daemon.says.put(result(1))
        world.said = [NotStarted("line 3 of the configuration is wrong")]
        daemon.fall()
        await world.say(request(2, "tools/list"))
        await trio.sleep(GRACE_S + 1)
        assert [each["id"] for each in world.heard] == [1, 2]
        assert world.heard[1]["error"]["message"].endswith("line 3 of the configuration is wrong")


async def test_a_door_that_there_is_not_is_the_daemon_s_own_error(autojump_clock: MockClock) -> None:
    error = UnknownDoor("no server 'x' is configured", details={"servers": ["git"]})
    world = World(NotReached("it refuses with status 404", "rejected", error=error))
    async with world.running():
        await world.say(request(1, "tools/list"))
        await trio.sleep(0.2)
        (answer,) = world.heard
    assert answer["error"] == {"code": error.code, "message": error.message, "data": error.data()}


async def test_a_daemon_that_refuses_says_why(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    world = World(NotReached("it refuses with status 403: there is no door", "rejected"))
    async with world.running():
        await world.say(request(1, "tools/list"))
        await trio.sleep(0.2)
        (answer,) = world.heard
        assert answer["error"]["message"].endswith("it refuses with status 403: there is no door")
        await trio.sleep(100)
    assert caplog.text.count("there is no door") == 1


async def test_a_daemon_that_does_not_answer_is_waited_for_up_to_the_deadline(autojump_clock: MockClock) -> None:
    world = World(NotReached("no answer within 5 s"))
    async with world.running():
        await world.say(request(1, "tools/list"))
        await trio.sleep(WAIT_S - 1)
        assert world.heard == []
        await trio.sleep(2)
        (answer,) = world.heard
        assert answer["error"]["message"].endswith("no answer within 5 s")
    assert world.steps == []


async def test_another_daemon_that_does_not_take_the_client(autojump_clock: MockClock) -> None:
    first, second = FakeConnection(), FakeConnection()
    world = World(first, second)
    async with world.running():
        await world.say(request(0, "initialize", INITIALIZE))
        first.says.put(result(0, GREETED))
        await wait_all_tasks_blocked()
        first.fall()
        await world.say(request(1, "tools/list"))
        second.says.put(result(0, {"protocolVersion": "2024-11-05"}))
        await trio.sleep(1)
        assert "it speaks revision 2024-11-05" in world.heard[-1]["error"]["message"]
        assert second.closed


async def test_whoever_says_too_much_waits(autojump_clock: MockClock) -> None:
    daemon = FakeConnection()
    daemon.reads = trio.Event()
    world = World(daemon)
    async with world.running():
        await world.say(*(request(number, "tools/call") for number in range(MAX_WAITING + 10)))
        assert len(world.client._waiting) == 9  # of ten too many one is being sent
        daemon.reads.set()
        await wait_all_tasks_blocked()
        assert len(daemon.got) == MAX_WAITING + 10


@pytest.mark.parametrize(
    "line",
    [
        json.dumps(request("big", "tools/call", {"arguments": "x" * 2000})).encode(),
        Oversized(99_999_999, 16_777_216, b'{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{"x":"', b""),
    ],
)
async def test_a_message_over_the_limit_is_refused_by_its_id(autojump_clock: MockClock, line: Line) -> None:
    daemon = FakeConnection(max_message_bytes=1000)
    world = World(daemon)
    async with world.running():
        await world.say(line)
        (answer,) = world.heard
        assert (answer["id"], answer["error"]["code"]) == ("big", -31413)
        assert "1000 are the most here" in answer["error"]["message"]
        assert daemon.got == []


async def test_an_answer_over_the_limit_is_an_error_for_whoever_asked(autojump_clock: MockClock) -> None:
    daemon = FakeConnection(max_message_bytes=1000)
    world = World(daemon)
    async with world.running():
        daemon.says.put(request(731, "sampling/createMessage"))
        await wait_all_tasks_blocked()
        await world.say(result(731, {"content": "x" * 2000}))
        (answer,) = daemon.got
        assert (answer["id"], answer["error"]["code"]) == (731, -31413)
        assert kinds(world.heard) == ["sampling/createMessage"]


async def test_a_client_that_does_not_read_ends_it(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    daemon = FakeConnection()
    world = World(daemon)
    async with world.running():
        world.unread = True
        daemon.says.put(note("notifications/progress"))
        await wait_all_tasks_blocked()
        assert (world.code, daemon.closed) == (74, True)
    assert "the client has closed its end" in caplog.text


async def test_a_line_without_an_end_ends_it(autojump_clock: MockClock) -> None:
    world = World(FakeConnection())
    async with world.running():
        await world.say(ProtocolViolation("it does not end"))
        assert world.code == 65


async def test_where_nothing_can_be_started_nothing_is(autojump_clock: MockClock) -> None:
    world = World(REFUSED)
    bridge = Bridge(Relay("http://far/mcp"), world.lines(), world, world.connect, None)  # type: ignore[arg-type] # plays all of them
    with trio.fail_after(ENOUGH_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bridge.run)
            await world.say(request(1, "tools/list"))
            await trio.sleep(WAIT_S + 1)
            assert kinds(world.heard) == [-31503]
            world.finds[0] = daemon = FakeConnection()
            await trio.sleep(MAX_PAUSE_S + 1)
            await world.say(request(2, "tools/list"))
            assert kinds(daemon.got) == ["tools/list"]
            world.client.put(None)
    assert world.steps == []

"""Whatever happens between a client and its daemons: each request has one end, and nothing is done twice."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from supervisor.bridge.relay import Relay
from tests.supervisor.bridge.test_relay import GREETED, INITIALIZE, note, request, result

Json = dict[str, Any]
WAIT_S = 10.0
CALLS, LOOKS = "tools/call", "tools/list"


class Story(RuleBasedStateMachine):
    """A client with a session, and daemons one after the other. The model is what each side has got."""

    def __init__(self) -> None:
        super().__init__()
        self.relay = Relay("http://here/mcp", WAIT_S)
        self.now = 0.0
        self.number = 0
        self.asked: dict[int, str] = {}
        self.cancelled: set[int] = set()
        self.ends: dict[int, int] = {}
        self.sent: dict[int, int] = {}
        self.pending: list[int] = []  # what the present daemon has to answer
        self.order: list[int] = []
        self.connected = False

    @initialize()
    def greet(self) -> None:
        self.relay.connect()
        self.say(request("hello", "initialize", INITIALIZE))
        assert self.take() == ["initialize"]
        self.hear(self.relay.from_daemon(json.dumps(result("hello", GREETED)).encode(), self.now))
        self.say(note("notifications/initialized"))
        self.connected = True
        self.take()

    def say(self, message: Json) -> None:
        self.hear(self.relay.from_client(json.dumps(message).encode(), self.now))

    def hear(self, lines: list[bytes]) -> None:
        for line in lines:
            id_ = json.loads(line).get("id")
            if isinstance(id_, int):
                self.ends[id_] = self.ends.get(id_, 0) + 1

    def take(self) -> list[str]:
        methods: list[str] = []
        while (line := self.relay.take()) is not None:
            message = json.loads(line)
            methods.append(message["method"])
            id_ = message.get("id")
            if isinstance(id_, int):
                self.sent[id_] = self.sent.get(id_, 0) + 1
                self.pending.append(id_)
                if self.sent[id_] == 1:
                    self.order.append(id_)
        return methods

    @rule(method=st.sampled_from([CALLS, LOOKS]))
    def ask(self, method: str) -> None:
        self.number += 1
        self.asked[self.number] = method
        self.say(request(self.number, method))

    @rule(which=st.integers(min_value=0))
    def cancel(self, which: int) -> None:
        under_way = [id_ for id_ in self.asked if id_ not in self.ends and id_ not in self.cancelled]
        if under_way:
            id_ = under_way[which % len(under_way)]
            self.cancelled.add(id_)
            self.say(note("notifications/cancelled", {"requestId": id_}))

    @rule()
    def send(self) -> None:
        self.take()

    @rule(which=st.integers(min_value=0))
    def answer(self, which: int) -> None:
        if self.pending:
            id_ = self.pending.pop(which % len(self.pending))
            if id_ not in self.cancelled:
                self.hear(self.relay.from_daemon(json.dumps(result(id_)).encode(), self.now))

    @rule()
    def fall(self) -> None:
        self.connected = False
        self.pending.clear()
        self.hear(self.relay.lose("it fell", self.now))

    @rule()
    def rise(self) -> None:
        if not self.connected:
            self.connected = True
            self.relay.connect()
            assert self.take() == ["initialize"]
            self.hear(self.relay.from_daemon(json.dumps(result("hello", GREETED)).encode(), self.now))

    @rule(seconds=st.sampled_from([1.0, WAIT_S / 2, WAIT_S]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.hear(self.relay.expire(self.now))

    @invariant()
    def each_has_at_most_one_end(self) -> None:
        assert all(count == 1 for count in self.ends.values())
        assert self.ends.keys() <= self.asked.keys()

    @invariant()
    def a_call_is_sent_once_and_a_look_twice_at_most(self) -> None:
        for id_, count in self.sent.items():
            assert count <= (1 if self.asked[id_] == CALLS else 2)

    @invariant()
    def they_are_sent_in_their_order(self) -> None:
        assert self.order == sorted(self.order)

    def teardown(self) -> None:
        """In the end nobody waits: what was not cancelled has its answer."""
        self.fall()
        self.wait(WAIT_S)
        self.each_has_at_most_one_end()
        assert self.asked.keys() - self.ends.keys() <= self.cancelled


TestStory = Story.TestCase

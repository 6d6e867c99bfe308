"""What a conversation does that no server of the tests of actors says: byte by byte, without a process or a clock."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from actors.messages import CallServer
from actors.protocol import facts
from actors.protocol.agreement.era import Agreement, Identity, Negotiation, NoAgreement
from actors.protocol.agreement.versions import Era
from actors.protocol.conversation import Conversation
from actors.protocol.listing import ListLimits, PageArrived, PageSummary
from actors.protocol.wire.framing import Oversized
from actors.protocol.wire.peer import Answered, Cause, Failure
from tests.fakes.clock import Clock

VERSION = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def _id_of(said: dict[str, Any]) -> bytes:
    return json.dumps(said["id"]).encode() if "method" in said and "id" in said else b""


class Line:
    """A conversation with the test as its server."""

    def __init__(self, known: Era | None = None) -> None:
        self.talk = Conversation(
            count(1), Negotiation(Identity(), known), ListLimits(), lambda _: (), lambda _: False, Clock()
        )

    def sent(self) -> list[dict[str, Any]]:
        messages = list(self.talk.output)
        self.talk.output.clear()
        for message in messages:  # what a transport is told of a message is what the message says
            said = json.loads(message.body)
            assert (message.method, message.id) == (said.get("method", ""), _id_of(said))
            meant = said.get("params", {}).get("_meta", {}).get(VERSION)
            assert meant in (None, message.version)
        return [json.loads(message.body) for message in messages]

    def call(self, number: int, method: str, members: bytes, meta: bytes = b"") -> None:
        self.talk.call(number, CallServer(server="s", method=method, members=members, meta=meta))

    def say(self, **message: Any) -> facts.Fact | None:
        return self.talk.receive(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def greet(self, era: Era) -> None:
        """Do the whole handshake; nothing is left to be sent."""
        self.talk.greet()
        (first,) = self.sent()
        capabilities = {"tools": {"listChanged": True}, "resources": {}}
        if era == "modern":
            result: dict[str, Any] = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
        else:
            result = {"protocolVersion": "2025-06-18", "capabilities": capabilities}
            if first["method"] == "server/discover":
                assert self.say(id=first["id"], error={"code": -32601, "message": "unknown"}) is None
                (first,) = self.sent()
        fact = self.say(id=first["id"], result=result)
        assert isinstance(fact, Agreement)
        assert fact.era == era
        expected = [] if era == "modern" else ["notifications/initialized"]
        assert [message["method"] for message in self.sent()] == expected


def ready(era: Era) -> Line:
    line = Line("legacy" if era == "legacy" else None)
    line.greet(era)
    return line


@pytest.mark.parametrize(("stream", "next_"), [(b"", ["initialize"]), (b'"a-1"', [])])
def test_a_refusal_without_an_id_is_to_the_probe_where_all_messages_share_one_pipe(
    stream: bytes, next_: list[str]
) -> None:
    line = Line()
    line.talk.greet()
    line.sent()
    refusal = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}'
    assert line.talk.receive(refusal, stream=stream) is None
    assert [message["method"] for message in line.sent()] == next_


def test_an_answer_whose_id_is_written_in_an_unusual_way_is_a_page_once() -> None:
    line = ready("legacy")
    line.talk.list_all(0.0)
    id_ = line.sent()[0]["id"]
    message = b'{"jsonrpc":"2.0","id":"%d","result":{"tools":[]}}' % id_
    assert line.talk.receive(message) == PageArrived("tools", message, None)
    assert line.talk.receive(message) is None


def test_a_call_whose_answer_looks_like_a_page_is_answered() -> None:
    line = ready("legacy")
    line.talk.list_all(0.0)
    id_ = line.sent()[0]["id"]
    line.call(1, "tools/call", b'"name":"t"', b"")
    (sent,) = line.sent()
    arrived = line.say(id=sent["id"], result={"id": id_})
    assert isinstance(arrived, PageArrived)
    assert isinstance(line.talk.receive_other(arrived.line, arrived.kind), Answered)
    assert isinstance(line.say(id=id_, result={"tools": []}), PageArrived)


@pytest.mark.case("S29")
def test_a_legacy_server_may_ping_and_hears_that_nothing_else_is_there() -> None:
    line = ready("legacy")
    line.say(id=0, method="ping")
    line.say(id="x", method="sampling/createMessage", params={})
    pong, refusal = line.sent()
    assert pong == {"jsonrpc": "2.0", "id": 0, "result": {}}
    assert (refusal["id"], refusal["error"]["code"]) == ("x", -32601)


@pytest.mark.case("S29")
def test_a_modern_server_may_not_ask() -> None:
    line = ready("modern")
    line.say(id=0, method="ping")
    assert line.sent() == []


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_list_over_the_limit_is_a_page_that_cannot_be_read_and_says_why(era: Era) -> None:
    line = ready(era)
    line.talk.list_all(0.0)
    sent = {message["method"]: message["id"] for message in line.sent()}
    head = b'{"id":%d,"result":{"tools":[' % sent["tools/list"]
    why = "it answered with 2000 bytes, over its limit of 1000 bytes (max_line_bytes)"
    fact = line.talk.receive(Oversized(2000, 1000, head, b"]}}"))
    assert fact == PageArrived("tools", b"", None, why)


def test_a_handshake_over_the_limit_is_refused_and_says_why() -> None:
    line = Line("legacy")
    line.talk.greet()
    (sent,) = line.sent()
    head = b'{"id":%d,"result":{"instructions":"' % sent["id"]
    assert line.talk.receive(Oversized(2000, 1000, head, b"")) == NoAgreement(
        "the server refused the handshake: it answered with 2000 bytes, over its limit of 1000 bytes (max_line_bytes)"
    )


def test_pages_of_a_walk_that_is_over_change_nothing() -> None:
    line = ready("legacy")
    assert line.talk.on_page("tools", PageSummary(fresh=True, cursor="2"), 0.0) is None
    assert line.talk.stop_listing(60.0) is None
    assert line.talk.receive_other(b'{"jsonrpc":"2.0","id":79,"result":{}}', "tools") is None
    assert (line.sent(), line.talk.listing, line.talk.strays) == ([], False, 1)


# What is not answered ------------------------------------------------------------------------------------------------


def failure(sent: dict[str, Any], cause: Cause = "refused") -> Failure:
    return Failure(id=json.dumps(sent["id"]).encode(), cause=cause, reason="no")


def test_a_call_that_is_lost_is_lost_once() -> None:
    line = ready("legacy")
    line.call(7, "tools/call", b"", b"")
    (sent,) = line.sent()
    lost = failure(sent, "crashed")
    assert line.talk.on_failure(lost) == facts.CallLost(7, lost)
    assert line.talk.on_failure(lost) is None
    assert line.say(id=sent["id"], result={}) is None


def test_who_cannot_be_reached_or_wants_a_credential_says_nothing_of_its_era() -> None:
    for cause, fact in (("unavailable", facts.Unreachable("no")), ("unauthorized", NoAgreement("no"))):
        line = Line()
        line.talk.greet()
        (probe,) = line.sent()
        assert line.talk.on_failure(failure(probe, cause)) == fact  # type: ignore[arg-type]
        assert line.sent() == []


def test_who_wants_a_login_says_so_to_whatever_is_asked() -> None:
    for ask in ("greet", "ask_for_life"):
        line = Line()
        getattr(line.talk, ask)()
        (sent,) = line.sent()
        assert line.talk.on_failure(replace(failure(sent, "unauthorized"), login=True)) == facts.LoginWanted("no")
    line = ready("legacy")
    line.call(7, "tools/call", b"", b"")
    (sent,) = line.sent()
    lost = replace(failure(sent, "unauthorized"), login=True)
    assert line.talk.on_failure(lost) == facts.CallLost(7, lost)


@pytest.mark.parametrize("on_its_stream", [True, False])
def test_what_names_a_request_in_flight_is_a_part_of_it_over_pipes_and_over_streams(on_its_stream: bool) -> None:
    line = ready("modern")
    line.call(1, "events/stream", b'"name":"e"')
    line.call(2, "events/stream", b'"name":"e"')
    first, second = (sent["id"] for sent in line.sent())

    def say(id_: Any, method: str = "notifications/events/event") -> facts.Fact | None:
        said = {"jsonrpc": "2.0", "method": method, "params": {"_meta": {SUBSCRIPTION: id_}}}
        return line.talk.receive(json.dumps(said).encode(), stream=b"%d" % first if on_its_stream else b"")

    for id_, method in ((first, "notifications/events/event"), (str(first), "notifications/x-own")):
        fact = say(id_, method)
        assert isinstance(fact, facts.CallNoted)
        assert (fact.call, fact.method, fact.streamed) == (1, method, True)
    assert [say(id_) for id_ in ("foreign", 1, None)] == [None, None, None]
    line.say(id=first, result={})
    assert say(first) is None
    fact = say(second)
    assert isinstance(fact, facts.CallNoted)
    assert fact.call == 2

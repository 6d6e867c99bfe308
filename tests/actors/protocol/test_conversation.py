"""Conversations with servers of both eras, byte by byte."""

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
from actors.protocol.listing import METHODS, Listed, ListLimits, PageArrived, PageSummary
from actors.protocol.wire.framing import Oversized
from actors.protocol.wire.peer import Answered, Cause, Failure, Malformed, Refused
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
        self.versions: dict[str, str] = {}

    def sent(self) -> list[dict[str, Any]]:
        messages = list(self.talk.output)
        self.talk.output.clear()
        for message in messages:  # what a transport is told of a message is what the message says
            said = json.loads(message.body)
            assert (message.method, message.id) == (said.get("method", ""), _id_of(said))
            meant = said.get("params", {}).get("_meta", {}).get(VERSION)
            assert meant in (None, message.version)
            self.versions[message.method] = message.version
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


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_call_goes_there_and_its_answer_comes_back(era: Era) -> None:
    line = ready(era)
    line.call(7, "tools/call", b'"name":"t","arguments":{}', b'"traceparent":"x"')
    (sent,) = line.sent()
    assert (sent["params"]["name"], sent["params"]["_meta"]["traceparent"]) == ("t", "x")
    assert (VERSION in sent["params"]["_meta"]) is (era == "modern")
    fact = line.say(id=sent["id"], result={"content": []})
    assert isinstance(fact, Answered)
    assert (fact.tag, json.loads(bytes(fact.result))) == (7, {"content": []})


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_call_without_params_is_well_formed(era: Era) -> None:
    line = ready(era)
    line.call(1, "ping", b"", b"")
    (sent,) = line.sent()
    assert ("_meta" in sent["params"]) is (era == "modern")


def test_a_probe_that_is_refused_leads_to_initialize() -> None:
    line = Line()
    probing = [line.talk.probing]
    line.greet("legacy")
    assert [*probing, line.talk.probing] == [True, False]


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


def test_silence_under_the_probe_leaves_the_era_unknown() -> None:
    line = Line()
    line.talk.greet()
    assert line.talk.probing


def test_a_malformed_answer_to_the_probe_is_no_evidence() -> None:
    line = Line()
    line.talk.greet()
    (probe,) = line.sent()
    assert line.say(id=probe["id"], result=[]) is None
    assert line.sent()[0]["method"] == "initialize"


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_all_lists_are_walked(era: Era) -> None:
    line = ready(era)
    line.talk.list_all(0.0)
    asked = {message["method"]: message for message in line.sent()}
    assert list(asked) == ["tools/list", "resources/list", "resources/templates/list"]
    assert line.say(id=asked["tools/list"]["id"], result={"tools": []}) == PageArrived(
        "tools",
        json.dumps({"jsonrpc": "2.0", "id": asked["tools/list"]["id"], "result": {"tools": []}}).encode(),
        json.dumps(asked["tools/list"]["id"]).encode(),
    )
    assert line.talk.on_page("tools", PageSummary(fresh=True, cursor="2"), 0.0) is None
    (second,) = line.sent()
    assert second["params"]["cursor"] == "2"
    assert (VERSION in second["params"].get("_meta", {})) is (era == "modern")
    assert line.talk.on_page("resources", PageSummary(failure="broken"), 0.0) is None
    assert line.talk.on_page("templates", PageSummary(failure="broken"), 0.0) is None
    assert line.talk.waits_for("tools")
    fact = line.talk.on_page("tools", PageSummary(fresh=True), 0.0)
    assert isinstance(fact, Listed)
    assert fact.missing == {"resources", "templates"}
    assert not line.talk.listing
    assert not line.talk.waits_for("tools")


def test_late_pages_of_a_walk_that_was_given_up_do_not_get_into_the_next() -> None:
    line = ready("legacy")
    line.talk.list_all(0.0)
    first = {message["method"]: message["id"] for message in line.sent()}
    fact = line.talk.stop_listing(60.0)
    assert isinstance(fact, Listed)
    assert fact.missing == {"tools", "resources", "templates"}
    assert not line.talk.listing
    line.talk.list_all(0.0)
    second = {message["method"]: message["id"] for message in line.sent()}
    assert line.say(id=first["tools/list"], result={"tools": [{"name": "old"}]}) is None
    assert line.talk.strays == 1
    for method, id_ in second.items():
        found = line.say(id=id_, result={})
        assert isinstance(found, PageArrived)
        assert METHODS[found.kind] == method


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


def test_a_cancelled_call_is_told_with_our_id_and_its_late_answer_is_dropped() -> None:
    line = ready("legacy")
    line.call(1, "tools/call", b'"name":"t"', b"")
    (sent,) = line.sent()
    line.talk.cancel(1, "why")
    line.talk.cancel(1, "why")
    (cancelled,) = line.sent()
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"] == {"requestId": sent["id"], "reason": "why"}
    late = line.say(id=sent["id"], result={})  # of no call in flight
    assert isinstance(late, Answered)
    assert late.tag == 1
    assert line.say(id=sent["id"], result={}) is None
    assert line.talk.strays == 2


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"error": {"code": -32602, "message": "no"}}, Refused),
        ({"result": 7}, Malformed),
        ({}, Malformed),
    ],
)
def test_a_call_that_fails_is_a_fact_too(answer: dict[str, Any], kind: type[Any]) -> None:
    line = ready("modern")
    line.call(3, "tools/call", b'"name":"t"', b"")
    (sent,) = line.sent()
    fact = line.say(id=sent["id"], **answer)
    assert isinstance(fact, kind)
    assert fact.tag == 3
    line.talk.cancel(3, "too late")
    assert line.sent() == []


def test_changes_are_facts_and_other_notifications_are_not() -> None:
    line = ready("legacy")
    for what in ("tools", "resources", "prompts"):
        assert line.say(method=f"notifications/{what}/list_changed") == facts.ListsChanged()
    assert line.say(method="notifications/progress", params={}) is None


def test_a_modern_server_is_asked_to_tell_of_changes_and_a_legacy_one_is_not() -> None:
    modern, legacy = ready("modern"), ready("legacy")
    modern.talk.listen()
    legacy.talk.listen()
    (listen,) = modern.sent()
    assert listen["method"] == "subscriptions/listen"
    assert listen["params"]["notifications"]["toolsListChanged"] is True
    assert legacy.sent() == []
    assert modern.say(id=listen["id"], result={}) == facts.ListenEnded()


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


@pytest.mark.case("S25")
def test_ids_of_one_process_are_never_used_twice() -> None:
    line = ready("legacy")
    for call in range(50):
        line.call(call, "ping", b"", b"")
    line.talk.list_all(0.0)
    ids = [message["id"] for message in line.sent()]
    assert len(set(ids)) == len(ids)
    assert all(type(id_) is int for id_ in ids)


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


def test_a_question_that_is_not_open_is_not_answered() -> None:
    line = ready("legacy")
    line.talk.answer(b'"q1"', b"{}")
    assert line.sent() == []


def test_what_is_told_of_no_call_is_counted() -> None:
    line = ready("legacy")
    assert line.say(method="notifications/progress", params={"progressToken": 77, "progress": 1}) is None
    assert line.talk.exchanges.unheard == 1


# What is not answered ------------------------------------------------------------------------------------------------


def failure(sent: dict[str, Any], cause: Cause = "refused") -> Failure:
    return Failure(id=json.dumps(sent["id"]).encode(), cause=cause, reason="no")


def test_a_message_says_in_which_revision_it_is_written() -> None:
    line = Line()
    line.greet("legacy")
    line.talk.ask_for_life()
    line.sent()
    agreed = "2025-06-18"
    assert line.versions == {
        "server/discover": "2026-07-28",
        "initialize": "",
        "notifications/initialized": agreed,
        "ping": agreed,
    }


def test_a_call_that_is_lost_is_lost_once() -> None:
    line = ready("legacy")
    line.call(7, "tools/call", b"", b"")
    (sent,) = line.sent()
    lost = failure(sent, "crashed")
    assert line.talk.on_failure(lost) == facts.CallLost(7, lost)
    assert line.talk.on_failure(lost) is None
    assert line.say(id=sent["id"], result={}) is None


def test_a_probe_that_is_not_taken_means_the_legacy_era() -> None:
    line = Line()
    line.talk.greet()
    (probe,) = line.sent()
    assert line.talk.on_failure(failure(probe)) is None
    (initialize,) = line.sent()
    assert initialize["method"] == "initialize"
    assert line.talk.on_failure(failure(initialize)) == NoAgreement("no")


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


def test_a_list_that_is_lost_has_a_reason() -> None:
    line = ready("modern")
    line.talk.list_all(0.0)
    first, *_ = line.sent()
    fact = line.talk.on_failure(failure(first))
    assert isinstance(fact, PageArrived)
    assert fact.failure == "no"


def test_a_sign_of_life_that_is_lost_means_nothing() -> None:
    line = ready("legacy")
    line.talk.ask_for_life()
    (ping,) = line.sent()
    assert line.talk.on_failure(failure(ping)) is None


def test_a_server_that_was_asked_for_a_sign_of_life_is_not_asked_again_unless_that_is_wanted() -> None:
    line = Line()
    line.greet("legacy")
    assert line.talk.ask_for_life(again=False)
    assert not line.talk.ask_for_life(again=False)
    assert [message["method"] for message in line.sent()] == ["ping"]
    assert line.talk.ask_for_life()


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

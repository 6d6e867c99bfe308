"""Conversations with servers of both eras, byte by byte."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.protocol import conversation as talk
from actors.protocol.conversation import Conversation
from actors.protocol.era import Identity
from actors.protocol.framing import Oversized
from actors.protocol.listing import ListLimits
from actors.protocol.versions import Era

VERSION = "io.modelcontextprotocol/protocolVersion"


class Line:
    """A conversation with the test as its server."""

    def __init__(self, known: Era | None = None) -> None:
        self.talk = Conversation("s1", Identity(), known, ListLimits())

    def sent(self) -> list[dict[str, Any]]:
        lines = self.talk.take_output().split(b"\n")
        assert lines.pop() == b""
        return [json.loads(line) for line in lines]

    def say(self, **message: Any) -> talk.Fact | None:
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
        assert isinstance(fact, talk.Agreed)
        assert fact.agreement.era == era
        expected = [] if era == "modern" else ["notifications/initialized"]
        assert [message["method"] for message in self.sent()] == expected


def ready(era: Era) -> Line:
    line = Line("legacy" if era == "legacy" else None)
    line.greet(era)
    return line


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_call_goes_there_and_its_answer_comes_back(era: Era) -> None:
    line = ready(era)
    line.talk.call(7, "tools/call", b'"name":"t","arguments":{}', b'"traceparent":"x"')
    (sent,) = line.sent()
    assert (sent["params"]["name"], sent["params"]["_meta"]["traceparent"]) == ("t", "x")
    assert (VERSION in sent["params"]["_meta"]) is (era == "modern")
    fact = line.say(id=sent["id"], result={"content": []})
    assert isinstance(fact, talk.CallAnswered)
    assert (fact.call, json.loads(bytes(fact.result))) == (7, {"content": []})


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_call_without_params_is_well_formed(era: Era) -> None:
    line = ready(era)
    line.talk.call(1, "ping", b"", b"")
    (sent,) = line.sent()
    assert ("_meta" in sent["params"]) is (era == "modern")


def test_a_probe_that_is_refused_leads_to_initialize() -> None:
    line = Line()
    probing = [line.talk.probing]
    line.greet("legacy")
    assert [*probing, line.talk.probing] == [True, False]
    assert line.talk.silence() is None


def test_silence_under_the_probe_wants_a_fresh_process() -> None:
    line = Line()
    line.talk.greet()
    assert line.talk.silence() == talk.Fresh()


def test_a_malformed_answer_to_the_probe_is_no_evidence() -> None:
    line = Line()
    line.talk.greet()
    (probe,) = line.sent()
    assert line.say(id=probe["id"], result=[]) is None
    assert line.sent()[0]["method"] == "initialize"


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_all_lists_are_walked(era: Era) -> None:
    line = ready(era)
    assert line.talk.list_all() is None
    asked = {message["method"]: message for message in line.sent()}
    assert list(asked) == ["tools/list", "resources/list", "resources/templates/list"]
    assert line.talk.listing
    line.say(id=asked["tools/list"]["id"], result={"tools": [{"name": "a"}], "nextCursor": "2"})
    (second,) = line.sent()
    assert second["params"]["cursor"] == "2"
    assert (VERSION in second["params"].get("_meta", {})) is (era == "modern")
    line.say(id=asked["resources/list"]["id"], error={"code": -32603, "message": "broken"})
    line.say(id=asked["resources/templates/list"]["id"], result=7)
    fact = line.say(id=second["id"], result={"tools": [{"name": "b"}]})
    assert isinstance(fact, talk.AllListed)
    assert len(fact.listed.tools) == 2
    assert fact.listed.missing == {"resources", "templates"}
    assert not line.talk.listing


def test_late_pages_of_a_walk_that_was_given_up_do_not_get_into_the_next() -> None:
    line = ready("legacy")
    line.talk.list_all()
    first = {message["method"]: message["id"] for message in line.sent()}
    line.talk.stop_listing()
    assert not line.talk.listing
    line.talk.list_all()
    second = {message["method"]: message["id"] for message in line.sent()}
    assert line.say(id=first["tools/list"], result={"tools": [{"name": "old"}]}) is None
    assert line.talk.strays == 1
    for method, id_ in second.items():
        fact = line.say(id=id_, result={"tools": [{"name": "new"}]} if method == "tools/list" else {"resources": []})
    assert isinstance(fact, talk.AllListed)
    assert json.loads(bytes(fact.listed.tools[0])) == {"name": "new"}


def test_a_cancelled_call_is_told_with_our_id_and_its_late_answer_is_dropped() -> None:
    line = ready("legacy")
    line.talk.call(1, "tools/call", b'"name":"t"', b"")
    (sent,) = line.sent()
    line.talk.cancel(1, "why")
    line.talk.cancel(1, "why")
    (cancelled,) = line.sent()
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"] == {"requestId": sent["id"], "reason": "why"}
    assert line.say(id=sent["id"], result={}) is None
    assert line.talk.strays == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"error": {"code": -32602, "message": "no"}}, talk.CallRefused),
        ({"result": 7}, talk.CallMalformed),
        ({}, talk.CallMalformed),
    ],
)
def test_a_call_that_fails_is_a_fact_too(answer: dict[str, Any], kind: type[Any]) -> None:
    line = ready("modern")
    line.talk.call(3, "tools/call", b'"name":"t"', b"")
    (sent,) = line.sent()
    fact = line.say(id=sent["id"], **answer)
    assert isinstance(fact, kind)
    assert fact.call == 3
    line.talk.cancel(3, "too late")
    assert line.sent() == []


def test_changes_are_facts_and_other_notifications_are_not() -> None:
    line = ready("legacy")
    for what in ("tools", "resources", "prompts"):
        assert line.say(method=f"notifications/{what}/list_changed") == talk.ListsChanged()
    assert line.say(method="notifications/progress", params={}) is None


def test_a_modern_server_is_asked_to_tell_of_changes_and_a_legacy_one_is_not() -> None:
    modern, legacy = ready("modern"), ready("legacy")
    modern.talk.listen()
    legacy.talk.listen()
    (listen,) = modern.sent()
    assert listen["method"] == "subscriptions/listen"
    assert listen["params"]["notifications"]["toolsListChanged"] is True
    assert legacy.sent() == []
    assert modern.say(id=listen["id"], result={}) is None


def test_a_legacy_server_may_ping_and_hears_that_nothing_else_is_there() -> None:
    line = ready("legacy")
    line.say(id=0, method="ping")
    line.say(id="x", method="sampling/createMessage", params={})
    pong, refusal = line.sent()
    assert pong == {"jsonrpc": "2.0", "id": 0, "result": {}}
    assert (refusal["id"], refusal["error"]["code"]) == ("x", -32601)


def test_a_modern_server_may_not_ask() -> None:
    line = ready("modern")
    line.say(id=0, method="ping")
    assert line.sent() == []


def test_ids_of_one_process_are_never_used_twice() -> None:
    line = ready("legacy")
    for call in range(50):
        line.talk.call(call, "ping", b"", b"")
    line.talk.list_all()
    ids = [message["id"] for message in line.sent()]
    assert len(set(ids)) == len(ids)
    assert all(isinstance(id_, str) for id_ in ids)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_list_over_the_limit_is_missing_and_says_why(era: Era) -> None:
    line = ready(era)
    line.talk.list_all()
    sent = {message["method"]: message["id"] for message in line.sent()}
    head = b'{"id":"' + sent.pop("tools/list").encode() + b'","result":{"tools":['
    assert line.talk.receive(Oversized(2000, 1000, head, b"]}}")) is None
    for id_ in sent.values():
        fact = line.say(id=id_, result={})
    assert isinstance(fact, talk.AllListed)
    assert fact.listed.failed == ("tools/list: it answered with 2000 bytes, over its limit of 1000 bytes",)
    assert "tools" in fact.listed.missing


def test_a_handshake_over_the_limit_is_refused_and_says_why() -> None:
    line = Line("legacy")
    line.talk.greet()
    (sent,) = line.sent()
    head = b'{"id":"' + sent["id"].encode() + b'","result":{"instructions":"'
    assert line.talk.receive(Oversized(2000, 1000, head, b"")) == talk.NoAgreement(
        "the server refused the handshake: it answered with 2000 bytes, over its limit of 1000 bytes"
    )

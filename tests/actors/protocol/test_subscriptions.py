"""The subscription of a modern server: opened anew for what is wanted, without a gap, and once for many."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
import pytest

from actors import codes
from actors.protocol.changes import SUBSCRIBE, UNSUBSCRIBE, ServerSubscription
from actors.protocol.facts import CallLost, ListenEnded, Listening
from actors.protocol.outbound import Outbound
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.peer import Answered, Failure, Refused

DONE = msgspec.Raw(b"{}")
TAKEN_BACK = "notifications/cancelled"


class Rig:
    """A subscription and what is said for it."""

    def __init__(self) -> None:
        self.out = Outbound(count(1), lambda name: ())
        self.subscription = ServerSubscription(self.out)

    def sent(self) -> list[dict[str, Any]]:
        messages = [msgspec.json.decode(b"".join(message.parts)) for message in self.out.messages]
        self.out.messages.clear()
        return messages

    def asked(self) -> tuple[str, list[str]]:
        """The one request that was sent: its id, and the resources it is about."""
        (message,) = self.sent()
        assert message["method"] == "subscriptions/listen"
        assert message["params"]["notifications"]["toolsListChanged"] is True
        return message["id"], message["params"]["notifications"].get("resourceSubscriptions", [])

    def asked_anew(self) -> tuple[str, list[str]]:
        """The request that follows what takes the one before back: its id, and the resources it is about."""
        _, message = self.sent()
        return message["id"], message["params"]["notifications"]["resourceSubscriptions"]

    def acknowledge(self, id_: str | None, *uris: str, lists: bool = True) -> Listening | None:
        meta = {} if id_ is None else {"_meta": {"io.modelcontextprotocol/subscriptionId": id_}}
        honoured = {"toolsListChanged": lists, "resourceSubscriptions": uris}
        return self.subscription.on_acknowledged(msgspec.Raw(jsonrpc.encode({"notifications": honoured, **meta})))

    def open(self) -> str:
        self.subscription.listen([], "modern")
        id_, _ = self.asked()
        assert self.acknowledge(id_) == Listening()
        assert self.sent() == []
        return id_


def test_a_resource_costs_another_subscription_and_the_old_one_goes_when_that_is_acknowledged() -> None:
    rig = Rig()
    old = rig.open()
    rig.subscription.call(7, SUBSCRIBE, "a")
    new, uris = rig.asked()
    assert (uris, new != old) == (["a"], True)
    assert rig.acknowledge(new, "a") == Listening(calls=(Answered(7, DONE),))
    (back,) = rig.sent()
    assert (back["method"], back["params"]["requestId"]) == (TAKEN_BACK, old)
    rig.subscription.call(8, UNSUBSCRIBE, "a")
    third, uris = rig.asked()
    assert uris == []
    assert rig.acknowledge(third, lists=False) == Listening(useful=False, calls=(Answered(8, DONE),))
    assert [back["params"]["requestId"] for back in rig.sent()] == [new]


def test_what_is_asked_for_while_one_is_opened_costs_one_more_in_all() -> None:
    rig = Rig()
    rig.open()
    rig.subscription.call(1, SUBSCRIBE, "a")
    first, _ = rig.asked()
    rig.subscription.call(2, SUBSCRIBE, "a")
    rig.subscription.call(3, SUBSCRIBE, "b")
    rig.subscription.call(4, SUBSCRIBE, "c")
    rig.subscription.listen(["d"], "modern")
    assert rig.sent() == []
    told = rig.acknowledge(first, "a")
    assert told is not None
    assert [call.tag for call in told.calls] == [1, 2]
    second, uris = rig.asked_anew()
    assert uris == ["a", "b", "c", "d"]
    told = rig.acknowledge(second, "b")
    assert told is not None
    assert [(type(call), call.tag) for call in told.calls] == [(Answered, 3), (Refused, 4)]


def test_a_call_that_nobody_waits_for_is_not_answered() -> None:
    rig = Rig()
    rig.open()
    for call, uri in ((1, "a"), (2, "b"), (3, "b")):
        rig.subscription.call(call, SUBSCRIBE, uri)
    for call in (1, 2):
        rig.subscription.drop(call)
    (listen,) = rig.sent()
    assert rig.acknowledge(listen["id"], "a") == Listening()
    second, _ = rig.asked_anew()
    assert rig.acknowledge(second, "a", "b") == Listening(calls=(Answered(3, DONE),))


def test_what_is_not_told_of_is_refused_and_not_asked_for_again() -> None:
    rig = Rig()
    rig.open()
    rig.subscription.call(1, SUBSCRIBE, "a")
    id_, _ = rig.asked()
    told = rig.acknowledge(id_)
    assert told is not None
    (refused,) = told.calls
    assert isinstance(refused, Refused)
    assert refused.error.code == codes.INVALID_PARAMS
    rig.sent()
    rig.subscription.call(2, SUBSCRIBE, "b")
    assert rig.asked()[1] == ["b"]


def test_a_resource_that_is_wanted_again_stays_wanted() -> None:
    rig = Rig()
    rig.open()
    rig.subscription.call(1, SUBSCRIBE, "a")
    id_, _ = rig.asked()
    rig.subscription.call(2, UNSUBSCRIBE, "a")
    rig.subscription.call(3, SUBSCRIBE, "a")
    told = rig.acknowledge(id_, "a")
    assert told is not None
    assert [call.tag for call in told.calls] == [1, 3]
    second, uris = rig.asked_anew()
    assert uris == ["a"]
    assert rig.acknowledge(second, "a") == Listening(calls=(Answered(2, DONE),))


def test_an_acknowledgement_of_another_one_is_none() -> None:
    rig = Rig()
    old = rig.open()
    assert rig.acknowledge(old) is None
    rig.subscription.call(1, SUBSCRIBE, "a")
    assert rig.acknowledge(old, "a") is None
    assert rig.acknowledge(None, "a") == Listening(calls=(Answered(1, DONE),))


def test_one_that_cannot_be_read_opens_it_and_promises_nothing() -> None:
    rig = Rig()
    rig.subscription.call(1, SUBSCRIBE, "a")
    told = rig.subscription.on_acknowledged(msgspec.Raw(b"{}"))
    assert told is not None
    assert told.useful
    assert [type(call) for call in told.calls] == [Refused]


FULL = Refused[Any]("listen", jsonrpc.ErrorObject(codes.INTERNAL_ERROR, "Subscription limit reached"))
UNKNOWN = Refused[Any]("listen", jsonrpc.ErrorObject(codes.METHOD_NOT_FOUND, "unknown"))
AWAY = Failure(id=b"1", cause="unavailable", reason="no")


def test_one_that_is_refused_fails_its_calls_with_the_servers_error_and_the_old_one_stays() -> None:
    rig = Rig()
    rig.open()
    rig.subscription.call(1, SUBSCRIBE, "a")
    rig.asked()
    assert rig.subscription.on_end(FULL, "other listen") == ListenEnded(again=False, calls=(Refused(1, FULL.error),))
    rig.subscription.call(2, SUBSCRIBE, "b")
    id_, uris = rig.asked()
    assert uris == ["b"]
    rig.acknowledge(id_, "b")
    rig.sent()
    rig.subscription.call(3, UNSUBSCRIBE, "b")
    assert rig.asked()[1] == []
    ended = rig.subscription.on_end(FULL, "listen")
    assert ended == ListenEnded(again=False, calls=(Refused(3, FULL.error),))


@pytest.mark.parametrize("end", [FULL, UNKNOWN, AWAY, None])
def test_where_none_is_left_another_one_is_opened_for_the_lists(end: Any) -> None:
    rig = Rig()
    rig.subscription.call(1, SUBSCRIBE, "a")
    rig.asked()
    ended = rig.subscription.on_end(end, "listen")
    assert ended is not None
    assert ended.again
    assert [(type(call), call.tag) for call in ended.calls] == [(CallLost if end is AWAY else Refused, 1)]
    rig.subscription.listen([], "modern")
    assert rig.asked()[1] == []
    assert rig.subscription.on_end(UNKNOWN, "listen") == ListenEnded(again=False)


def test_one_that_ends_while_another_is_opened_is_of_no_consequence_unless_that_fails() -> None:
    rig = Rig()
    rig.open()
    rig.subscription.call(1, SUBSCRIBE, "a")
    rig.asked()
    assert rig.subscription.on_end(None, "listen") is None
    rig.subscription.call(2, SUBSCRIBE, "b")
    assert rig.subscription.on_end(FULL, "other listen") == ListenEnded(again=False, calls=(Refused(1, FULL.error),))
    assert rig.asked()[1] == ["b"]


def test_the_server_may_take_back_the_one_that_is_open() -> None:
    rig = Rig()
    id_ = rig.open()
    assert rig.subscription.tag_of(b"") is None
    assert rig.subscription.tag_of(b'"x"') is None
    tag = rig.subscription.tag_of(jsonrpc.encode(id_))
    assert tag is not None
    assert rig.subscription.on_end(None, tag) == ListenEnded()


def test_a_legacy_server_is_asked_for_each_resource() -> None:
    rig = Rig()
    rig.subscription.listen(["a", "b"], "legacy")
    assert [(each["method"], each["params"]) for each in rig.sent()] == [
        (SUBSCRIBE, {"uri": "a"}),
        (SUBSCRIBE, {"uri": "b"}),
    ]

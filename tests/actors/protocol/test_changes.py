"""What a server says of its lists, of resources and of a subscription, by each notification and each end."""

from __future__ import annotations

import msgspec
import pytest

from actors import codes
from actors.protocol import changes
from actors.protocol.changes import Acknowledgement
from actors.protocol.facts import ListsChanged, ResourceUpdated
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.peer import Answered, Cause, Failure, Malformed, Refused

NOTHING = msgspec.Raw(b"{}")
LONGEST = "a" * changes.MAX_URI_CHARS


@pytest.mark.parametrize(
    ("method", "params", "fact"),
    [
        ("notifications/tools/list_changed", b"{}", ListsChanged()),
        ("notifications/resources/list_changed", b"7", ListsChanged()),
        ("notifications/tools/list_changed/", b"{}", None),
        (changes.UPDATED, b'{"uri":"file:///a","title":"of 2025-06-18"}', ResourceUpdated("file:///a")),
        (changes.UPDATED, b'{"uri":"%b"}' % LONGEST.encode(), ResourceUpdated(LONGEST)),
        (changes.UPDATED, b'{"uri":"%ba"}' % LONGEST.encode(), None),
        (changes.UPDATED, b'{"uri":7}', None),
        (changes.UPDATED, b"[" * 5000, None),
        (changes.UPDATED, b"", None),
    ],
)
def test_a_notification_tells_of_changes_or_of_something_else(method: str, params: bytes, fact: object) -> None:
    assert changes.read_change(method, msgspec.Raw(params)) == fact


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (b'{"notifications":{"promptsListChanged":true}}', Acknowledgement(b"", True, frozenset())),
        (b'{"notifications":{"promptsListChanged":false}}', Acknowledgement(b"", False, frozenset())),
        (b'{"notifications":{"resourceSubscriptions":["a"]}}', Acknowledgement(b"", False, frozenset("a"))),
        (
            b'{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":72}}',
            Acknowledgement(b"72", False, frozenset()),
        ),
        (b'{"notifications":7}', None),
        (b'{"notifications":{"toolsListChanged":"yes"}}', None),
        (b"[" * 5000, None),
    ],
)
def test_an_acknowledgement_says_what_will_be_told(params: bytes, said: Acknowledgement | None) -> None:
    assert changes.acknowledgement(msgspec.Raw(params)) == said


def test_resources_are_wanted_only_where_there_are_some() -> None:
    lists = {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}
    assert msgspec.json.decode(changes.listen_params([])) == {"notifications": lists}
    assert msgspec.json.decode(changes.listen_params(["a", "b"])) == {
        "notifications": {**lists, "resourceSubscriptions": ["a", "b"]}
    }


@pytest.mark.parametrize("code", [codes.METHOD_NOT_FOUND, codes.INVALID_PARAMS])
def test_who_does_not_know_subscriptions_is_not_asked_again(code: int) -> None:
    assert not changes.is_supported(Refused("listen", jsonrpc.ErrorObject(code, "no")))
    assert not changes.is_supported(Failure(id=b"1", cause="refused", reason="no"))


@pytest.mark.parametrize("cause", ["unavailable", "overloaded", "crashed", "protocol", "too_large", "unauthorized"])
def test_one_that_ends_for_any_other_reason_is_asked_for_again(cause: Cause) -> None:
    assert changes.is_supported(Failure(id=b"1", cause=cause, reason="no"))
    assert changes.is_supported(Refused("listen", jsonrpc.ErrorObject(codes.INTERNAL_ERROR, "full")))
    assert changes.is_supported(Answered("listen", NOTHING))
    assert changes.is_supported(Malformed("listen", "odd"))
    assert changes.is_supported(None)


@pytest.mark.parametrize(
    ("capabilities", "told"),
    [
        (b'{"resources":{"subscribe":true}}', True),
        (b'{"resources":{"subscribe":false}}', False),
        (b'{"resources":{}}', False),
        (b"{}", False),
        (b'{"resources":7}', False),
        (b"", False),
    ],
)
def test_who_declares_it_tells_of_changes_of_resources(capabilities: bytes, told: bool) -> None:
    assert changes.subscribable(msgspec.Raw(capabilities)) is told


@pytest.mark.parametrize(
    ("capabilities", "told"),
    [
        (b'{"extensions":{"io.modelcontextprotocol/events":{"listChanged":true}}}', True),
        (b'{"events":{"listChanged":true}}', True),
        (b'{"events":{"listChanged":true},"extensions":{"io.modelcontextprotocol/events":{}}}', False),
        (b'{"events":{}}', False),
        (b"{}", False),
    ],
)
def test_who_declares_it_tells_of_changes_of_event_types(capabilities: bytes, told: bool) -> None:
    assert changes.subscribable(msgspec.Raw(capabilities), changes.EVENTS_CHANGED) is told

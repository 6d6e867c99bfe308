"""What a server says of its lists and of a subscription, by each notification and each end."""

from __future__ import annotations

import msgspec
import pytest

from actors.protocol import changes, jsonrpc
from actors.protocol.facts import ListenEnded, Listening, ListsChanged
from actors.protocol.failure import Cause, Failure
from actors.protocol.peer import Answered, Malformed, Refused

NOTHING = msgspec.Raw(b"{}")


@pytest.mark.parametrize(
    ("method", "params", "fact"),
    [
        ("notifications/tools/list_changed", b"{}", ListsChanged()),
        ("notifications/resources/list_changed", b"7", ListsChanged()),
        ("notifications/resources/updated", b"{}", None),
        ("notifications/tools/list_changed/", b"{}", None),
        (changes.ACKNOWLEDGED, b'{"notifications":{"promptsListChanged":true}}', Listening()),
        (changes.ACKNOWLEDGED, b'{"notifications":{"promptsListChanged":false}}', Listening(useful=False)),
        (changes.ACKNOWLEDGED, b'{"notifications":{"resourceSubscriptions":["a"]}}', Listening(useful=False)),
        (changes.ACKNOWLEDGED, b'{"notifications":7}', Listening()),
        (changes.ACKNOWLEDGED, b"[" * 5000, Listening()),
    ],
)
def test_a_notification_tells_of_changes_of_a_subscription_or_of_something_else(
    method: str, params: bytes, fact: object
) -> None:
    assert changes.told(method, msgspec.Raw(params)) == fact


@pytest.mark.parametrize("code", [jsonrpc.METHOD_NOT_FOUND, jsonrpc.INVALID_PARAMS])
def test_who_does_not_know_subscriptions_is_not_asked_again(code: int) -> None:
    assert changes.over(Refused("listen", jsonrpc.ErrorObject(code, "no"))) is None
    assert changes.over(Failure(id=b"1", cause="refused", reason="no")) is None


@pytest.mark.parametrize("cause", ["unavailable", "overloaded", "crashed", "protocol", "too_large", "unauthorized"])
def test_one_that_ends_for_any_other_reason_is_asked_for_again(cause: Cause) -> None:
    assert changes.over(Failure(id=b"1", cause=cause, reason="no")) == ListenEnded()
    assert changes.over(Refused("listen", jsonrpc.ErrorObject(jsonrpc.INTERNAL_ERROR, "full"))) == ListenEnded()
    assert changes.over(Answered("listen", NOTHING)) == ListenEnded()
    assert changes.over(Malformed("listen", "odd")) == ListenEnded()

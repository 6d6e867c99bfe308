"""The parameters of the legacy methods that belong to the transport."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from actors.errors import InvalidArguments
from actors.protocol.exchanges import LogLevel
from supervisor.front.messages import read_cancelled, read_level


@pytest.mark.parametrize("level", get_args(LogLevel))
def test_each_of_the_eight_levels_is_read(level: str) -> None:
    assert read_level(msgspec.Raw(b'{"level":"%s","_meta":{}}' % level.encode())) == level
    assert len(get_args(LogLevel)) == 8


@pytest.mark.parametrize(
    "params", [b"", b"{}", b"[]", b'"debug"', b'{"level":null}', b'{"level":7}', b'{"level":"Debug"}', b'{"level":""}']
)
def test_anything_else_is_no_level_and_the_levels_are_named(params: bytes) -> None:
    with pytest.raises(InvalidArguments) as caught:
        read_level(msgspec.Raw(params))
    assert caught.value.code == -32602
    assert caught.value.message == (
        '"params.level" must be one of debug, info, notice, warning, error, critical, alert, emergency'
    )


@pytest.mark.parametrize(
    ("params", "key"),
    [
        (b'{"requestId":1}', 1),
        (b'{"requestId":"1"}', "1"),
        (b'{"requestId":1.0}', None),
        (b'{"requestId":true}', None),
        (b'{"requestId":null}', None),
        (b"{}", None),
        (b"", None),
    ],
)
def test_a_cancellation_names_a_request_by_type_and_value(params: bytes, key: int | str | None) -> None:
    cancelled, reason = read_cancelled(msgspec.Raw(params))
    assert (type(cancelled), cancelled, reason) == (type(key), key, "")


@pytest.mark.parametrize(
    ("text", "reason"), [(b'"enough"', "enough"), (b"5", ""), (b"null", ""), (b'"%b"' % (b"x" * 2000), "x" * 1000)]
)
def test_a_cancellation_may_give_a_reason(text: bytes, reason: str) -> None:
    assert read_cancelled(msgspec.Raw(b'{"requestId":1,"reason":' + text + b"}")) == (1, reason)

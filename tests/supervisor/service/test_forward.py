"""A server's error on its way to a client: without secrets, within limits, and otherwise as it was."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from actors.transport.redaction import Mask
from supervisor.host.workbench import SMALL_BYTES
from supervisor.service.fitting.results import Shown
from supervisor.service.forward import MAX_ERROR_BYTES, fitting_cost, mask_error, within_limits


def error(data: Any, message: str = "no") -> RemoteError:
    return RemoteError(ErrorObject(-32000, message, msgspec.Raw(json.dumps(data).encode())))


def test_a_port_and_a_switch_in_the_environment_do_not_spoil_the_data_of_an_error() -> None:
    given = error({"port": 3000, "debug": True, "level": "info"})
    mask = Mask({"PORT": "3000", "DEBUG": "true", "LOG_LEVEL": "info", "API_KEY": "hunter2"})
    assert mask_error(given, mask) is given


@pytest.mark.parametrize("data", [{"pin": 123456}, {"a": [1234567, "123456"]}, {"123456": None}])
def test_a_secret_that_is_a_number_is_hidden_and_the_rest_of_the_data_stays(data: Any) -> None:
    shown = mask_error(error({"more": [1, 2.5, True], **data}), Mask({"PASSWORD": "123456"})).error
    assert b"123456" not in bytes(shown.data)
    assert json.loads(bytes(shown.data))["more"] == [1, 2.5, True]


def test_data_out_of_all_proportion_is_left_out_and_the_error_stays() -> None:
    shown = within_limits(error("x" * MAX_ERROR_BYTES, "m" * (MAX_ERROR_BYTES + 5))).error
    assert (shown.code, len(shown.message), bytes(shown.data)) == (-32000, MAX_ERROR_BYTES, b"")
    given = error("x")
    assert within_limits(given) is given


def test_what_an_older_client_cannot_take_is_not_rewritten_on_the_loop() -> None:
    plain = b'{"content":[{"type":"text","text":"%b"}]}' % (b"x" * 100_000)
    odd = b'{"structuredContent":5,' + plain[1:]
    old, new = Shown("tools/call", "2025-11-25"), Shown("tools/call", "2026-07-28")
    costs = [fitting_cost(msgspec.Raw(body), to) for body in (plain, odd) for to in (old, new)]
    assert [cost > SMALL_BYTES for cost in costs] == [False, False, True, False]
    assert fitting_cost(msgspec.Raw(odd[:23] + b"}"), old) <= SMALL_BYTES
    assert fitting_cost(msgspec.Raw(plain * 3), new) > SMALL_BYTES

"""A server's error on its way to a client: without secrets, within limits, and otherwise as it was."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.protocol.jsonrpc import ErrorObject, RemoteError
from actors.transport.mask import Mask
from supervisor.service.forward import MAX_ERROR_BYTES, masked, within_limits


def error(data: Any, message: str = "no") -> RemoteError:
    return RemoteError(ErrorObject(-32000, message, msgspec.Raw(json.dumps(data).encode())))


def test_a_port_and_a_switch_in_the_environment_do_not_spoil_the_data_of_an_error() -> None:
    given = error({"port": 3000, "debug": True, "level": "info"})
    mask = Mask({"PORT": "3000", "DEBUG": "true", "LOG_LEVEL": "info", "API_KEY": "hunter2"})
    assert masked(given, mask) is given


@pytest.mark.parametrize("data", [{"pin": 123456}, {"a": [1234567, "123456"]}, {"123456": None}])
def test_a_secret_that_is_a_number_is_hidden_and_the_rest_of_the_data_stays(data: Any) -> None:
    shown = masked(error({"more": [1, 2.5, True], **data}), Mask({"PASSWORD": "123456"})).error
    assert b"123456" not in bytes(shown.data)
    assert json.loads(bytes(shown.data))["more"] == [1, 2.5, True]


def test_data_out_of_all_proportion_is_left_out_and_the_error_stays() -> None:
    shown = within_limits(error("x" * MAX_ERROR_BYTES, "m" * (MAX_ERROR_BYTES + 5))).error
    assert (shown.code, len(shown.message), bytes(shown.data)) == (-32000, MAX_ERROR_BYTES, b"")
    given = error("x")
    assert within_limits(given) is given

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.era_lock import ENVELOPE, MODERN, refusal
from tests.conformance.suites import Era


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.parametrize(
    ("message", "header", "legacy", "modern"),
    [
        (request("initialize", protocolVersion="2025-11-25"), "", None, -32022),
        (request("tools/list"), "2025-11-25", None, -32022),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, "", None, -32022),
        (request("server/discover"), "", -32601, None),
        (request("tools/list"), MODERN, -32601, None),
        (request("tools/list", _meta={ENVELOPE: MODERN}), "", -32601, None),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, "", None, None),
        ([request("tools/list")], "", None, None),
        (None, "", None, None),
    ],
)
def test_a_message_of_the_other_era_is_refused(
    message: Any, header: str, legacy: int | None, modern: int | None
) -> None:
    eras: tuple[Era, Era] = ("legacy", "modern")
    errors = [refusal(message, era, header) for era in eras]
    assert [error and error["code"] for error in errors] == [legacy, modern]


def test_a_modern_server_says_what_it_speaks_and_what_was_asked_for() -> None:
    error = refusal(request("initialize", protocolVersion="2025-11-25"), "modern")
    assert error is not None
    assert error["data"] == {"supported": [MODERN], "requested": "2025-11-25"}

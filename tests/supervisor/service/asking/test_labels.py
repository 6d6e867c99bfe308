"""Who asks, in front of what is asked."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.protocol.asking.input_required import InputRequest
from supervisor.service.asking.exchange import label, label_result

ELICIT = "elicitation/create"


@pytest.mark.case("X09")
@pytest.mark.parametrize(
    ("server", "method", "params", "shown"),
    [
        ("shop", ELICIT, {"message": "Sure?", "n": 1}, {"message": "[shop] Sure?", "n": 1}),
        ("", ELICIT, {"message": "Sure?"}, {"message": "Sure?"}),
        ("shop", "sampling/createMessage", {"message": "Sure?"}, {"message": "Sure?"}),
        ("shop", ELICIT, {"message": 7}, {"message": 7}),
        ("shop", ELICIT, {}, {}),
        ("shop", ELICIT, [], []),
    ],
)
def test_a_form_says_whose_it_is(server: str, method: str, params: Any, shown: Any) -> None:
    assert json.loads(bytes(label(server, method, msgspec.Raw(json.dumps(params).encode())))) == shown


def test_so_does_an_incomplete_result_and_the_rest_of_it_stays() -> None:
    asked = {"a": InputRequest(ELICIT, msgspec.Raw(b'{"message":"?","x":1e2}')), "b": InputRequest("roots/list")}
    body = label_result("shop", b'{"resultType":"input_required","inputRequests":{},"requestState":"s","z":1.0}', asked)
    assert body == (
        b'{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":'
        b'{"message":"[shop] ?","x":1e2}},"b":{"method":"roots/list","params":{}}},"requestState":"s","z":1.0}'
    )

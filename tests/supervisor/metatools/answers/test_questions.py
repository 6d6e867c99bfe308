"""Questions in results: what a model is told, and what it must never be asked."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.protocol.input_required import InputRequest
from supervisor.metatools.answers.questions import is_secret, told


def form(**properties: Any) -> msgspec.Raw:
    schema = {"type": "object", "properties": properties}
    return msgspec.Raw(json.dumps({"message": "m", "requestedSchema": schema}).encode())


@pytest.mark.parametrize(
    ("params", "secret"),
    [
        (form(name={"type": "string"}), False),
        (form(pinboard={"type": "string"}, tokens_used={"type": "integer"}), True),
        (form(pinboard={"type": "string"}), False),
        (form(password={"type": "string"}), True),
        (form(a={"type": "string", "title": "Your API key"}), True),
        (form(a={"type": "string", "title": "PIN"}), True),
        (form(a={"type": "string", "format": "password"}), True),
        (form(a={"type": "string", "writeOnly": True}), True),
        (msgspec.Raw(b'{"message":"m"}'), False),
        (msgspec.Raw(b'{"requestedSchema":7}'), True),
        (msgspec.Raw(b"[]"), True),
        (msgspec.Raw(b'{"mode":"url","url":"https://example.com/password"}'), False),
    ],
)
def test_what_is_secret_does_not_pass_through_a_model(params: msgspec.Raw, secret: bool) -> None:
    assert is_secret(params) is secret


def test_a_model_is_told_what_to_ask_and_how_to_go_on() -> None:
    questions = {
        "question-1": InputRequest("elicitation/create", form(name={"type": "string"})),
        "question-2": InputRequest(
            "elicitation/create", msgspec.Raw(b'{"mode":"url","url":"https://pay.example/1","message":"Pay"}')
        ),
        "question-3": InputRequest("elicitation/create", msgspec.Raw(b"[]")),
    }
    result = json.loads(told("shop", questions, "mcpvisor-x", 299.9))
    text, structured = result["content"][0]["text"], result["structuredContent"]
    assert "isError" not in result
    assert structured["continuation"] == "mcpvisor-x"
    assert structured["expires_in_s"] == 300
    assert structured["questions"]["question-1"]["requestedSchema"]["properties"] == {"name": {"type": "string"}}
    assert structured["questions"]["question-2"] == {"message": "Pay", "url": "https://pay.example/1"}
    assert structured["questions"]["question-3"] == {"message": "", "requestedSchema": {}}
    for part in ("'shop'", "mcpvisor-x", "https://pay.example/1", '"name": {"type": "string"}', "within 300 s"):
        assert part in text

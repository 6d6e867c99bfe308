"""Questions in results: what a model is told, and what it must never be asked."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from actors.protocol.asking.input_required import InputRequest
from supervisor.metatools.questions import ToldQuestion, question_result


def form(**properties: Any) -> msgspec.Raw:
    schema = {"type": "object", "properties": properties}
    return msgspec.Raw(json.dumps({"message": "m", "requestedSchema": schema}).encode())


def asked(params: msgspec.Raw, page: str = "", *, there_only: bool = False) -> ToldQuestion:
    return ToldQuestion(InputRequest("elicitation/create", params), page, there_only)


def test_a_model_is_told_what_to_ask_and_how_to_go_on() -> None:
    questions = {
        "question-1": asked(form(name={"type": "string"}), "http://127.0.0.1:1/questions/a"),
        "question-2": asked(msgspec.Raw(b'{"mode":"url","url":"https://pay.example/1","message":"Pay"}')),
        "question-3": asked(msgspec.Raw(b"[]")),
    }
    result = json.loads(question_result("shop", questions, "mcpvisor-x", 299.9))
    text, structured = result["content"][0]["text"], result["structuredContent"]
    assert "isError" not in result
    assert structured["continuation"] == "mcpvisor-x"
    assert structured["expires_in_s"] == 300
    assert structured["questions"]["question-1"]["requestedSchema"]["properties"] == {"name": {"type": "string"}}
    assert structured["questions"]["question-2"] == {"message": "Pay", "url": "https://pay.example/1"}
    assert structured["questions"]["question-3"] == {"message": "", "requestedSchema": {}}
    for part in ("'shop'", "mcpvisor-x", "https://pay.example/1", '"name": {"type": "string"}', "within 300 s"):
        assert part in text
    assert "as well answer at http://127.0.0.1:1/questions/a" in text


def test_of_what_only_a_person_may_answer_a_model_learns_where() -> None:
    page = "http://127.0.0.1:1/questions/b"
    questions = {"question-1": asked(form(password={"type": "string"}), page, there_only=True)}
    result = json.loads(question_result("shop", questions, "mcpvisor-x", 60.0))
    assert result["structuredContent"]["questions"] == {"question-1": {"message": "m", "page": page}}
    text = result["content"][0]["text"]
    assert f"open {page} and answer there" in text
    assert '"answers"' not in text
    assert '"continuation": "mcpvisor-x", once they have answered there' in text

"""Failed calls as tests look at them: what a model reads and what a program reads, however they are told."""

from __future__ import annotations

from typing import Any


def failure(answer: Any) -> dict[str, Any]:
    """Return code, message and data of a call that failed, out of its result: the message is what a model reads."""
    assert "error" not in answer, answer
    result = answer["result"]
    assert result["isError"] is True, result
    (block,) = result["content"]
    error = result["structuredContent"]["error"]
    assert error["message"]
    return {"code": error["code"], "message": block["text"], "data": error}

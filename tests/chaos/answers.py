"""What an answer says about its request: a result, or what went wrong and whether the tool ran. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.chaos.history import Request, foreign_in

SHOWN = 300
"""Characters of an answer that are kept for a witness."""
REFUSING = frozenset({401, 403, 429})
"""For who may not come in; the last one for who tries that too often."""
OF_PROTOCOL = frozenset({-32700, -32600, -32601, -32602})

Json = dict[str, Any]


def settle(request: Request, answer: Any, at_s: float, marks: Sequence[str]) -> None:
    """Note an answer with the id of a request. `marks`: what its user may never see."""
    request.answers += 1
    if request.answers > 1:
        return
    text = json.dumps(answer, ensure_ascii=False)
    request.ended_s = at_s
    request.foreign = foreign_in(text, request.key, marks)
    request.own = request.key in text
    request.how, request.type, request.outcome = _how(answer)
    if request.how != "result" or request.foreign or not request.own:
        request.text = text[:SHOWN]


def refuse(request: Request, status: int, text: str, at_s: float) -> None:
    """Note that a request was answered by HTTP alone."""
    request.answers += 1
    request.ended_s = at_s
    request.how = "refused" if status in REFUSING else "untyped"
    request.text = f"HTTP {status}: {text[:SHOWN]}"


def _how(answer: Any) -> tuple[Any, str, str]:
    if not isinstance(answer, dict):
        return "untyped", "", ""
    if isinstance(result := answer.get("result"), dict):
        if not result.get("isError"):
            return "result", "", ""
        ours = (result.get("structuredContent") or {}).get("error")
        if not isinstance(ours, dict):
            return "tool error", "", ""
        how = "tool error" if ours.get("type") == "server_error" else "error"
        return how if ours.get("type") else "untyped", str(ours.get("type")), str(ours.get("outcome", ""))
    error = answer.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("code"), int) or not error.get("message"):
        return "untyped", "", ""
    data: Json = error["data"] if isinstance(error.get("data"), dict) else {}
    if not data.get("type"):
        return "error" if error["code"] in OF_PROTOCOL else "untyped", str(error["code"]), ""
    return "error", str(data["type"]), str(data.get("outcome", ""))

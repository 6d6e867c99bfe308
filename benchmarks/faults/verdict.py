"""The rule by which a trial is passed, and the words for a miss. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

Kind = Literal["answer", "error", "status", "cut", "nothing"]
Mark = Literal["passed", "missed", "not offered"]
GATEWAY = range(500, 600)
HONEST = (501, 505)
"""What a client may be told of its own request: that this is not implemented, and that the version is unknown."""


class Outcome(msgspec.Struct, frozen=True):
    """What a client got for a request, and after how long.

    `answer` and `error` are messages of the protocol, `status` an HTTP status with something else, `cut` a connection
    that ended early or was refused, `nothing` none of these until the client's deadline.
    """

    kind: Kind
    text: str
    took_s: float
    status: int = 0

    @property
    def typed(self) -> bool:
        """Whether it is a message that a program can read."""
        return self.kind in ("answer", "error")


class Trial(msgspec.Struct, frozen=True):
    """One line of the table: what was tried, whether it was passed, and what was seen if not."""

    group: str
    name: str
    mark: Mark
    says: str = ""


def outcome(status: int, message: Any, took_s: float, body: str = "") -> Outcome:
    """Return what a whole HTTP answer means. `message` is its JSON-RPC answer, if there is one."""
    if isinstance(message, dict) and isinstance(message.get("error"), dict):
        return Outcome("error", str(message["error"].get("message", ""))[:200], took_s, status)
    if isinstance(message, dict) and isinstance(result := message.get("result"), dict):
        # Who calls several tools at once says of each whether it failed.
        said = result.get("structuredContent")
        failed = result.get("isError") or (isinstance(said, dict) and said.get("success") is False)
        return Outcome("error" if failed else "answer", _words(result) or str(result), took_s, status)
    return Outcome("status", body[:200], took_s, status)


def _words(result: dict[str, Any]) -> str:
    content = result.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return " ".join(str(part["text"]) for part in parts if "text" in part)


def fault_of_call(said: Outcome, key: str, runs: int) -> str:
    """Return what is wrong with what a call was answered with; nothing if it was the answer or a typed error.

    `key` is in each right answer; `runs` is how often the server was asked.
    """
    if runs > 1:
        return f"the call was sent {runs} times"
    match said.kind:
        case "nothing":
            return "hangs until the client's timeout"
        case "cut":
            return "the connection ends without an answer"
        case "status":
            return f"HTTP {said.status} without an error of the protocol"
        case "answer" if key not in said.text:
            return "an answer that is not the server's"
    return ""


def fault_of_refusal(said: Outcome) -> str:
    """Return what is wrong with what a malformed request was answered with; to close is right, too."""
    if said.kind == "nothing":
        return "hangs until the client's timeout"
    if said.status in GATEWAY and said.status not in HONEST:
        return f"HTTP {said.status}"
    return ""


def trial(group: str, name: str, fault: str, after: str = "", *, lacks: str = "") -> Trial:
    """Return a trial with what was wrong in it and `after` it; it is passed if nothing was.

    `lacks` says what the subject does not offer, for want of which it is not to blame for what is wrong afterwards.
    """
    if lacks and after and not fault:
        return Trial(group, name, "not offered", lacks)
    found = dict.fromkeys(each for each in (fault, after) if each)
    return Trial(group, name, "missed" if found else "passed", "; ".join(found))


def score(trials: Iterable[Trial]) -> str:
    """Return how many were passed of those that were tried; a dash if none was."""
    tried = [each for each in trials if each.mark != "not offered"]
    return f"{sum(each.mark == 'passed' for each in tried)} of {len(tried)}" if tried else "-"

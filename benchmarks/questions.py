"""A client that is asked: one call after the other, each with one question that is answered at once."""

from __future__ import annotations

import http.client
import time
from typing import Any

import msgspec

from actors.protocol.agreement.versions import Era
from benchmarks import client as mcp
from benchmarks.execute import Outcome
from benchmarks.table import percentile

ASK: mcp.Tool = ("ask", {})
FORMS: mcp.Capabilities = {"elicitation": {"form": {}}}
GIVEN: dict[str, Any] = {"action": "accept", "content": {"name": "Ada"}}


class AskedClient(mcp.Client):
    """Answers what it is asked: by a message of its own, or by making the request again, as its era has it.

    A job as `execute.Job` is one. A context manager opens and closes it.
    """

    def __init__(self, port: int, era: Era, path: str) -> None:
        super().__init__(port, era, path, FORMS)
        self._answers = http.client.HTTPConnection("127.0.0.1", port, timeout=mcp.TIMEOUT_S)

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        super().__exit__()

    def run(self, seconds: float) -> Outcome:
        """Run one round. Raises `RuntimeError` if an answer is not what was said."""
        begin, took, size = time.perf_counter(), [], 0
        while (now := time.perf_counter()) - begin < seconds:
            size = self._asked() if self.era == "legacy" else self._made_again()
            took.append((time.perf_counter() - now) * 1000)
        middle, late = percentile(took, 0.5), percentile(took, 0.99)
        return Outcome(len(took), time.perf_counter() - begin, 0.0, middle, late, size)

    def _made_again(self) -> int:
        call = mcp.call(ASK, 1, "modern", FORMS)
        headers = {**self.headers, **mcp.routing(ASK, "modern")}
        first = _last(self.post(call, headers)[1])["result"]
        (key,) = first["inputRequests"]
        call["params"] |= {"inputResponses": {key: GIVEN}, "requestState": first["requestState"]}
        _, body = self.post({**call, "id": 2}, headers)
        return _checked(_last(body))

    def _asked(self) -> int:
        response = self.open(mcp.call(ASK, 1, "legacy"), self.headers)
        question = _event(response)
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": GIVEN}
        self._answers.request("POST", self.path, msgspec.json.encode(answer), self.headers)
        self._answers.getresponse().read()
        size = _checked(_event(response))
        response.read()
        return size


def _event(response: http.client.HTTPResponse) -> Any:
    """Read the next message of a stream, whose first event may have none."""
    while not (line := response.readline()).startswith(b"data: {"):
        if not line:
            raise RuntimeError("the stream ended before the answer")
    return msgspec.json.decode(line[6:])


def _last(body: bytes) -> Any:
    return msgspec.json.decode(body.strip().rpartition(b"data: ")[2])


def _checked(answer: Any) -> int:
    text = answer.get("result", {}).get("content", [{}])[0].get("text")
    if text != "Ada":
        raise RuntimeError(f"a question was answered, and the call with {msgspec.json.encode(answer)[:1000]!r}")
    return len(text)

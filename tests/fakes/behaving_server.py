"""A server that behaves as a real one was seen to: `python -m tests.fakes.behaving_server NAME`, over stdio.

`BEHAVIOURS` says what it does. Its tool `echo` gives a text back, `heard` says how its own questions were answered.
Standard library only; `serving` plays the same for the fake transports.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from tests.fakes.behaviour import UNKNOWN_TOOL, Behaviour
from tests.fakes.behaviours import BEHAVIOURS

META = "io.modelcontextprotocol/"
COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"

Step = bytes | float
"""Bytes to write, or seconds to wait."""


class Player:
    """Plays one process, or one session, of a behaviour."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._pinned = ""
        self._deaf = False
        self._times: dict[str, int] = {}
        self._heard: dict[str, Any] = {}

    def take(self, line: bytes) -> Iterator[Step]:
        """Take one message. Raises `SystemExit` where the server ends."""
        if self._deaf:
            raise SystemExit(1)
        message = json.loads(line)
        method = message.get("method", "")
        if not method:
            self._heard[str(message["id"])] = message["error"]["code"] if "error" in message else message["result"]
        elif "id" not in message:
            yield from self._say(self._behaviour.after.get(method, ()))
        else:
            yield from self._answered(method, message)

    def _say(self, said: Iterable[dict[str, Any] | bytes]) -> Iterator[bytes]:
        for each in said:
            yield each if isinstance(each, bytes) else self._behaviour.written(each)

    def _answered(self, method: str, message: dict[str, Any]) -> Iterator[Step]:
        behaviour = self._behaviour
        if not self._times:
            yield behaviour.slow
        self._times[method] = self._times.get(method, 0) + 1
        answer = self._answer(method, message.get("params", {}))
        if self._deaf:
            return
        if answer == {"result": LISTEN}:
            meta = {META + "subscriptionId": message["id"]}
            yield behaviour.written({"method": ACKNOWLEDGED, "params": {"notifications": {}, "_meta": meta}})
            return
        yield from self._say(behaviour.before.get(method, ()))
        yield behaviour.written({"id": message["id"], **answer})
        yield from self._say(behaviour.after.get(method, ()))

    def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        behaviour = self._behaviour
        special = behaviour.first.get(method) if self._times[method] == 1 else None
        if special is not None:
            return dict(special)
        era = "modern" if META + "protocolVersion" in params.get("_meta", {}) else "legacy"
        if method not in behaviour.answers and (
            era not in behaviour.eras or (behaviour.pins and self._pinned not in ("", era))
        ):
            return self._of_another_era(era)
        self._pinned = era
        if method == "tools/call" and params["name"] not in [each["name"] for each in behaviour.tools]:
            unknown = {"error": {"code": -32602, "message": f"Unknown tool: {params['name']}"}}
            return dict(behaviour.answers.get(UNKNOWN_TOOL, unknown))
        special = behaviour.calls.get(params["name"]) if method == "tools/call" else behaviour.answers.get(method)
        if special is not None:
            return self._whole(dict(special), era)
        result = self._modern(method, params) if era == "modern" else self._legacy(method, params)
        return {"error": behaviour.unknown} if result is None else {"result": result}

    def _whole(self, answer: dict[str, Any], era: str) -> dict[str, Any]:
        if era == "modern" and isinstance(answer.get("result"), dict):
            answer["result"] = {**COMPLETE, **answer["result"]}
        return answer

    def _of_another_era(self, era: str) -> dict[str, Any]:
        behaviour = self._behaviour
        if era == "legacy":
            data = {"supported": ["2026-07-28"], "requested": "2025-11-25"}
            return {"error": {"code": -32022, "message": "Unsupported protocol version", "data": data}}
        if behaviour.dies:
            raise SystemExit(1)
        self._deaf = behaviour.deaf
        return {"error": behaviour.unknown}

    def _legacy(self, method: str, params: dict[str, Any]) -> Any:
        behaviour = self._behaviour
        if method == "initialize":
            more = {} if behaviour.bare else {"serverInfo": {"name": "real", "version": "1"}, "instructions": "Use it."}
            return {"protocolVersion": behaviour.version, "capabilities": behaviour.capabilities, **more}
        return {} if method == "ping" else self._common(method, params)

    def _modern(self, method: str, params: dict[str, Any]) -> Any:
        behaviour = self._behaviour
        if method == LISTEN:
            return LISTEN
        if method == "server/discover":
            result: Any = {"supportedVersions": ["2026-07-28"], "capabilities": behaviour.capabilities}
        else:
            result = self._common(method, params)
        return result if behaviour.bare or result is None else {**COMPLETE, **result}

    def _common(self, method: str, params: dict[str, Any]) -> Any:
        behaviour = self._behaviour
        if method == "tools/list":
            return {"tools": behaviour.tools, **behaviour.pages.get(params.get("cursor"), {})}
        if method == "tools/call":
            text = json.dumps(self._heard) if params["name"] == "heard" else params["arguments"]["text"]
            return {"content": [{"type": "text", "text": text}]}
        return None


def main(name: str) -> None:
    """Play a behaviour on stdin and stdout until the input ends."""
    behaviour = BEHAVIOURS[name]
    player = Player(behaviour)
    os.write(2, behaviour.stderr)
    sys.stdout.buffer.write(behaviour.start)
    sys.stdout.flush()
    for line in sys.stdin.buffer:
        for step in player.take(line):
            if isinstance(step, bytes):
                sys.stdout.buffer.write(step)
                sys.stdout.flush()
            else:
                time.sleep(step)  # noqa: TID251  (a process of its own)
    code, seconds = behaviour.end
    time.sleep(seconds)  # noqa: TID251  (a process of its own)
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1])

"""A server with events over stdio, by the text of the extension (SEP-3415), in both eras: `events.py`.

`tick` has happened 100 times, and the last five can be had again. A stream ends by itself where its arguments say so.
"""

from __future__ import annotations

import json
import sys
from typing import Any

KEPT, NOW = 5, 100
EVENTS = "io.modelcontextprotocol/events"
META = "io.modelcontextprotocol/subscriptionId"
INFO = {"name": "events", "version": "1"}
CAPABILITIES: dict[str, Any] = {"extensions": {EVENTS: {"listChanged": False}}, "tools": {}}
TYPES = [
    {
        "name": "tick",
        "description": "Fires when a second is over",
        "delivery": ["poll", "push", "webhook"],
        "inputSchema": {"type": "object"},
        "payloadSchema": {"type": "object"},
    },
    {"name": "hook", "delivery": ["webhook"], "inputSchema": {"type": "object"}, "payloadSchema": {"type": "object"}},
]


class Refused(Exception):
    """An error of the extension: its code and its data."""


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def occurrence(at: int) -> dict[str, Any]:
    return {"eventId": f"evt_{at}", "name": "tick", "timestamp": "2026-11-30T00:00:00Z", "data": {"at": at}}


def completed(params: dict[str, Any]) -> dict[str, Any]:
    """What each result has in the modern era."""
    modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
    return {"resultType": "complete"} if modern else {}


def since(cursor: Any) -> tuple[int, bool]:
    """The first that is owed, and whether some before it are gone."""
    if cursor is None:
        return NOW, False
    return max(int(cursor), NOW - KEPT), int(cursor) < NOW - KEPT


def poll(params: dict[str, Any]) -> dict[str, Any]:
    first, truncated = since(params.get("cursor"))
    until = min(NOW, first + params.get("maxEvents", NOW))
    events = [occurrence(at) for at in range(first, until)]
    return {"events": events, "cursor": str(until), "truncated": truncated, "hasMore": until < NOW, "nextPollMs": 1000}


def stream(params: dict[str, Any], id_: Any) -> None:
    first, truncated = since(params.get("cursor"))

    def tell(what: str, **said: Any) -> None:
        send({"method": f"notifications/events/{what}", "params": {**said, "_meta": {META: id_}}})

    tell("active", cursor=str(first), truncated=truncated)
    for at in range(first, NOW):
        tell("event", **occurrence(at), cursor=str(at + 1))
    tell("error", error={"code": -32603, "message": "UpstreamError"})
    tell("heartbeat", cursor=str(NOW))
    if params["arguments"].get("ends"):
        send({"id": id_, "result": {**completed(params), "_meta": {META: id_}}})


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": INFO}
        case "server/discover":
            return {
                "supportedVersions": ["2026-07-28"],
                "capabilities": CAPABILITIES,
                "ttlMs": 0,
                "cacheScope": "public",
            }
        case "tools/list":
            return {"tools": [], "ttlMs": 0, "cacheScope": "public"}
        case "events/list":
            return {"events": TYPES}
        case "events/poll" | "events/subscribe" | "events/unsubscribe" if params.get("name") != "tick":
            raise Refused(-32023, {"kind": "event"})
        case "events/poll":
            return poll(params)
        case "events/subscribe":
            return {"id": "sub_1", "refreshBefore": "2026-11-30T01:00:00Z", "cursor": str(NOW), "truncated": False}
        case "events/unsubscribe" | "ping":
            return {}
    raise Refused(-32601, None)


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        id_, method, params = message["id"], message["method"], message.get("params", {})
        if method == "events/stream":
            stream(params, id_)
            continue
        try:
            send({"id": id_, "result": {**completed(params), **result_of(method, params)}})
        except Refused as refused:
            code, data = refused.args
            send({"id": id_, "error": {"code": code, "message": "NotFound", **({"data": data} if data else {})}})


if __name__ == "__main__":
    main()

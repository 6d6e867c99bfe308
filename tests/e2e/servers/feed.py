"""A server whose events are the lines of a file, over stdio, in both eras: `feed.py FILE poll|push [forgets]`.

`forgets`: it cannot replay, so its cursors are null. Each line is the id of an event.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

FILE, DELIVERY = Path(sys.argv[1]), sys.argv[2]
REPLAYS = "forgets" not in sys.argv
EVENTS = "io.modelcontextprotocol/events"
META = "io.modelcontextprotocol/subscriptionId"
LOOK_S = 0.02
CAPABILITIES: dict[str, Any] = {"extensions": {EVENTS: {}}, "tools": {}}
OBJECT = {"type": "object"}
TYPES = [
    {"name": "line", "delivery": [DELIVERY], "inputSchema": OBJECT, "payloadSchema": OBJECT},
    {"name": "hook", "delivery": ["webhook"], "inputSchema": OBJECT, "payloadSchema": OBJECT},
]
_writing = threading.Lock()
_never = threading.Event()


def send(message: dict[str, Any]) -> None:
    with _writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def lines() -> list[str]:
    return FILE.read_text().splitlines()


def occurrence(id_: str) -> dict[str, Any]:
    return {"eventId": id_, "name": "line", "timestamp": "2026-11-30T00:00:00Z", "data": {"pid": DELIVERY}}


def cursor(place: int) -> str | None:
    return str(place) if REPLAYS else None


def begin(params: dict[str, Any]) -> int:
    given = params.get("cursor")
    return len(lines()) if given is None else int(given)


def poll(params: dict[str, Any]) -> dict[str, Any]:
    first = begin(params)
    events = [occurrence(each) for each in lines()[first:]]
    until = first + len(events)
    return {"events": events, "cursor": cursor(until), "truncated": False, "hasMore": False, "nextPollMs": 1000}


def stream(params: dict[str, Any], id_: Any, ended: set[Any]) -> None:
    place = begin(params)

    def tell(what: str, **said: Any) -> None:
        send({"method": f"notifications/events/{what}", "params": {**said, "_meta": {META: id_}}})

    tell("active", cursor=cursor(place), truncated=False)
    while id_ not in ended:
        for each in lines()[place:]:
            place += 1
            tell("event", **occurrence(each), cursor=cursor(place))
        _never.wait(LOOK_S)


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            info = {"name": "feed", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": info}
        case "server/discover":
            versions = ["2026-07-28"]
            return {"supportedVersions": versions, "capabilities": CAPABILITIES, "ttlMs": 0, "cacheScope": "public"}
        case "tools/list":
            return {"tools": [], "ttlMs": 0, "cacheScope": "public"}
        case "events/list":
            return {"events": TYPES}
        case "events/poll" if DELIVERY == "poll":
            return poll(params)
        case "ping":
            return {}
    return None


def main() -> None:
    ended: set[Any] = set()
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params", {})
        if method == "notifications/cancelled":
            ended.add(params["requestId"])
        elif method == "events/stream" and DELIVERY == "push":
            threading.Thread(target=stream, args=(params, message["id"], ended), daemon=True).start()
        elif "id" in message and method is not None:
            modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
            result = result_of(method, params)
            if result is None:
                send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
            else:
                send({"id": message["id"], "result": {**({"resultType": "complete"} if modern else {}), **result}})


if __name__ == "__main__":
    main()

"""An MCP server over Streamable HTTP on bare sockets that asks, tells of progress and of a resource that changes.

`python -m benchmarks.bridge_server PORT ERA`: `legacy` (2025-11-25) or `modern` (2026-07-28), and only that, whatever
the path is. Tools: `echo`; `ask` asks for a name, in the way of its era, and answers with it; `flood` tells of progress
`rate` times a second for `seconds`; `write` changes the resource `memo://one`, tells every subscriber, and answers with
the time of that, in seconds of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import count
from typing import Any

import trio

from benchmarks.bare_http import Requests

MEMO = "memo://one"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
QUESTION = {"mode": "form", "message": "Who is it?", "requestedSchema": FORM}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "ask", "flood", "write")]
CAPABILITIES = {"tools": {}, "resources": {"subscribe": True}}
INFO = {"name": "bridge", "version": "1"}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
TICK_S = 0.01
"""Between two bursts of a flood: a server that gets up for each note takes a tenth of a processor from everybody."""
OPEN = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

Message = dict[str, Any]


class Server:
    """One server for all connections. A legacy session is one subscriber, whose id is its number."""

    def __init__(self, era: str) -> None:
        self.modern = era == "modern"
        self._numbers = count(1)
        self._streams: dict[trio.SocketStream, bytes] = {}
        self._answers: dict[str, tuple[trio.Event, list[Any]]] = {}

    async def converse(self, stream: trio.SocketStream) -> None:
        """Serve one connection until it ends."""
        try:
            await self._requests(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self._streams.pop(stream, None)

    async def _requests(self, stream: trio.SocketStream) -> None:
        requests = Requests(stream)
        while (request := await requests.next()) is not None:
            head, body = request
            if head.startswith("post"):
                await self._message(stream, json.loads(body))
            elif head.startswith("get") and not self.modern:
                await self._listen(stream, {})
            else:
                await stream.send_all(_plain("200 OK" if head.startswith("delete") else "405 No", b""))

    async def _message(self, stream: trio.SocketStream, message: Message) -> None:
        match message:
            case {"method": "subscriptions/listen"} if self.modern:
                meta = {SUBSCRIPTION: message["id"]}
                wanted = message["params"]["notifications"]
                await self._listen(stream, meta, wanted)
            case {"method": "tools/call", "params": {"name": "ask"}} if not self.modern:
                await self._ask(stream, message)
            case {"method": "tools/call", "params": {"name": "flood"}}:
                await self._flood(stream, message)
            case {"method": _, "id": _}:
                await stream.send_all(await self._answered(message))
            case {"id": str(id_)} if id_ in self._answers:
                event, answer = self._answers.pop(id_)
                answer.append(message["result"])
                event.set()
                await stream.send_all(_plain("202 Accepted", b""))
            case _:
                await stream.send_all(_plain("202 Accepted", b""))

    async def _listen(self, stream: trio.SocketStream, meta: Message, wanted: Message | None = None) -> None:
        """Keep a stream of what changes, until it breaks off."""
        await stream.send_all(OPEN)
        if wanted is not None:
            acknowledged = {"notifications": wanted, "_meta": meta}
            await stream.send_all(_event(_note("notifications/subscriptions/acknowledged", acknowledged)))
        updated = _note("notifications/resources/updated", {"uri": MEMO, **({"_meta": meta} if meta else {})})
        self._streams[stream] = _event(updated)
        await stream.receive_some(1)

    async def _ask(self, stream: trio.SocketStream, message: Message) -> None:
        id_ = f"question-{next(self._numbers)}"
        event, answer = self._answers[id_] = trio.Event(), []
        question = {"jsonrpc": "2.0", "id": id_, "method": "elicitation/create", "params": QUESTION}
        await stream.send_all(OPEN + _event(question))
        await event.wait()
        await stream.send_all(_event(self._result(message, _text(answer[0]["content"]["name"]))) + _END)

    async def _flood(self, stream: trio.SocketStream, message: Message) -> None:
        """Send what is due every millisecond, each message an event of its own."""
        arguments = message["params"]["arguments"]
        token = message["params"]["_meta"]["progressToken"]
        await stream.send_all(OPEN)
        begin, sent, total = trio.current_time(), 0, int(arguments["rate"] * arguments["seconds"])
        while sent < total:
            await trio.sleep(TICK_S)
            due = min(total, int((trio.current_time() - begin) * arguments["rate"]))
            for number in range(sent + 1, due + 1):
                progress = {"progressToken": token, "progress": number, "total": total}
                await stream.send_all(_event(_note("notifications/progress", progress)))
            sent = due
        await stream.send_all(_event(self._result(message, _text(str(total)))) + _END)

    async def _answered(self, message: Message) -> bytes:
        params = message.get("params", {})
        result: Message
        match message["method"], params.get("name"):
            case "initialize", _ if not self.modern:
                result = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": INFO}
                return _plain("200 OK", self._body(message, result), f"mcp-session-id: {next(self._numbers)}\r\n")
            case "server/discover", _ if self.modern:
                result = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES, **_fresh()}
            case "tools/list", _:
                result = {"tools": TOOLS, **_fresh()}
            case "resources/list", _:
                result = {"resources": [{"uri": MEMO, "name": "memo"}], **_fresh()}
            case "tools/call", "echo":
                result = _text(params["arguments"]["text"])
            case "tools/call", "ask":
                answers = params.get("inputResponses")
                result = _text(answers["who"]["content"]["name"]) if answers else _incomplete()
            case "tools/call", "write":
                result = _text(str(await self._write()))
            case (("resources/subscribe" | "resources/unsubscribe" | "ping"), _) if not self.modern:
                result = {}
            case _:
                error = {"code": -32601, "message": "unknown method"}
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
                return _plain("404 Not Found" if self.modern else "200 OK", body)
        return _plain("200 OK", self._body(message, result))

    async def _write(self) -> float:
        """Tell everybody; return when that began."""
        begin = time.monotonic()
        for stream, told in list(self._streams.items()):
            await stream.send_all(told)
        return begin

    def _body(self, message: Message, result: Message) -> bytes:
        return json.dumps(self._result(message, result), separators=(",", ":")).encode()

    def _result(self, message: Message, result: Message) -> Message:
        if self.modern:
            result = {"resultType": "complete", **result, "_meta": {"io.modelcontextprotocol/serverInfo": INFO}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}


_END = b"0\r\n\r\n"


def _event(message: Message) -> bytes:
    data = b"data: %b\n\n" % json.dumps(message, separators=(",", ":")).encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def _plain(status: str, body: bytes, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{more}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _note(method: str, params: Message) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def _text(text: str) -> Message:
    return {"content": [{"type": "text", "text": text}]}


def _fresh() -> Message:
    return {"ttlMs": 3_600_000, "cacheScope": "public"}


def _incomplete() -> Message:
    question = {"method": "elicitation/create", "params": QUESTION}
    return {"resultType": "input_required", "inputRequests": {"who": question}, "requestState": "waiting"}


if __name__ == "__main__":
    trio.run(trio.serve_tcp, Server(sys.argv[2]).converse, int(sys.argv[1]))

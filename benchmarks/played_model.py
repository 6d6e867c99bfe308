"""A model that plays a script of tool calls, behind two APIs on loopback: Messages, and Responses.

For clients that need a model to run: it answers each request with the next turn of the script, and keeps what it was
asked. It streams as a client asks for it, and knows no more of the APIs than the two clients need that are measured.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import msgspec

Body = dict[str, Any]
Events = list[tuple[str, Body]]
SEARCH: Final = "tool_search"
"""The call by which a model of the Responses API finds tools that a client holds back."""
CALLS: Final = ("function_call", "tool_search_call")
USAGE: Final = {
    "input_tokens": 1,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 1,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 2,
}


class Call(msgspec.Struct, frozen=True):
    """One call that the model asks for. `namespace`: of a tool that was found by search (Responses API)."""

    name: str
    arguments: Body
    namespace: str = ""


class Asked(msgspec.Struct):
    """A request with tools. Times are of `time.monotonic`: when it came, and when its answer was written."""

    body: Body
    came_s: float
    answered_s: float = 0.0


class Model:
    """What is played, and what was asked. The turn that is played is the number of turns that a request tells of."""

    def __init__(self, turns: Sequence[Sequence[Call]]) -> None:
        self.turns = turns
        self.asked: list[Asked] = []
        self.port = 0

    def turn(self, done: int) -> Sequence[Call]:
        return self.turns[done] if done < len(self.turns) else ()


@contextmanager
def played(turns: Sequence[Sequence[Call]]) -> Iterator[Model]:
    """Serve a model at `port` until the end of the block."""
    model = Model(turns)

    class Handler(_Handler):
        played = model

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    played: Model

    def log_message(self, *_: Any) -> None:
        return

    def do_HEAD(self) -> None:
        self._say(b"")

    def do_GET(self) -> None:
        self._say(b'{"data":[],"models":[]}')

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        speaks: dict[str, Callable[[Body], tuple[Events, Body]]] = {
            "messages": self._messages,
            "responses": self._responses,
        }
        speak = speaks.get(path.rpartition("/")[2])
        if speak is None:
            self._say(b'{"input_tokens":1}')
            return
        asked = Asked(body, time.monotonic())
        if body.get("tools"):  # else a client asks for a title, or whether there is a model
            self.played.asked.append(asked)
        events, whole = speak(body)
        if body.get("stream"):
            lines = (f"event: {kind}\ndata: {json.dumps({'type': kind, **event})}\n\n" for kind, event in events)
            self._say("".join(lines).encode(), "text/event-stream")
        else:
            self._say(json.dumps(whole).encode())
        asked.answered_s = time.monotonic()

    def _say(self, body: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _messages(self, body: Body) -> tuple[Events, Body]:
        done = sum(_calls_tools(message) for message in body["messages"])
        calls = self.played.turn(done) if body.get("tools") else ()
        blocks: list[Body] = [
            {"type": "tool_use", "id": f"toolu_{done}_{number}", "name": call.name, "input": call.arguments}
            for number, call in enumerate(calls)
        ] or [{"type": "text", "text": "ok"}]
        stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        usage = {"input_tokens": 1, "output_tokens": 1}
        head = {"id": f"msg_{done}", "type": "message", "role": "assistant", "model": body.get("model"), "usage": usage}
        events: Events = [("message_start", {"message": {**head, "content": [], "stop_reason": None}})]
        for index, block in enumerate(blocks):
            empty, delta = _in_pieces(block)
            events += [
                ("content_block_start", {"index": index, "content_block": empty}),
                ("content_block_delta", {"index": index, "delta": delta}),
                ("content_block_stop", {"index": index}),
            ]
        events += [("message_delta", {"delta": stop, "usage": {"output_tokens": 1}}), ("message_stop", {})]
        return events, {**head, "content": blocks, **stop}

    def _responses(self, body: Body) -> tuple[Events, Body]:
        done = _turns_of(body["input"])
        calls = self.played.turn(done) if body.get("tools") else ()
        items = [_item(call, f"call_{done}_{number}") for number, call in enumerate(calls)] or [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
        ]
        head = {"id": f"response_{done}", "object": "response", "model": body.get("model"), "usage": USAGE}
        whole = {**head, "status": "completed", "output": items}
        events: Events = [("response.created", {"response": {**head, "status": "in_progress", "output": []}})]
        events += [("response.output_item.done", {"output_index": at, "item": item}) for at, item in enumerate(items)]
        return [*events, ("response.completed", {"response": whole})], whole


def _calls_tools(message: Body) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(block.get("type") == "tool_use" for block in content)


def _in_pieces(block: Body) -> tuple[Body, Body]:
    """Return how a block begins in a stream, and the one piece that it then gets."""
    if block["type"] == "text":
        return {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}


def _turns_of(items: list[Body]) -> int:
    """Return how often the model has called tools: calls of one turn stand side by side."""
    kinds = [item.get("type") in CALLS for item in items]
    return sum(now and not before for now, before in zip(kinds, [False, *kinds], strict=False))


def _item(call: Call, name: str) -> Body:
    if call.name == SEARCH:
        return {"type": "tool_search_call", "call_id": name, "execution": "client", "arguments": call.arguments}
    said = {"type": "function_call", "call_id": name, "name": call.name, "arguments": json.dumps(call.arguments)}
    return {**said, "namespace": call.namespace} if call.namespace else said

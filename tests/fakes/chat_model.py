"""A model behind an OpenAI-compatible service, which answers from a function, or not at all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import trio

from actors.catalogue.offer import Tool
from actors.protocol.wire.json import quoted
from tests.fakes.remote_server import Request, read_request

Say = Callable[[dict[str, Any]], Sequence[str]]
"""Returns what it says of a definition."""
Reply = Callable[[trio.SocketStream, Request], Awaitable[bool]]
"""Answers a request; False ends the connection."""


def definitions_in(messages: Sequence[dict[str, str]]) -> dict[str, dict[str, Any]]:
    """Return the definitions in a question, by number."""
    data = messages[-1]["content"].partition("\n")[2].rpartition("\n")[0]
    read: dict[str, dict[str, Any]] = json.loads(data)
    return read


def answer_to(messages: Sequence[dict[str, str]], say: Say) -> str:
    """Return what a model that does as it is told answers."""
    return json.dumps({number: [*say(told)] for number, told in definitions_in(messages).items()})


def defined(name: str, description: str = "", *parameters: str, **more: Any) -> Tool:
    schema = {"type": "object", "properties": {parameter: {} for parameter in parameters}}
    raw = msgspec.Raw(msgspec.json.encode(schema))
    return Tool(name=name, described=quoted(description), input_schema=raw, **more)


class ChatModel:
    """What was asked of it, and what it does. Without a `reply` of a test's own it answers by `say`."""

    def __init__(self, say: Say, port: int) -> None:
        self.say = say
        self.reply: Reply = self.answer
        self.url = f"http://127.0.0.1:{port}/v1"
        self.requests: list[Request] = []

    @property
    def asked(self) -> list[list[str]]:
        """The names of the tools in each question."""
        bodies = [json.loads(request.body) for request in self.requests]
        return [[told["name"] for told in definitions_in(body["messages"]).values()] for body in bodies]

    async def answer(self, stream: trio.SocketStream, request: Request) -> bool:
        return await self.complete(stream, answer_to(json.loads(request.body)["messages"], self.say))

    async def complete(self, stream: trio.SocketStream, content: str) -> bool:
        return await self.send(stream, 200, json.dumps({"choices": [{"message": {"content": content}}]}).encode())

    async def send(self, stream: trio.SocketStream, status: int, body: bytes) -> bool:
        head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        await stream.send_all(head.encode() + body)
        return True


@asynccontextmanager
async def chatting(say: Say) -> AsyncIterator[ChatModel]:
    """Listen for the block, on a free port."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        model = ChatModel(say, listener.socket.getsockname()[1])

        async def serve(stream: trio.SocketStream) -> None:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                async with stream:
                    while (request := await read_request(stream)) is not None:
                        model.requests.append(request)
                        if not await model.reply(stream, request):
                            return

        await nursery.start(trio.serve_listeners, serve, [listener])
        yield model
        nursery.cancel_scope.cancel()

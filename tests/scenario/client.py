"""Whoever speaks to a daemon, be it in this loop or in a process of its own: pages, JSON-RPC, and what these answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from functools import partial
from typing import Any, Self, TypeVar

import httpx2
import trio
from trio_websocket import WebSocketConnection

from tests.fakes.event_reader import StreamReader, reading
from tests.fakes.http_client import META, MODERN, modern_headers
from tests.fakes.websocket_client import open_websocket

Json = dict[str, Any]
T = TypeVar("T")
PATIENCE_S = 120.0
"""Longer than anything here takes on a busy machine; a test that waits for it has failed."""


def message(method: str, params: Json | None = None, id_: str | int = 1) -> Json:
    """Return a JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}


async def eventually(look: Callable[[], Awaitable[T]], seen: Callable[[T], object] = bool, every_s: float = 0.02) -> T:
    """Look until something is seen that nothing tells of, and return it. Raises trio.TooSlowError."""
    with trio.fail_after(PATIENCE_S):
        while not seen(found := await look()):  # noqa: ASYNC110 - nothing tells
            await trio.sleep(every_s)
    return found


class Socket:
    """A WebSocket on which JSON-RPC is spoken."""

    def __init__(self, websocket: WebSocketConnection) -> None:
        self._websocket = websocket

    async def send(self, body: Json | bytes) -> None:
        """Send a message, or bytes as they are."""
        await self._websocket.send_message(body.decode() if isinstance(body, bytes) else json.dumps(body))

    async def next(self) -> Any:
        """Return the message that comes next. Raises ConnectionClosed."""
        return json.loads(await self._websocket.get_message())

    async def greet(self, **capabilities: Any) -> Self:
        """Begin a session of the legacy era, of one with these capabilities."""
        info = {"name": "scenario", "version": "1"}
        who = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}
        await self.send(message("initialize", who, 0))
        assert (await self.next())["id"] == 0
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self


class Client:
    """One that shows a token, or nothing, and speaks JSON-RPC at one door: single requests, at first without a session.

    `headers` go with each of its requests. `poll_s` is how often it looks at a page that has to say something.
    """

    poll_s = 0.02

    def __init__(self, http: httpx2.AsyncClient, token: str = "") -> None:
        self.http = http
        self.headers = {"authorization": f"Bearer {token}"} if token else {}
        self.door = "/mcp"

    def at(self, door: str) -> Self:
        """Return the same one at another door."""
        other = copy(self)
        other.door = door
        return other

    def showing(self, **headers: str) -> Self:
        """Return the same one with more headers, in whose names `_` stands for `-`."""
        other = copy(self)
        other.headers = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return other

    @property
    def url(self) -> str:
        """Of the daemon, without a slash at the end."""
        return str(self.http.base_url).rstrip("/")

    # Pages ------------------------------------------------------------------------------------------------------------

    async def ask(self, method: str, path: str, /, **more: Any) -> httpx2.Response:
        """Send any request; `more` are arguments of httpx2."""
        headers = {**self.headers, **more.pop("headers", {})}
        return await self.http.request(method, path, headers=headers, **more)

    async def text(self, path: str, /, **query: Any) -> str:
        """Return a page as it is written. Raises AssertionError when it is refused."""
        answer = await self.ask("GET", path, params=query or None)
        assert answer.status_code == 200, (path, answer.text)
        return answer.text

    async def page(self, path: str, /, **query: Any) -> Any:
        """Return what a page says. Raises AssertionError when it is refused."""
        return json.loads(await self.text(path, **query))

    async def until(self, path: str, seen: Callable[[Any], object], /, **query: Any) -> Any:
        """Return what a page says as soon as it says so."""
        return await eventually(partial(self.page, path, **query), seen, self.poll_s)

    async def ready(self) -> Json:
        """Wait until each server is discovered or has failed; return what `/readyz` says then."""
        told = await eventually(partial(self.ask, "GET", "/readyz"), lambda told: told.json()["ready"], self.poll_s)
        return dict(told.json())

    async def status(self) -> Json:
        return dict(await self.page("/api/status"))

    async def ticket(self, **purpose: str) -> str:
        """Make a ticket, for a WebSocket unless its purpose is another one."""
        made = await self.ask("POST", "/api/tickets", params=purpose or None)
        assert made.status_code == 201, made.text
        return str(made.json()["ticket"])

    async def rows(self) -> dict[str, Json]:
        """The servers of the status by their names."""
        return {row["server"]: row for row in (await self.status())["servers"]}

    async def row(self, server: str) -> Json:
        return dict(await self.page(f"/api/servers/{server}"))

    async def until_state(self, server: str, *states: str) -> Json:
        """Wait until a server is in one of some states; return its row."""
        return dict(await self.until(f"/api/servers/{server}", lambda row: row["state"] in states))

    # JSON-RPC ---------------------------------------------------------------------------------------------------------

    async def send(self, method: str, /, **params: Any) -> httpx2.Response:
        """Send a request."""
        return await self.ask("POST", self.door, json=message(method, params))

    async def post(self, body: Any) -> httpx2.Response:
        """Send a body as JSON, or bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json", **self.headers}
        return await self.ask("POST", self.door, content=content, headers=headers)

    async def send_modern(self, method: str, /, able: Json | None = None, **params: Any) -> httpx2.Response:
        """Send a request of the modern era, as a client with these capabilities, and more of `_meta` if it is given."""
        named = next((params[name] for name in ("name", "uri", "taskId") if name in params), None)
        own = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": able or {}, **params.get("_meta", {})}
        body = message(method, {**params, "_meta": own})
        return await self.ask("POST", self.door, headers=modern_headers(method, named), json=body)

    async def rpc(self, method: str, /, **params: Any) -> Json:
        """Return the whole answer to a request."""
        return dict((await self.send(method, **params)).json())

    async def call(self, tool: str, /, **arguments: Any) -> Json:
        """Return the whole answer to a call of what is a tool at this door."""
        return await self.rpc("tools/call", name=tool, arguments=arguments)

    async def result(self, tool: str, /, **arguments: Any) -> Json:
        """Return the result of a call of what is a tool at this door. Raises AssertionError when it is refused."""
        answer = await self.call(tool, **arguments)
        assert "result" in answer, answer
        return dict(answer["result"])

    async def execute(self, path: str, /, **arguments: Any) -> Json:
        """Return the whole answer to a call of a server's tool by its path."""
        return await self.call("execute_mcp_tool", tool_path=path, arguments=arguments)

    async def executed(self, path: str, /, **arguments: Any) -> Json:
        """Return the result of a call of a server's tool by its path."""
        return await self.result("execute_mcp_tool", tool_path=path, arguments=arguments)

    async def discover(self, query: str, /, **more: Any) -> list[str]:
        """Return the paths of the tools that a search finds."""
        return [row["tool_path"] for row in await self.search(query, **more)]

    async def search(self, query: str, /, **more: Any) -> list[Json]:
        """Return the rows of the tools that a search finds."""
        found = await self.result("discover_mcp_tools", query=query, **more)
        return list(found["structuredContent"]["tools"])

    async def until_found(self, query: str, paths: list[str], /) -> None:
        """Search until these are found: the index is built in a thread of the daemon."""
        await eventually(partial(self.discover, query), paths.__eq__, self.poll_s)

    async def session(self, version: str = "2025-11-25") -> str:
        """Open a session of the legacy era, and return its id."""
        client = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "scenario", "version": "1"}}
        id_ = (await self.send("initialize", **client)).headers["mcp-session-id"]
        await self.within(id_).post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return id_

    def within(self, session: str) -> Self:
        """Return the same one in a session."""
        return self.showing(mcp_session_id=session)

    async def delete(self, session: str) -> int:
        """End a session, and return the status of the answer."""
        return (await self.within(session).ask("DELETE", self.door)).status_code

    async def tools(self) -> list[str]:
        """Return the names of all tools, sorted."""
        listed = await self.at("/mcp/all").rpc("tools/list")
        return sorted(tool["name"] for tool in listed["result"]["tools"])

    async def until_tool(self, name: str) -> list[str]:
        """Return the names of all tools as soon as this one is among them."""
        return await eventually(self.tools, lambda names: name in names, self.poll_s)

    # What lasts -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def reading(self, path: str = "/api/events") -> AsyncIterator[StreamReader]:
        """Read a stream of events during the block."""
        async with reading(self.url, path, self.headers) as reader:
            assert reader.status == 200
            yield reader

    def websocket(self, path: str, offered: Sequence[str] = ()) -> AbstractAsyncContextManager[WebSocketConnection]:
        """Connect for a block, and offer subprotocols."""
        port = self.http.base_url.port or 0
        return open_websocket(port, path, [*self.headers.items()], subprotocols=offered)

    @asynccontextmanager
    async def socket(self, path: str) -> AsyncIterator[Socket]:
        """Speak JSON-RPC over a WebSocket during the block."""
        async with self.websocket(path) as websocket:
            yield Socket(websocket)

"""A scriptable MCP server for the memory transport: what it does wrong is data, and what it was asked is remembered."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

import trio

from actors.kit import Latest
from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.transport.base import Work
from tests.fakes.lines import Lines, line
from tests.fakes.memory import MemoryPeer

Probe = Literal["both", "error", "silent", "exit", "modern"]


def tool(name: str, description: str = "does something", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


def address(visit: str) -> dict[str, Any]:
    """The params of a question that asks to open an address, under this id."""
    return {"mode": "url", "message": "Log in", "url": "https://example.com/login", "elicitationId": visit}


class Exits(Exception):
    """The server ends with this code."""

    def __init__(self, code: int) -> None:
        self.code = code


@dataclass
class FakeServer:
    """`serve` is one incarnation; the fields may be changed between and during incarnations.

    `probe`: what `server/discover` does; `both`: it speaks the legacy era, too. `exits_at`: the method at which it
    exits with code 1. `silent_at`: methods it never answers. `deaf`: it reads nothing after its next message.
    `errors_at`: the JSON-RPC error it answers to a method. `page`: tools per page. `ttl`: what its pages have as
    `ttlMs`, `ttls` one by one.
    `honours`: what it acknowledges of a subscription, and of resources all that are not `odd:`; None: it says nothing.
    `watched`: the resources of which it tells its present incarnation, by either way.
    `version`: its own; `revision`: what it agrees on in the legacy era. `installs_s`: before it reads anything it
    works for so long, as an installer does.
    A call of the tool `echo` gives its arguments back, `hang` never answers, `odd` gives no proper result, `crash`
    exits, `refuse` is an error, `fail` a result that is one, `sleep` answers after `s` seconds, `late` answers after
    its cancellation, `progress` tells of it before it answers, `log` logs at each of `levels`, `ask` asks for input and
    gives back what it got, or takes the question back after `s` seconds, and wants progress with its `token`; `visit`
    asks for the visits of `ids`, by questions or by an error (`by_error`), and tells of the end of those in `done`
    before it answers.
    """

    tools: list[dict[str, Any]] = field(default_factory=lambda: [tool("echo")])
    probe: Probe = "error"
    version: str = "1"
    revision: str = "2025-11-25"
    supported: list[str] = field(default_factory=lambda: ["2026-07-28"])
    exits_at: str | None = None
    silent_at: set[str] = field(default_factory=set)
    errors_at: dict[str, dict[str, Any]] = field(default_factory=dict)
    capabilities: dict[str, Any] = field(default_factory=lambda: {"tools": {"listChanged": True}})
    ignores_eof: bool = False
    deaf: bool = False
    page: int = 1000
    honours: dict[str, Any] | None = None
    subscriptions: list[Any] = field(default_factory=list)
    watched: list[str] = field(default_factory=list)
    ttl: Any = None
    ttls: list[int] = field(default_factory=list)
    start_s: float = 0.0
    installs_s: float = 0.0
    starts: int = 0
    exits: int = 0
    asked: list[list[str]] = field(default_factory=list)
    _questions: int = 0
    messages: list[dict[str, Any]] = field(default_factory=list)
    peer: MemoryPeer | None = None
    cancelled: trio.Event = field(default_factory=trio.Event)
    called: trio.Event = field(default_factory=trio.Event)
    progressed: trio.Event = field(default_factory=trio.Event)
    _answers: dict[Any, Latest[Any]] = field(default_factory=dict)

    async def serve(self, peer: MemoryPeer) -> int:
        self.starts += 1
        self.asked.append([])
        self.watched = []
        self.peer = peer
        code = 0
        try:
            await self._live(peer)
        except* Exits as group:
            code = next(error.code for error in group.exceptions if isinstance(error, Exits))
        except* trio.BrokenResourceError:
            code = 0
        finally:
            self.exits += 1
        return code

    async def _live(self, peer: MemoryPeer) -> None:
        async with trio.open_nursery() as nursery:
            await self._install(peer)
            await trio.sleep(self.start_s)
            await self._read(peer, nursery)
            if self.ignores_eof or self.deaf:
                await trio.sleep_forever()
            nursery.cancel_scope.cancel()

    async def _install(self, peer: MemoryPeer) -> None:
        while self.installs_s > peer.work.cpu_s:
            await trio.sleep(0.5)
            peer.work = Work(cpu_s=peer.work.cpu_s + 0.5)

    async def notify(self, method: str, times: int = 1) -> None:
        """Send a notification, in one write."""
        assert self.peer is not None
        await self.peer.write(line(method=method) * times)

    async def end_subscription(self, **how: Any) -> None:
        """End the newest subscription: by its result, or as is said."""
        assert self.peer is not None
        id_ = self.subscriptions[-1]
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": id_}}
        await self.peer.write(line(**(cancelled if how.get("cancelled") else {"id": id_, **(how or {"result": {}})})))

    async def write(self, data: bytes) -> None:
        """Send any bytes."""
        assert self.peer is not None
        await self.peer.write(data)

    def count(self, method: str) -> int:
        """How often a method was asked, over all incarnations."""
        return sum(asked.count(method) for asked in self.asked)

    async def _read(self, peer: MemoryPeer, nursery: trio.Nursery) -> None:
        lines = Lines(peer)
        while not self.deaf and (arrived := await lines.read()) is not None:
            for each in arrived:
                await self._on_message(peer, json.loads(each), nursery)

    async def _on_message(self, peer: MemoryPeer, message: dict[str, Any], nursery: trio.Nursery) -> None:
        method = message.get("method", "")
        self.messages.append(message)
        if not method:
            if (question := self._answers.pop(message["id"], None)) is not None:  # else a fault asked it
                question.set(message)
            return
        self.asked[-1].append(method)
        if method == "notifications/cancelled":
            self.cancelled.set()
        if method == "notifications/progress":
            self.progressed.set()
        if method == self.exits_at:
            peer.log("last words\n")
            raise Exits(1)
        if "id" not in message or method in self.silent_at:
            return
        if method in self.errors_at:
            await self._send(peer, {"id": message["id"], "error": self.errors_at[method]})
        elif method == "tools/call":
            self.called.set()
            nursery.start_soon(self._call, peer, message)
        elif method == "subscriptions/listen" and self.honours is not None:
            self.subscriptions.append(message["id"])
            wanted = message["params"]["notifications"].get("resourceSubscriptions", [])
            self.watched = [uri for uri in wanted if not uri.startswith("odd:")]
            resources = {"resourceSubscriptions": self.watched} if self.watched else {}
            told = {"notifications": {**self.honours, **resources}, "_meta": {META_SUBSCRIPTION: message["id"]}}
            await self._send(peer, {"method": "notifications/subscriptions/acknowledged", "params": told})
        elif (answer := self._answer(method, message)) is not None:
            await self._send(peer, {"id": message["id"], **answer})

    def _answer(self, method: str, message: dict[str, Any]) -> dict[str, Any] | None:
        match method:
            case "server/discover":
                return self._discovered()
            case "initialize" if self.probe == "modern":
                return {"error": {"code": -32022, "message": "no", "data": {"supported": self.supported}}}
            case "initialize":
                info = {"name": "fake", "version": self.version}
                return {
                    "result": {
                        "protocolVersion": self.revision,
                        "capabilities": self.capabilities,
                        "serverInfo": info,
                    }
                }
            case "tools/list":
                return {"result": self._page(message.get("params", {}).get("cursor"))}
            case "subscriptions/listen":
                return None
            case "resources/subscribe" | "resources/unsubscribe":
                return self._watch(method, message["params"]["uri"])
            case _:
                return {"error": {"code": -32601, "message": f"unknown method {method}"}}

    def _watch(self, method: str, uri: str) -> dict[str, Any]:
        if uri.startswith("odd:"):
            return {"error": {"code": -32002, "message": "there is no such resource"}}
        if method == "resources/unsubscribe":
            self.watched.remove(uri)
        elif uri not in self.watched:
            self.watched.append(uri)
        return {"result": {}}

    async def update(self, uri: str) -> None:
        """Tell that a resource changed."""
        assert self.peer is not None
        await self.peer.write(line(method="notifications/resources/updated", params={"uri": uri}))

    def _discovered(self) -> dict[str, Any] | None:
        if self.probe in ("modern", "both"):
            return {"result": {"supportedVersions": self.supported, "capabilities": self.capabilities}}
        if self.probe == "silent":
            return None
        if self.probe == "exit":
            raise Exits(1)
        return {"error": {"code": -32601, "message": "unknown method"}}

    def _page(self, cursor: str | None) -> dict[str, Any]:
        start = int(cursor or 0)
        page: dict[str, Any] = {"tools": self.tools[start : start + self.page]}
        if start + self.page < len(self.tools):
            page["nextCursor"] = str(start + self.page)
        if (ttl := self.ttls.pop(0) if self.ttls else self.ttl) is not None:
            page["ttlMs"] = ttl
        return page

    async def _call(self, peer: MemoryPeer, message: dict[str, Any]) -> None:
        params = message["params"]
        name, arguments = params["name"], params.get("arguments", {})
        if name == "hang":
            return
        if name == "odd":
            await self._send(peer, {"id": message["id"], "result": 7})
            return
        if name == "fail":
            await self._send(peer, {"id": message["id"], "result": {"content": [], "isError": True}})
            return
        if name == "crash":
            await trio.sleep(arguments.get("pause_s", 0))
            raise Exits(3)
        if name == "visit":
            arguments = {"got": [await self._ask_to_visit(peer, id_) for id_ in arguments.get("ids", ())], **arguments}
            for id_ in arguments.get("done", ()):
                await self.visited(id_)
        if name == "visit" and "by_error" in arguments:
            data = {"elicitations": [address(id_) for id_ in arguments["by_error"]]}
            await self._send(peer, {"id": message["id"], "error": {"code": -32042, "message": "go", "data": data}})
            return
        if name == "refuse":
            await self._send(peer, {"id": message["id"], "error": {"code": -32602, "message": "refused"}})
            return
        if name == "progress":
            token = params.get("_meta", {}).get("progressToken")
            for progress in arguments["progress"]:
                told = {"progressToken": token, "progress": progress, "message": "on it"}
                await self._send(peer, {"method": "notifications/progress", "params": told})
                await trio.sleep(arguments.get("pause_s", 0))
        if name == "log":
            for level in arguments["levels"]:
                told = {"level": level, "logger": "fake", "data": {"n": 1}}
                await self._send(peer, {"method": "notifications/message", "params": told})
        if name == "ask":
            arguments = {"got": await self._ask(peer, arguments)}
        if name == "late":
            await self.cancelled.wait()
        if name == "sleep":
            await trio.sleep(arguments["s"])
        await self._send(peer, {"id": message["id"], "result": {"content": [], "structuredContent": arguments}})

    async def ask(self) -> Any:
        """Ask for input, and return the whole answer; about which call, nothing says."""
        assert self.peer is not None
        return await self._ask(self.peer, {})

    async def visited(self, id_: Any) -> None:
        """Tell that somebody is done at an address."""
        assert self.peer is not None
        await self.peer.write(line(method="notifications/elicitation/complete", params={"elicitationId": id_}))

    async def _ask_to_visit(self, peer: MemoryPeer, visit: str) -> Any:
        id_, answer = self._question()
        await self._send(peer, {"id": id_, "method": "elicitation/create", "params": address(visit)})
        await answer.wait_newer(answer.version)
        return answer.value

    def _question(self) -> tuple[int, Latest[Any]]:
        self._questions += 1
        id_ = 1000 + self._questions
        self._answers[id_] = answer = Latest[Any](None)
        return id_, answer

    async def _ask(self, peer: MemoryPeer, arguments: dict[str, Any]) -> Any:
        """Ask for input, and return the whole answer."""
        id_, answer = self._question()
        schema = {"type": "object", "properties": arguments.get("properties", {})}
        meta = {"_meta": {"progressToken": arguments["token"], "x-own": 1}} if "token" in arguments else {}
        params = {"message": arguments.get("message", "Sure?"), "requestedSchema": schema, **meta}
        await self._send(peer, {"id": id_, "method": arguments.get("method", "elicitation/create"), "params": params})
        if "s" in arguments:
            await trio.sleep(arguments["s"])
            await self._send(peer, {"method": "notifications/cancelled", "params": {"requestId": id_}})
            await trio.sleep(arguments.get("pause_s", 0))
            return None
        await answer.wait_newer(answer.version)
        return answer.value

    async def _send(self, peer: MemoryPeer, message: dict[str, Any]) -> None:
        await peer.write(line(**message))

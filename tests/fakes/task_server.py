"""A server of either era for the memory transport that works on calls as tasks: what it does is data."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import trio

from actors.protocol.agreement.versions import Era
from tests.fakes.lines import Lines, line
from tests.fakes.memory import MemoryPeer

SCHEMA = {"type": "object"}
LATER = {"name": "later", "inputSchema": SCHEMA, "execution": {"taskSupport": "required"}}
EITHER = {"name": "either", "inputSchema": SCHEMA, "execution": {"taskSupport": "optional"}}
NEVER = {"name": "never", "inputSchema": SCHEMA}
RELATED = "io.modelcontextprotocol/related-task"
EXTENSION = "io.modelcontextprotocol/tasks"
LEGACY: dict[str, Any] = {"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
MODERN: dict[str, Any] = {"tools": {}, "extensions": {EXTENSION: {}}}
DONE: dict[str, Any] = {"content": [{"type": "text", "text": "done"}], "big": 12345678901234567890}
WHEN = "2026-01-01T00:00:00Z"


@dataclass
class Job:
    """One task. `changed` is replaced at each change of it."""

    id: str
    token: Any
    status: str = "working"
    result: dict[str, Any] = field(default_factory=dict)
    questions: dict[str, Any] = field(default_factory=dict)
    changed: trio.Event = field(default_factory=trio.Event)

    def becomes(self, status: str) -> None:
        if self.status not in ("completed", "failed", "cancelled"):
            self.status = status
            self.change()

    def change(self) -> None:
        self.changed.set()
        self.changed = trio.Event()


@dataclass
class TaskServer:
    """`work_s`: how long a task takes, after its questions. `ask`: how many forms it asks for first.

    `hasty`: a legacy one that refuses `tasks/result` before the task is over, as some do. `fails`: the JSON-RPC error
    that a task ends with. `tells`: notifications of a legacy one when the work begins: progress and status.
    `got`: what it was answered. `asked`: each request, method and params.
    """

    era: Era = "legacy"
    work_s: float = 3.0
    ask: int = 0
    hasty: bool = False
    tells: bool = False
    fails: dict[str, Any] | None = None
    done: dict[str, Any] = field(default_factory=lambda: DONE)
    ttl: int | None = 60_000
    poll: int | None = 500
    capabilities: dict[str, Any] | None = None
    jobs: dict[str, Job] = field(default_factory=dict)
    asked: list[tuple[str, Any]] = field(default_factory=list)
    got: list[Any] = field(default_factory=list)
    starts: int = 0
    made: int = 0
    end: trio.Event = field(default_factory=trio.Event)
    _answers: dict[Any, trio.Event] = field(default_factory=dict)

    async def serve(self, peer: MemoryPeer) -> int:
        self.starts += 1
        self.jobs = {}
        self.end = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, peer, nursery)
            await self.end.wait()
            nursery.cancel_scope.cancel()
        return 1

    def methods(self) -> list[str]:
        """What was asked of it but for its lists and the handshake."""
        return [method for method, _ in self.asked if method.startswith(("tools/call", "tasks/"))]

    async def _read(self, peer: MemoryPeer, nursery: trio.Nursery) -> None:
        lines = Lines(peer)
        while (arrived := await lines.read()) is not None:
            for message in map(json.loads, arrived):
                if "method" in message and "id" in message:
                    self.asked.append((message["method"], message.get("params", {})))
                    nursery.start_soon(self._answer, peer, nursery, message)
                elif "method" in message:
                    self.asked.append((message["method"], message.get("params", {})))
                else:
                    self.got.append(message.get("result", message.get("error")))
                    self._answers[message["id"]].set()
        self.end.set()

    async def _answer(self, peer: MemoryPeer, nursery: trio.Nursery, message: Any) -> None:
        method, params = message["method"], message.get("params", {})
        answer = await self._answered(peer, nursery, method, params)
        body = answer if "error" in answer and "code" in answer["error"] else {"result": answer}
        await peer.write(line(id=message["id"], **body))

    async def _answered(self, peer: MemoryPeer, nursery: trio.Nursery, method: str, params: Any) -> dict[str, Any]:
        kind = {"resultType": "complete"} if self.era == "modern" else {}
        legacy = self.era == "legacy"
        match method:
            case "initialize" if legacy:
                said = {"capabilities": self.capabilities or LEGACY, "serverInfo": {"name": "t", "version": "1"}}
                return {"protocolVersion": "2025-11-25", **said}
            case "server/discover" if not legacy:
                said = {"capabilities": self.capabilities or MODERN}
                return {**kind, "ttlMs": 0, "cacheScope": "private", **said, "supportedVersions": ["2026-07-28"]}
            case "tools/list":
                return {**kind, "tools": [LATER, EITHER, NEVER]}
            case "tools/call":
                return {**kind, **self._call(peer, nursery, params)}
            case "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel":
                job = self.jobs.get(params["taskId"])
                if job is None:
                    return failed(-32602, "no such task")
                return {**kind, **await self._of(peer, job, method, params)}
        return failed(-32601, f"no {method}")

    def _call(self, peer: MemoryPeer, nursery: trio.Nursery, params: Any) -> dict[str, Any]:
        meta = params.get("_meta", {})
        if self.era == "legacy":
            wants = "task" in params
            if params["name"] == "later" and not wants:
                return failed(-32601, "Tool requires task augmentation")
        else:
            declared = meta["io.modelcontextprotocol/clientCapabilities"].get("extensions", {})
            wants = EXTENSION in declared and params["name"] != "never"
            if params["name"] == "later" and not wants:
                return failed(-32021, "needs tasks", {"requiredCapabilities": {"extensions": {EXTENSION: {}}}})
        if not wants:
            return self.done
        self.made += 1
        job = self.jobs[f"own-{self.made}"] = Job(f"own-{self.made}", meta.get("progressToken"))
        nursery.start_soon(self._work, peer, job)
        return {"resultType": "task", **self._state(job)} if self.era == "modern" else {"task": self._state(job)}

    def _state(self, job: Job) -> dict[str, Any]:
        names = ("ttlMs", "pollIntervalMs") if self.era == "modern" else ("ttl", "pollInterval")
        state: dict[str, Any] = {"taskId": job.id, "status": job.status, "createdAt": WHEN, names[0]: self.ttl}
        state["lastUpdatedAt"] = WHEN
        if self.poll is not None:
            state[names[1]] = self.poll
        if self.era == "modern" and job.status == "input_required":
            state["inputRequests"] = job.questions
        if self.era == "modern" and job.status in ("completed", "failed"):
            state.update({"error": self.fails} if job.status == "failed" else {"result": job.result})
        return state

    async def _work(self, peer: MemoryPeer, job: Job) -> None:
        if self.tells:
            await peer.write(line(method="notifications/tasks/status", params=self._state(job)))
        for number in range(self.ask):
            form = {"mode": "form", "message": f"{job.id}/{number}", "requestedSchema": SCHEMA}
            job.questions = {f"q{number}": {"method": "elicitation/create", "params": form}}
            job.becomes("input_required")
            while job.questions:
                await job.changed.wait()
        job.becomes("working")
        await trio.sleep(self.work_s)
        if self.tells:
            if job.token is not None:
                await peer.write(
                    line(method="notifications/progress", params={"progressToken": job.token, "progress": 1})
                )
            await peer.write(line(method="notifications/tasks/status", params=self._state(job)))
            await trio.sleep(self.work_s)
        job.result = self.done
        job.becomes("failed" if self.fails else "completed")

    async def _of(self, peer: MemoryPeer, job: Job, method: str, params: Any) -> dict[str, Any]:
        over = job.status in ("completed", "failed", "cancelled")
        match method:
            case "tasks/get":
                return self._state(job)
            case "tasks/cancel":
                if over:
                    return failed(-32602, "it is over")
                job.becomes("cancelled")
                return self._state(job) if self.era == "legacy" else {}
            case "tasks/update" if self.era == "modern":
                for key, answer in params["inputResponses"].items():
                    if job.questions.pop(key, None) is not None:
                        self.got.append(answer)
                job.becomes("working")
                job.change()
                return {}
            case "tasks/result" if self.era == "legacy":
                return await self._result(peer, job, early=not over)
        return failed(-32601, f"no {method}")

    async def _result(self, peer: MemoryPeer, job: Job, *, early: bool) -> dict[str, Any]:
        for key, question in list(job.questions.items()):
            params = {**question["params"], "_meta": {RELATED: {"taskId": job.id}}}
            id_ = f"{job.id}-{key}"
            self._answers[id_] = trio.Event()
            await peer.write(line(id=id_, method=question["method"], params=params))
            await self._answers[id_].wait()
            job.questions.pop(key, None)
            job.change()
        if early and self.hasty:
            return failed(-32602, f"Task not completed yet (current state: {job.status})")
        while job.status not in ("completed", "failed", "cancelled"):
            if job.questions:
                return await self._result(peer, job, early=early)
            await job.changed.wait()
        if job.status == "cancelled":
            return failed(-32000, "it was cancelled")
        return {"error": self.fails} if self.fails else {**self.done, "_meta": {RELATED: {"taskId": job.id}}}


def failed(code: int, message: str, data: Any = None) -> dict[str, Any]:
    """Return what stands for a JSON-RPC error as an answer."""
    return {"error": {"code": code, "message": message, **({} if data is None else {"data": data})}}

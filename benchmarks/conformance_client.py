"""What the official conformance suite runs as a client: a daemon in front of its server, used as a user would.

`python -m benchmarks.conformance_client URL` starts a daemon with that server, logs in where it asks for it, as a
browser would whose user says yes to everything, and calls every tool at the door of that server. The suite tells the
scenario by the environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import trio

Json = dict[str, Any]

NAME = "far"
LEGACY = "2025-11-25"
MAX_LOGINS = 3
READY_S = 15.0
SETTLE_S = 2.0
"""For what a server may do by itself after a call: end streams, ask for a stream again."""
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The client id metadata document that the suite expects."""
VALUES: Json = {"string": "text", "number": 5, "integer": 3, "boolean": True, "array": [], "object": {}, "null": None}


def entry(url: str, scenario: str, context: Json) -> Json:
    """Return the entry of the server, with what the scenario tells of our client."""
    oauth: Json = {"client_metadata_url": DOCUMENT}
    for ours, theirs in (
        ("client_id", "client_id"),
        ("client_secret", "client_secret"),
        ("private_key", "private_key_pem"),
        ("signing_alg", "signing_algorithm"),
        ("issuer", "issuer"),
    ):
        if context.get(theirs):
            oauth[ours] = context[theirs]
    if "client-credentials" in scenario:
        oauth["grant"] = "client_credentials"
    return {"url": url, "oauth": oauth}


class Driver:
    """Uses one daemon. `calls` are those to make, with their arguments; else every tool is called once."""

    def __init__(self, http: httpx2.AsyncClient, base: str, calls: list[Json]) -> None:
        self._http = http
        self._calls = calls
        self._base = base
        self._door = f"{base}/mcp/servers/{NAME}"
        self._head = {
            "accept": "application/json, text/event-stream",
        }
        self._logins = 0

    async def run(self) -> bool:
        """Return whether every tool could be called."""
        row = await self.tried()
        while row.get("requires_reauth") and await self.log_in():
            row = await self.tried()
        if row.get("state") not in ("ready", "dormant"):
            print(f"state {row.get('state')}: {row.get('last_error')}")
            return False
        good = True
        tools = await self.tools()
        named = {tool["name"]: tool for tool in tools}
        for call in self._calls or [{"name": name, "arguments": None} for name in named]:
            good &= await self.called(named[call["name"]], tools[0], call["arguments"])
        await trio.sleep(SETTLE_S)
        return good

    async def tried(self) -> Json:
        """Return the row of the server once it was tried."""
        row: Json = {}
        with trio.move_on_after(READY_S):
            while row.get("state") not in ("ready", "failed"):
                await trio.sleep(0.05)
                row = (await self._http.get(f"{self._base}/api/servers/{NAME}")).json()
        return row

    async def log_in(self) -> bool:
        """Log in, and say yes to everything."""
        self._logins += 1
        if self._logins > MAX_LOGINS:
            return False
        begun = (await self._http.post(f"{self._base}/api/servers/{NAME}/login")).json()
        print(f"login: {begun.get('error', {}).get('message') or begun['message']}")
        if begun.get("state") == "pending":
            url = begun["url"]
            for _ in range(5):
                answer = await self._http.get(url)
                if not answer.is_redirect:
                    break
                url = str(answer.next_request.url) if answer.next_request is not None else ""
            begun = (await self._http.get(f"{self._base}/api/logins/{begun['login']}?wait_s=10")).json()
            print(f"login: {begun['message']}")
        if begun.get("state") == "done":
            await self._changed()
        return bool(begun.get("state") == "done")

    async def _changed(self) -> None:
        """Wait until the server is tried again, which a login brings about."""
        with trio.move_on_after(5):
            while (await self.tried()).get("requires_reauth"):  # noqa: ASYNC110 - another process
                await trio.sleep(0.05)

    async def tools(self) -> list[Json]:
        """Return the tools of the server as it wrote them, in a session at its door."""
        info = {"name": "x", "version": "1"}
        declared = {"protocolVersion": LEGACY, "capabilities": {"elicitation": {}}, "clientInfo": info}
        await self._asked("initialize", declared)
        await self._said({"method": "notifications/initialized"})
        tools: list[Json] = (await self._asked("tools/list", {})).get("result", {}).get("tools", [])
        return tools

    async def called(self, tool: Json, focus: Json, arguments: Json | None) -> bool:
        """Call a tool, logging in if it takes more rights; return whether it was answered."""
        if arguments is None:
            arguments = sample(tool["inputSchema"])
        if "schema" in arguments:  # the suite asks for the schema of its first tool
            arguments["schema"] = focus["inputSchema"]
        while True:
            answer = await self._asked("tools/call", {"name": tool["name"], "arguments": arguments})
            print(f"{tool['name']}: {json.dumps(answer)[:300]}")
            kind = answer.get("error", {}).get("data", {}).get("type", "")
            kind = kind or answer.get("result", {}).get("structuredContent", {}).get("error", {}).get("type", "")
            if kind != "requires_reauth":
                return kind in ("", "server_error")  # what the server itself says is an answer
            if not await self.log_in():
                return False

    async def _asked(self, method: str, params: Json) -> Json:
        """Send a request at the door; return its answer, after answering what the server asks meanwhile."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with self._http.stream("POST", self._door, json=body, headers=self._head) as answer:
            if method == "initialize":
                self._head = {**self._head, "mcp-session-id": answer.headers["mcp-session-id"]}
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                whole: Json = json.loads(await answer.aread())
                return whole
            async for line in answer.aiter_lines():
                message: Json = json.loads(line[5:]) if line.startswith("data:") and line[5:].strip() else {}
                if message.get("method") == "elicitation/create":
                    content = defaults(message["params"]["requestedSchema"])
                    await self._said({"id": message["id"], "result": {"action": "accept", "content": content}})
                elif "id" in message and "method" not in message:
                    return message
        return {}

    async def _said(self, message: Json) -> None:
        await self._http.post(self._door, json={"jsonrpc": "2.0", **message}, headers=self._head)


def defaults(schema: Json) -> Json:
    """Return what a user says who leaves a form as it is."""
    return {name: each["default"] for name, each in schema.get("properties", {}).items() if "default" in each}


def sample(schema: Json) -> Json:
    """Return arguments that fit a simple schema."""
    properties: Json = schema.get("properties", {})
    return {name: _value(properties[name]) for name in schema.get("required") or properties if name in properties}


def _value(schema: Any) -> Any:
    kind = schema.get("type", "string") if isinstance(schema, dict) else "string"
    return VALUES.get(kind[0] if isinstance(kind, list) else kind)


async def drive(base: str, calls: list[Json]) -> bool:
    """Use the daemon at an address."""
    async with httpx2.AsyncClient(timeout=25, trust_env=False) as http:
        return await Driver(http, base, calls).run()


def main() -> int:
    """Run one scenario; return the exit code."""
    url, scenario = sys.argv[-1], os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        file = directory / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {NAME: entry(url, scenario, context)}}), encoding="utf-8")
        file.chmod(0o600)
        command = [sys.executable, "-m", "supervisor", "run", "--config", str(file), "--listen", "127.0.0.1:0"]
        command += ["--data-dir", str(directory / "data")]
        daemon = subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True)
        try:
            assert daemon.stdout is not None
            base = daemon.stdout.readline().removeprefix("listening on ").strip()
            return 0 if trio.run(drive, base, context.get("toolCalls", [])) else 1
        finally:
            daemon.terminate()
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(5)
            daemon.kill()


if __name__ == "__main__":
    sys.exit(main())

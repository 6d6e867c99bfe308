"""What the official conformance suite runs as a client: a daemon in front of its server, used as a user would.

`python -m benchmarks.conformance_client URL` starts a daemon with that server, logs in where it asks for it, as a
browser would whose user says yes to everything, and calls every tool. The suite tells the scenario by the environment.
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
    """Uses one daemon."""

    def __init__(self, http: httpx2.AsyncClient, base: str) -> None:
        self._http = http
        self._base = base
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
        for tool in await self.tools():
            good &= await self.called(tool)
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
        """Return the tools of the server with their schemas."""
        rows = (await self.meta("discover_mcp_tools", {"query": "*", "limit": 50}))["structuredContent"]["tools"]
        return [await self._detailed(row["tool_path"]) for row in rows]

    async def _detailed(self, path: str) -> Json:
        """Return a tool with its schema: a page on it alone has that."""
        answer = await self.meta("discover_mcp_tools", {"query": path, "limit": 1})
        shown = answer["structuredContent"]["tools"]
        return {"path": path, "schema": next((tool.get("inputSchema", {}) for tool in shown), {})}

    async def called(self, tool: Json) -> bool:
        """Call a tool, logging in if it takes more rights; return whether it was answered."""
        arguments = {"tool_path": tool["path"], "arguments": sample(tool["schema"])}
        while True:
            answer = await self.meta("execute_mcp_tool", arguments)
            kind = answer.get("structuredContent", {}).get("error", {}).get("type", "")
            print(f"{tool['path']}: {json.dumps(answer)[:300]}")
            if kind != "requires_reauth":
                return kind in ("", "server_error")  # what the server itself says is an answer
            if not await self.log_in():
                return False

    async def meta(self, name: str, arguments: Json) -> Json:
        """Return the result of a meta-tool."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        result: Json = (await self._http.post(f"{self._base}/mcp", json=body)).json().get("result", {})
        return result


def sample(schema: Json) -> Json:
    """Return arguments that fit a simple schema."""
    properties: Json = schema.get("properties", {})
    return {name: _value(properties[name]) for name in schema.get("required") or properties if name in properties}


def _value(schema: Any) -> Any:
    kind = schema.get("type", "string") if isinstance(schema, dict) else "string"
    return VALUES.get(kind[0] if isinstance(kind, list) else kind)


async def drive(base: str) -> bool:
    """Use the daemon at an address."""
    async with httpx2.AsyncClient(timeout=25, trust_env=False) as http:
        return await Driver(http, base).run()


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
            return 0 if trio.run(drive, base) else 1
        finally:
            daemon.terminate()
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(5)
            daemon.kill()


if __name__ == "__main__":
    sys.exit(main())

"""Clients of the field at a gate, as their issues and sources say they behave: what each does with a 401 or a 403.

None of them is the program itself; a row says what the daemon can rely on of it. Each counts how often it would have
opened a browser for its user, which is what a wrong answer of ours costs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import httpx2
from msgspec import Struct

PUBLIC: Final = "https://mcp.example"
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
RPC_HEAD: Final = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class Habits(Struct, frozen=True, kw_only=True):
    """What one client does. `probes`: methods that it tries with nothing first.

    `finds`: where it looks for the metadata; `resource`: how these must name the address that it was told.
    `static`: it has a token in its configuration, and no way to sign in. `logs_in_at`: answers for which it opens a
    browser at once, whatever it holds. `steps_up`: it asks for more scopes after a 403.
    """

    probes: tuple[str, ...] = ()
    finds: Literal["challenge", "well-known"] = "challenge"
    resource: Literal["equal", "prefix", "ignored"] = "prefix"
    static: bool = False
    logs_in_at: tuple[int, ...] = (401,)
    steps_up: bool = False


CLIENTS: Final = {
    "Python SDK": Habits(steps_up=True),
    "TypeScript SDK": Habits(steps_up=True),
    "Claude Code": Habits(finds="well-known"),
    "Claude Code, with a header": Habits(static=True, logs_in_at=()),
    "claude.ai": Habits(probes=("GET", "GET")),
    "VS Code": Habits(logs_in_at=(401, 403)),
    "VS Code, with a header": Habits(static=True, logs_in_at=(401, 403)),
    "Cursor": Habits(probes=("POST",)),
    "Codex": Habits(static=True, logs_in_at=()),
    "Gemini CLI": Habits(finds="well-known", resource="equal"),
    "mcp-remote, without a resource": Habits(resource="ignored"),
}


class SignInClient:
    """One client with its user. `issue` gives the token that its user's yes, or a refresh, leads to, for a resource."""

    def __init__(
        self, http: httpx2.AsyncClient, habits: Habits, issue: Callable[[str], str], path: str = "/mcp"
    ) -> None:
        self._http = http
        self._habits = habits
        self._issue = issue
        self._path = path
        self._resource = ""
        self.token = issue("") if habits.static else ""
        self.session = ""
        self.browsers = 0
        self.refreshed = 0
        self.seen: Counter[int] = Counter()

    async def connect(self) -> None:
        """Initialize, as somebody who has only been told an address, or a token as well."""
        for method in self._habits.probes:
            answer = await self._http.request(method, self._path, headers=RPC_HEAD, content=b"{}")
            assert answer.status_code == 401, "anything else is taken for a server that wants nobody to sign in"
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        answer = await self.ask("initialize", **params)
        self.session = answer.headers["mcp-session-id"]

    async def ask(self, method: str, **params: Any) -> httpx2.Response:
        """Send one request, and once more with what the answer leads to."""
        answer = await self._send(method, params)
        if answer.status_code in (401, 403) and await self._follow(answer):
            answer = await self._send(method, params)
        return answer

    async def _send(self, method: str, params: dict[str, Any]) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = await self._http.post(self._path, headers=self.headers(), json=body)
        self.seen[answer.status_code] += 1
        return answer

    def headers(self) -> dict[str, str]:
        shown = {"authorization": f"Bearer {self.token}"} if self.token else {}
        session = {"mcp-session-id": self.session} if self.session else {}
        return {**RPC_HEAD, **shown, **session}

    async def listen(self) -> int:
        """Open the stream of the session and read it to its end; return the status of its answer."""
        head = {**self.headers(), "accept": "text/event-stream"}
        async with self._http.stream("GET", self._path, headers=head) as stream:
            self.seen[stream.status_code] += 1
            if stream.status_code == 401:
                await stream.aread()
                await self._follow(stream)
                return 401
            try:
                async for _ in stream.aiter_raw():
                    pass
            except httpx2.RemoteProtocolError:
                pass
        return stream.status_code

    async def _follow(self, answer: httpx2.Response) -> bool:
        """Do what an answer leads to; False if that is nothing."""
        step_up = answer.status_code == 403 and self._habits.steps_up
        if answer.status_code not in self._habits.logs_in_at and not step_up:
            return False
        if self._habits.static:
            self.browsers += 1
            return False
        (line,) = answer.headers.get_list("www-authenticate")
        if self.token:
            self.refreshed += 1
        else:
            await self._discover(line)
            self.browsers += 1
        self.token = self._issue(self._resource)
        return True

    async def _discover(self, line: str) -> None:
        named = re.search(r'resource_metadata="([^"]+)"', line)
        assert named is not None
        at = urlsplit(named[1]).path if self._habits.finds == "challenge" else WELL_KNOWN + self._path
        document = (await self._http.get(at)).json()
        assert document["authorization_servers"]
        address, resource = PUBLIC + self._path, document["resource"]
        if self._habits.resource == "equal":
            assert resource == address
        else:
            assert address.startswith(resource)
        self._resource = "" if self._habits.resource == "ignored" else resource

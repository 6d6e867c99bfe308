"""What our own commands ask a running daemon for, over HTTP; see `sockets` for what happens there.

- Calls go through the same door as every client's, `/mcp`, as legacy requests without a session, which name their
  revision: without that they would be of an older one, and get no structured content.
- Proxies of the environment are not used: the daemon is on this machine, or reached by its own address.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec

from actors.errors import InvalidArguments, SpawnFailed, UnknownDoor
from actors.protocol.agreement.versions import LATEST_LEGACY, LATEST_MODERN, META_CAPABILITIES, META_VERSION
from actors.protocol.wire.jsonrpc import encode
from actors.transport.http.client.verdict import context_for
from actors.transport.http.head import METHOD, NAME, VERSION
from supervisor.daemon_client.requests import (
    NOT_OURS,
    PAGE_TIMEOUT_S,
    DaemonRequests,
    DaemonUnreachable,
    RequestRefused,
    decode,
)
from supervisor.service.fitting.relay import WHOLE

SEARCH_TIMEOUT_S = 40.0
"""Right after the daemon's start a search waits for the first index, up to 30 s."""
CALL_TIMEOUT_S = 300.0
"""Over every deadline the daemon is likely to have; the daemon answers first, and its answer says more."""
CONNECT_TIMEOUT_S = 5.0
RELOAD_TIMEOUT_S = 40.0
"""The daemon gives up after 30 s."""
LOGIN_TIMEOUT_S = 120.0
"""The daemon asks several servers before it knows where a user says yes, each with a deadline."""
DOORS = ("/mcp", "/ws", "/api/status", "/api")
"""Paths of a daemon that people have at hand when they are asked for its address."""


def base_url(url: str) -> str:
    """Return the base URL for any address that people have of a daemon, such as `host:port` or `ws://host/ws/`."""
    text = url.strip()
    if "://" not in text:
        text = f"http://{text}"
    scheme, _, rest = text.partition("://")
    scheme = {"ws": "http", "wss": "https"}.get(scheme.lower(), scheme.lower())
    rest = rest.partition("?")[0].partition("#")[0].rstrip("/")
    host, slash, path = rest.partition("/")
    if "ui" in (parts := path.split("/")):  # of a page that somebody looks at
        rest = (host + slash + "/".join(parts[: parts.index("ui")])).rstrip("/")
    for door in DOORS:
        rest = rest.removesuffix(door).rstrip("/")
    return f"{scheme}://{rest}"


class ConfigurationSource(msgspec.Struct):
    """With which file a daemon runs."""

    path: str


class DaemonClient(DaemonRequests):
    """Asks one daemon; see `connect`."""

    async def status(self) -> dict[str, Any]:
        return await self.page("/api/status", needs="servers")

    async def page(self, path: str, parameters: Mapping[str, Any] | None = None, *, needs: str) -> dict[str, Any]:
        """Return the object of a page, which has the member `needs`. Raises `RequestRefused`, `DaemonUnreachable`."""
        given = {name: value for name, value in (parameters or {}).items() if value is not None}
        return self._object(await self._ask("GET", path, PAGE_TIMEOUT_S, params=given), needs)

    async def tools(self, door: str) -> set[str]:
        """Return the names of the tools at a door, such as `/mcp/all`, of the first page. Raises as `page` does."""
        headers = {"content-type": "application/json", "accept": "application/json", VERSION: LATEST_LEGACY}
        body = encode({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        answer = self._object(await self._ask("POST", door, PAGE_TIMEOUT_S, headers, content=body), "result")
        try:
            return {tool["name"] for tool in answer["result"]["tools"]}
        except (KeyError, TypeError):
            raise DaemonUnreachable(self._url, NOT_OURS) from None

    async def missing(self, door: str) -> str:
        """Return why there is no such door, empty if there is. Raises `DaemonUnreachable`, `RequestRefused`."""
        headers = {"content-type": "application/json", "accept": "application/json", VERSION: LATEST_LEGACY}
        ping = encode({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        try:
            self._object(await self._ask("POST", door, PAGE_TIMEOUT_S, headers, content=ping), "result")
        except RequestRefused as error:
            kind = error.data.get("type") if isinstance(error.data, dict) else None
            if kind == UnknownDoor.kind or error.code == UnknownDoor.http_status:
                return error.message
            raise
        return ""

    async def order(self, server: str, order: str, deadline_s: float) -> dict[str, Any]:
        path, given = f"/api/servers/{quote(server, safe='')}/{order}", {"deadline_s": deadline_s}
        return self._object(await self._ask("POST", path, deadline_s + PAGE_TIMEOUT_S, params=given), "message")

    async def reload(self, *, plan: bool = False, path: str = "") -> dict[str, Any]:
        """Have the configuration read again; `plan`: only say what that would do, also with the file at `path`."""
        parameters = {"plan": "true", "path": path} if plan else {}
        return self._object(await self._ask("POST", "/api/reload", RELOAD_TIMEOUT_S, params=parameters), "message")

    async def configuration(self) -> ConfigurationSource:
        content = await self._ask("GET", "/api/configuration", PAGE_TIMEOUT_S)
        self._object(content, "loaded_at")
        return decode(content, ConfigurationSource, self._url)

    async def fault(self) -> str:
        """Return the fault for which the daemon refuses its configuration; empty if it does not, or does not say."""
        if self.refused is None:
            with suppress(DaemonUnreachable):
                await self._ask("GET", "/api/configuration", PAGE_TIMEOUT_S)
        return self.refused or ""

    async def edit(self, method: str, server: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Add (POST, to no server), change (PATCH) or remove (DELETE) a server."""
        path = "/api/servers" + (f"/{quote(server, safe='')}" if server else "")
        return await self._send(method, path, body, "message", RELOAD_TIMEOUT_S, keyed=True)

    async def make_token(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        return await self._send("POST", "/api/access-tokens", wanted, "token")

    async def revoke(self, what: str, id_: str) -> dict[str, Any]:
        """Take back one of `access-tokens` or `consents`."""
        return self._object(await self._ask("DELETE", f"/api/{what}/{quote(id_, safe='')}", PAGE_TIMEOUT_S), "revoked")

    async def drain(self, *, undo: bool, deadline_s: float) -> dict[str, Any]:
        given = {"undo": str(undo).lower()}
        return self._object(await self._ask("POST", "/api/nodes/drain", deadline_s, params=given), "moved")

    async def publish(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        return await self._send("POST", "/api/nodes/configuration", wanted, "digest", RELOAD_TIMEOUT_S, keyed=True)

    async def answer_question(self, id_: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        return await self._send("POST", f"/api/questions/{quote(id_, safe='')}", answer, "action")

    async def ticket(self) -> str:
        """Return a ticket that signs a browser in, once; empty where nobody has to show who they are."""
        try:
            answer = await self._ask("POST", "/api/tickets", PAGE_TIMEOUT_S, params={"purpose": "sign-in"})
            return str(self._object(answer, "ticket")["ticket"])
        except RequestRefused as error:
            if isinstance(error.data, dict) and error.data.get("type") == InvalidArguments.kind:
                return ""
            raise

    async def give_value(self, place: Sequence[str], wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Give the value of a tier, an owner, a server and a name."""
        return await self._send("PUT", _value_path(place), wanted, "given", keyed=True)

    async def forget_value(self, place: Sequence[str]) -> dict[str, Any]:
        return self._object(await self._ask("DELETE", _value_path(place), PAGE_TIMEOUT_S), "forgotten")

    async def approve(self, server: str, digests: Mapping[str, str]) -> dict[str, Any]:
        """Approve definitions of a server's tools, by name and digest in hexadecimal."""
        body = {"server": server, "tools": digests}
        return await self._send("POST", "/api/trust", body, "approved", PAGE_TIMEOUT_S * 2, keyed=True)

    async def login(self, server: str) -> dict[str, Any]:
        path = f"/api/servers/{quote(server, safe='')}/login"
        return self._object(await self._ask("POST", path, LOGIN_TIMEOUT_S), "state")

    async def answer_login(self, login: str, text: str) -> dict[str, Any]:
        """Give the code that a browser shows, or the address that it ended at."""
        path = f"/api/logins/{quote(login, safe='')}/answer"
        return await self._send("POST", path, {"answer": text}, "state", LOGIN_TIMEOUT_S)

    async def call(
        self,
        name: str,
        arguments: Any,
        timeout_s: float = CALL_TIMEOUT_S,
        *,
        asked: Mapping[str, Any] | None = None,
        retry: Mapping[str, Any] | None = None,
        profile: str = "",
    ) -> dict[str, Any]:
        """Call a tool, a meta-tool or one behind them, and return its result, whole, also one with `isError`.

        `asked`: the capabilities of a client that can be asked; then the result may be incomplete, and the call is made
        again with a `retry` (MCP 2026-07-28, basic/patterns/mrtr). `profile`: as a client of that. Raises
        `RequestRefused`, `DaemonUnreachable`.
        """
        meta: dict[str, Any] = {WHOLE: True}
        params = {"name": name, "arguments": arguments, "_meta": meta, **(retry or {})}
        headers = {"content-type": "application/json", "accept": "application/json"}
        if asked is None:
            headers[VERSION] = LATEST_LEGACY
        else:
            headers |= {VERSION: LATEST_MODERN, METHOD: "tools/call", NAME: name}
            meta |= {META_VERSION: LATEST_MODERN, META_CAPABILITIES: asked}
        body = encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        path = f"/mcp?profile={quote(profile, safe='')}" if profile else "/mcp"
        content = await self._ask("POST", path, timeout_s, content=body, headers=headers)
        result = self._object(content, "result")["result"]
        if not isinstance(result, dict):
            raise DaemonUnreachable(self._url, NOT_OURS)
        return result


def _value_path(place: Sequence[str]) -> str:
    return "/".join(["/api/values", *(quote(part, safe="") for part in place)])


@asynccontextmanager
async def connect(url: str, node: str = "") -> AsyncIterator[DaemonClient]:
    """Return a client for the daemon at `url`, in any form that `base_url` knows; nothing is sent yet.

    `node` names the node of a fleet that is to answer.

    Raises `DaemonUnreachable` where the certificates that it trusts cannot be read.
    """
    url, timeout = base_url(url), httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S)
    try:
        trusted = await context_for(url)
    except SpawnFailed as error:
        raise DaemonUnreachable(url, error.message) from None
    async with httpx2.AsyncClient(timeout=timeout, trust_env=False, verify=trusted) as http:
        yield DaemonClient(http, url, node)

"""What our own commands ask a running daemon for, over HTTP; see `sockets` for what happens there.

- Calls go through the same door as every client's, `/mcp`, as legacy requests without a session, which name their
  revision: without that they would be of an older one, and get no structured content.
- Proxies of the environment are not used: the daemon is on this machine, or reached by its own address.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
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
from supervisor.operations import CONFIGURATION, MAKE_TICKET, Operation
from supervisor.service.fitting.relay import WHOLE

SEARCH_TIMEOUT_S = 40.0
"""Right after the daemon's start a search waits for the first index, up to 30 s."""
CALL_TIMEOUT_S = 300.0
"""Over every deadline the daemon is likely to have; the daemon answers first, and its answer says more."""
CONNECT_TIMEOUT_S = 5.0
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

    async def perform(
        self,
        operation: Operation,
        query: Mapping[str, Any] | None = None,
        *,
        body: Mapping[str, Any] | None = None,
        timeout_s: float = 0.0,
        **arguments: str,
    ) -> dict[str, Any]:
        """Return the answer of an operation; what is None in `query` is left out. Raises `RequestRefused`,
        `DaemonUnreachable`.
        """
        more: dict[str, Any] = {"params": {name: value for name, value in (query or {}).items() if value is not None}}
        headers = {}
        if body is not None:
            headers["content-type"], more["content"] = "application/json", encode(dict(body))
        path, timeout_s = operation.path(arguments), timeout_s or operation.timeout_s
        keyed = bool(operation.keyed)
        return self._object(
            await self._ask(operation.method, path, timeout_s, headers, keyed=keyed, **more), operation.answers
        )

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

    async def configuration(self) -> ConfigurationSource:
        content = await self._ask("GET", CONFIGURATION.rule, PAGE_TIMEOUT_S)
        self._object(content, "loaded_at")
        return decode(content, ConfigurationSource, self._url)

    async def fault(self) -> str:
        """Return the fault for which the daemon refuses its configuration; empty if it does not, or does not say."""
        if self.refused is None:
            with suppress(DaemonUnreachable):
                await self._ask("GET", CONFIGURATION.rule, PAGE_TIMEOUT_S)
        return self.refused or ""

    async def ticket(self) -> str:
        """Return a ticket that signs a browser in, once; empty where nobody has to show who they are."""
        try:
            return str((await self.perform(MAKE_TICKET, {"purpose": "sign-in"}))["ticket"])
        except RequestRefused as error:
            if isinstance(error.data, dict) and error.data.get("type") == InvalidArguments.kind:
                return ""
            raise

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

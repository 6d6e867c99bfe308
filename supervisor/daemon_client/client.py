"""What our own commands ask a running daemon for, over HTTP; `sockets` has what happens there.

- Calls go through the same door as every client's, `/mcp`, as legacy requests without a session, which name their
  revision: without that they would be of an older one, and get no structured content.
- Every request has a deadline. A daemon that is not there, or is not ours, is a typed error with what to do.
- A daemon that wants to see that we can read its key gives a challenge; then the request is made again, with a pass.
- An order that takes the key in any case is given only then: another program may listen there, and what is ordered,
  with the values in it, is for who has proved to have the key.
- Proxies of the environment are not used: the daemon is on this machine, or reached by its own address.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
import msgspec
import trio

from actors.errors import InvalidArguments, SpawnFailed, UnknownDoor
from actors.protocol.agreement.versions import LATEST_LEGACY, LATEST_MODERN, META_CAPABILITIES, META_VERSION
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from actors.transport.http.client.verdict import NOT_TRUSTED, context_for, why
from actors.transport.http.head import METHOD, NAME, VERSION
from supervisor.identity.operator_key import endpoint
from supervisor.operations import CONFIGURATION, MAKE_TICKET, Operation
from supervisor.operator_pass import NoPass, authorization, challenge_in, pass_for
from supervisor.servers.reloading.refusal import HEADER, fault_of
from supervisor.service.fitting.relay import WHOLE

T = TypeVar("T")

_NO_HEADERS: Mapping[str, str] = {}
_UNAUTHORIZED = 401
_END = "mcpvisor_end"
_CONNECTED = "connection.connect_tcp.complete"

_PAGE_TIMEOUT_S = 10.0
_NOT_OURS = "something else listens there"


class DaemonUnreachable(Exception):
    """No daemon answered at that address within the deadline."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"no daemon answers at {url}: {reason}")


class RequestRefused(Exception):
    """The daemon, or a server behind it, answered with a JSON-RPC error. `data` is its data, or None."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class _Error(msgspec.Struct):
    code: int
    message: str
    data: Any = None


async def _note_new_end(request: httpx2.Request) -> None:
    """Have remembered to whom the connection leads that is made for a request, as soon as it is."""

    async def note(event: str, about: Mapping[str, Any]) -> None:
        if event == _CONNECTED:
            _note(request, about["return_value"])

    request.extensions = {**request.extensions, "trace": note}


async def _note_end(response: httpx2.Response) -> None:
    """Remember to whom the connection leads that was there before."""
    _note(response.request, response.extensions.get("network_stream"))


def _note(request: httpx2.Request, stream: Any) -> None:
    with suppress(AttributeError, OSError, TypeError):  # the other side has ended it already
        request.extensions[_END] = endpoint(stream.get_extra_info("server_addr"))


def _pass(refusal: httpx2.Response) -> Mapping[str, str]:
    """Return what shows that the key of the daemon can be read which has refused a request, if it asks for that."""
    challenge, asked = challenge_in(refusal.content), refusal.request
    if challenge is None:
        return _NO_HEADERS
    path = asked.url.raw_path.partition(b"?")[0].decode("ascii")
    try:
        return pass_for(challenge, asked.extensions.get(_END, ""), asked.method, path)
    except NoPass as error:
        raise RequestRefused(_UNAUTHORIZED, str(error)) from None


def _reason(error: Exception) -> str:
    """Say why nobody answered, and what to do about a certificate."""
    if (reason := why(error)).startswith(NOT_TRUSTED):
        return f"{reason}; if it is yours, name its file in SSL_CERT_FILE"
    return str(error) or reason


def decode(content: bytes | str | msgspec.Raw, type_: type[T], url: str) -> T:
    try:
        return json.read(msgspec.json.Decoder(type_), content)
    except json.UnreadableJson:
        raise DaemonUnreachable(url, _NOT_OURS) from None


SEARCH_TIMEOUT_S = 40.0
"""Right after the daemon's start a search waits for the first index, up to 30 s."""
_CALL_TIMEOUT_S = 300.0
"""Over every deadline the daemon is likely to have; the daemon answers first, and its answer says more."""
CONNECT_TIMEOUT_S = 5.0
_DOORS = ("/mcp", "/ws", "/api/status", "/api")
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
    for door in _DOORS:
        rest = rest.removesuffix(door).rstrip("/")
    return f"{scheme}://{rest}"


class ConfigurationSource(msgspec.Struct):
    """With which file a daemon runs."""

    path: str


class DaemonClient:
    """Asks one daemon; see `connect`. `refused`: why it refuses its configuration, "" if not, None if not known.

    `node`: which node of a fleet is to answer, whichever stands at the address; empty: any.
    """

    def __init__(self, http: httpx2.AsyncClient, url: str, node: str = "") -> None:
        self._node = {"node": node} if node else {}
        self.refused: str | None = None
        self._http = http
        self._url = url
        self._token = authorization()
        http.event_hooks = {"request": [_note_new_end], "response": [_note_end]}

    def _object(self, content: bytes, needs: str) -> dict[str, Any]:
        members = decode(content, dict[str, msgspec.Raw], self._url)
        if "error" in members:
            error = decode(members["error"], _Error, self._url)
            raise RequestRefused(error.code, error.message, error.data)
        if needs not in members:
            raise DaemonUnreachable(self._url, _NOT_OURS)
        return {name: json.VALUE.decode(value) for name, value in members.items()}

    async def _ask(
        self,
        method: str,
        path: str,
        timeout_s: float,
        headers: Mapping[str, str] = _NO_HEADERS,
        *,
        keyed: bool = False,
        **more: Any,
    ) -> bytes:
        if self._node and path.startswith("/api/"):
            more["params"] = {**(more.get("params") or {}), **self._node}
        with trio.move_on_after(timeout_s):
            first = {**more, "content": b""} if keyed and not self._token else more
            response = await self._send_once(method, path, {**headers, **self._token}, first)
            if response.status_code == _UNAUTHORIZED and not self._token and (shown := _pass(response)):
                response = await self._send_once(method, path, {**headers, **shown}, more)
            if path.startswith("/api/"):
                self.refused = fault_of(response.headers.get(HEADER, ""))
            return response.content
        raise DaemonUnreachable(self._url, f"no answer within {timeout_s:g} s")

    async def _send_once(
        self, method: str, path: str, headers: Mapping[str, str], more: Mapping[str, Any]
    ) -> httpx2.Response:
        try:
            return await self._http.request(method, self._url + path, headers=headers, **more)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise DaemonUnreachable(self._url, _reason(error)) from None

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
        answer = self._object(await self._ask("POST", door, _PAGE_TIMEOUT_S, headers, content=body), "result")
        try:
            return {tool["name"] for tool in answer["result"]["tools"]}
        except (KeyError, TypeError):
            raise DaemonUnreachable(self._url, _NOT_OURS) from None

    async def missing(self, door: str) -> str:
        """Return why there is no such door, empty if there is. Raises `DaemonUnreachable`, `RequestRefused`."""
        headers = {"content-type": "application/json", "accept": "application/json", VERSION: LATEST_LEGACY}
        ping = encode({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        try:
            self._object(await self._ask("POST", door, _PAGE_TIMEOUT_S, headers, content=ping), "result")
        except RequestRefused as error:
            kind = error.data.get("type") if isinstance(error.data, dict) else None
            if kind == UnknownDoor.kind or error.code == UnknownDoor.http_status:
                return error.message
            raise
        return ""

    async def configuration(self) -> ConfigurationSource:
        content = await self._ask("GET", CONFIGURATION.rule, _PAGE_TIMEOUT_S)
        self._object(content, "loaded_at")
        return decode(content, ConfigurationSource, self._url)

    async def fault(self) -> str:
        """Return the fault for which the daemon refuses its configuration; empty if it does not, or does not say."""
        if self.refused is None:
            with suppress(DaemonUnreachable):
                await self._ask("GET", CONFIGURATION.rule, _PAGE_TIMEOUT_S)
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
        timeout_s: float = _CALL_TIMEOUT_S,
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
            raise DaemonUnreachable(self._url, _NOT_OURS)
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

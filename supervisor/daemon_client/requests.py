"""A request of our own commands to a running daemon: how it is made, and what may come of it.

- Every request has a deadline. A daemon that is not there, or is not ours, is a typed error with what to do.
- A daemon that wants to see that we can read its key gives a challenge; then the request is made again, with a pass.
- An order that takes the key in any case is given only then: another program may listen there, and what is ordered,
  with the values in it, is for who has proved to have the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

import httpx2
import msgspec
import trio

from actors.protocol.wire import json
from actors.transport.http.client.verdict import NOT_TRUSTED, why
from supervisor.identity.operator_key import endpoint
from supervisor.operator_pass import NoPass, authorization, challenge_in, pass_for
from supervisor.servers.reloading.refusal import HEADER, fault_of

T = TypeVar("T")

NO_HEADERS: Mapping[str, str] = {}
UNAUTHORIZED = 401
_END = "mcpvisor_end"
_CONNECTED = "connection.connect_tcp.complete"

PAGE_TIMEOUT_S = 10.0
NOT_OURS = "something else listens there"


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


class DaemonRequests:
    """Asks one daemon. `refused`: why it refuses its configuration, "" if not, None if not known.

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
            raise DaemonUnreachable(self._url, NOT_OURS)
        return {name: json.VALUE.decode(value) for name, value in members.items()}

    async def _ask(
        self,
        method: str,
        path: str,
        timeout_s: float,
        headers: Mapping[str, str] = NO_HEADERS,
        *,
        keyed: bool = False,
        **more: Any,
    ) -> bytes:
        if self._node and path.startswith("/api/"):
            more["params"] = {**(more.get("params") or {}), **self._node}
        with trio.move_on_after(timeout_s):
            first = {**more, "content": b""} if keyed and not self._token else more
            response = await self._send_once(method, path, {**headers, **self._token}, first)
            if response.status_code == UNAUTHORIZED and not self._token and (shown := _pass(response)):
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
        return NO_HEADERS
    path = asked.url.raw_path.partition(b"?")[0].decode("ascii")
    try:
        return pass_for(challenge, asked.extensions.get(_END, ""), asked.method, path)
    except NoPass as error:
        raise RequestRefused(UNAUTHORIZED, str(error)) from None


def _reason(error: Exception) -> str:
    """Say why nobody answered, and what to do about a certificate."""
    if (reason := why(error)).startswith(NOT_TRUSTED):
        return f"{reason}; if it is yours, name its file in SSL_CERT_FILE"
    return str(error) or reason


def decode(content: bytes | str | msgspec.Raw, type_: type[T], url: str) -> T:
    try:
        return json.read(msgspec.json.Decoder(type_), content)
    except json.UnreadableJson:
        raise DaemonUnreachable(url, NOT_OURS) from None

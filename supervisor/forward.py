"""From the front to a server and back: one request, with what may travel, its result fitted to the client's era."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import trio

from actors.kit import Address
from actors.messages import CallServer, Result
from actors.protocol.jsonrpc import ErrorObject, RemoteError
from actors.protocol.versions import Era
from actors.router import Message as RouterMessage
from supervisor.front.service import Client
from supervisor.relay import as_tool_result, fit, relayed, travelling_meta


class Forwarder:
    """Asks servers through the router.

    `deadlines` are those of single servers in seconds, `default_s` of the rest; `masks` hide the secrets of servers.
    """

    def __init__(
        self,
        router: Address[RouterMessage],
        default_s: float,
        deadlines: Mapping[str, float],
        masks: Mapping[str, Callable[[str], str]],
    ) -> None:
        self._masks = masks
        self._router = router
        self._default_s = default_s
        self._deadlines = deadlines

    def timeout_s(self, server: str) -> float:
        """Return how long a call of a server may take, waiting for the server included."""
        return self._deadlines.get(server, self._default_s)

    async def ask(
        self,
        client: Client,
        server: str,
        method: str,
        members: bytes,
        meta: msgspec.Raw,
        *,
        since: float,
        era: Era | None = None,
        uri: str = "",
    ) -> bytes:
        """Send one request to a server and return its result, fitted to `era` (default: the client's).

        `members` are JSON members of the params without braces; `since` is when the request came, by the trio clock;
        `uri` is what a `resources/read` is about, as the client wrote it. Raises `SupervisorError`, and `RemoteError`
        in the codes of the client's era. A checkpoint.
        """
        message = CallServer(
            server=server,
            method=method,
            members=members,
            meta=travelling_meta(meta),
            deadline_s=max(0.0, since + self.timeout_s(server) - trio.current_time()),
            principal=client.principal,
        )
        try:
            result: Result = await self._router.ask(message)
        except RemoteError as remote:
            error = masked(remote, self._masks.get(server, str))
            failed = as_tool_result(error, method)
            if failed is None:
                raise relayed(error, method, client.era, uri) from None
            result = failed
        return fit(result, era or client.era, server)


def masked(error: RemoteError, hide: Callable[[str], str]) -> RemoteError:
    """Return a server's error without its secrets: errors, unlike results, are shown and logged everywhere."""
    found = error.error
    message, before = hide(found.message), bytes(found.data).decode(errors="replace")
    after = hide(before)
    if message == found.message and after == before:
        return error
    try:
        msgspec.json.decode(after)
    except msgspec.MsgspecError:  # there was none, or the secret was no text in it
        after = ""
    return RemoteError(ErrorObject(found.code, message, msgspec.Raw(after.encode())))

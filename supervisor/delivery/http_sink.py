"""Sends events to an HTTP endpoint of the operator's choice.

- The answer is its status alone: no body is read, no redirect followed, no cookie kept.
- What the endpoint will never take is given up, so that nothing behind it waits for ever; all else is tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2

from actors.errors import SpawnFailed
from actors.transport.border import Border
from actors.transport.http.client.client import way_to
from actors.transport.http.client.verdict import context_for, why
from supervisor.config.sections import EventSink
from supervisor.delivery.delivery import Delivered, EventBatch, Outcome
from supervisor.events.event import key_of, sign

CONNECT_S: Final = 5.0
_REFUSED: Final = frozenset({400, 413, 415, 422})
"""What says that this batch will never be taken (RFC 9110 15.5)."""
_THROTTLED: Final = 429


class HttpSink:
    """Posts batches to one address. `clock` gives unix seconds."""

    def __init__(self, config: EventSink, clock: Callable[[], float]) -> None:
        self._config = config
        self._clock = clock
        self._key = key_of(config.secret) if config.secret else b""
        self._border = Border(f"the event sink {config.name}")
        self._client: httpx2.AsyncClient | None = None

    async def deliver(self, batch: EventBatch) -> Delivered:
        body = b'{"dropped":%d,"events":[%s]}' % (batch.dropped, b",".join(batch.texts))
        headers = {**self._config.headers, "content-type": "application/json"}
        if self._key:
            headers |= sign(self._key, batch.id, int(self._clock()), body)
        else:
            headers["webhook-id"] = batch.id
        try:
            client = await self._open()
            async with client.stream("POST", self._config.url, content=body, headers=headers) as response:
                return _outcome_of(response.status_code)
        except SpawnFailed as error:
            return Delivered("kept", error.message)
        except httpx2.HTTPError as error:
            return Delivered("kept", f"it cannot be reached, or gives no answer ({why(error)})")
        except Exception as error:  # noqa: BLE001 - the border: what an endpoint sends ends nothing
            return Delivered("kept", self._border.unforeseen(error))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            url, timeout = self._config.url, self._config.timeout_s
            self._client = httpx2.AsyncClient(
                transport=way_to(url, await context_for(url), httpx2.Limits(max_connections=1)),
                trust_env=False,
                headers={"user-agent": "mcpvisor", "accept-encoding": "identity"},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                timeout=httpx2.Timeout(timeout, connect=min(timeout, CONNECT_S)),
                follow_redirects=False,
            )
        return self._client


def _outcome_of(status: int) -> Delivered:
    if 200 <= status < 300:
        return Delivered("taken")
    outcome: Outcome = "refused" if status in _REFUSED else "throttled" if status == _THROTTLED else "kept"
    return Delivered(outcome, f"it answers HTTP {status}")

"""A model behind an OpenAI-compatible service, at the address that the operator wrote: `POST .../chat/completions`.

No redirect is followed, no cookie kept, and of a refusal only the status is read: its text may have the key in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2
import msgspec
import trio

from actors.errors import SpawnFailed
from actors.kit.fairness.share import share_of
from actors.protocol.wire import json
from actors.transport.border import Border
from actors.transport.http.client.client import way_to
from actors.transport.http.client.pieces import whole
from actors.transport.http.client.verdict import context_for, why
from actors.transport.http.remote import server_of
from supervisor.config.sections import DescribeSettings
from supervisor.phrases.asking import MAX_ANSWER_BYTES, Message, NoAnswer

_CONNECT_S: Final = 10.0


class _Said(msgspec.Struct, frozen=True):
    content: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Said


class _Completion(msgspec.Struct, frozen=True):
    choices: tuple[_Choice, ...]


_COMPLETION: Final = msgspec.json.Decoder(_Completion)


class Endpoint:
    """Asks one service."""

    def __init__(self, settings: DescribeSettings) -> None:
        self._settings = settings
        self._url = settings.url.rstrip("/") + "/chat/completions"
        self._border = Border("the service of `describe`")
        self._client: httpx2.AsyncClient | None = None

    async def ask(self, messages: Sequence[Message]) -> bytes:
        """Return what the model said. Raises `NoAnswer`."""
        try:
            with trio.fail_after(self._settings.timeout_s):
                return await share_of(server_of(self._url)).run(self._ask, messages)
        except trio.TooSlowError:
            raise NoAnswer(f"it gave no answer within {self._settings.timeout_s:g} s") from None
        except SpawnFailed as error:
            raise NoAnswer(error.message) from None
        except httpx2.HTTPError as error:
            raise NoAnswer(f"it cannot be reached, or gives no answer ({why(error)})") from None
        except NoAnswer:
            raise
        except Exception as error:  # noqa: BLE001 - the border: what a service sends ends nothing
            raise NoAnswer(self._border.unforeseen(error)) from None

    async def close(self) -> None:
        """Close its connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _ask(self, messages: Sequence[Message]) -> bytes:
        client, body = await self._open(), {"model": self._settings.model, "messages": messages, "stream": False}
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self._settings.key:
            headers["authorization"] = f"Bearer {self._settings.key}"
        content = msgspec.json.encode(body)
        async with client.stream("POST", self._url, content=content, headers=headers) as response:
            if response.status_code != httpx2.codes.OK:
                raise NoAnswer(f"it answers HTTP {response.status_code}")
            answer = await whole(response, MAX_ANSWER_BYTES, share_of(server_of(self._url)))
        if answer is None:
            return b""
        said = json.read_or(_COMPLETION, answer, None)
        if said is None or not said.choices:
            raise NoAnswer("what it answers is no chat completion")
        return (said.choices[0].message.content or "").encode(errors="replace")

    async def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            timeout = self._settings.timeout_s
            self._client = httpx2.AsyncClient(
                transport=way_to(self._url, await context_for(self._url), httpx2.Limits(max_connections=1)),
                trust_env=False,
                headers={"user-agent": "mcpvisor", "accept-encoding": "identity"},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                timeout=httpx2.Timeout(timeout, connect=min(timeout, _CONNECT_S)),
                follow_redirects=False,
            )
        return self._client

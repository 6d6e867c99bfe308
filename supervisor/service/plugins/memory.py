"""What is known of a call that its client is to make again, as far as plugins asked something about it.

- It is kept under the state that the client sends back, whoever that is of: the daemon, or a modern server. It is taken
  once, by the same principal and for the same request.
- It is bounded in calls and bytes, which principals share, and gone when its time is over. Nothing of it is logged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec
import trio

from actors.kit import Quota
from actors.principal import Principal
from actors.transport.redaction import Confidential
from supervisor.plugins.contract import ToolCall
from supervisor.plugins.questions import GivenAnswer

MAX_CALLS: Final = 1024
MAX_BYTES: Final = 32 * 1024 * 1024
"""Of all answers and results that are kept."""
Answers = Mapping[str, Mapping[str, GivenAnswer]]
"""By the name of the plugin, and the key of its question."""


class KnownCall(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one. `pending` is the plugin, and the key of its question, whose answer comes with the request.

    `call` and `result` are those of a call that was made, whose result plugins ask about.
    """

    answers: Answers = {}
    pending: tuple[str, str] | None = None
    call: ToolCall | None = None
    result: bytes = b""

    @property
    def size(self) -> int:
        given = sum(len(each.content) for of_plugin in self.answers.values() for each in of_plugin.values())
        return given + len(self.result) + (len(self.call.arguments) if self.call is not None else 0)


class _Kept(msgspec.Struct, frozen=True):
    principal: Principal
    known: KnownCall
    size: int
    until: float


class CallMemory:
    """What is known of all calls that are to be made again."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Principal, bytes, bytes], _Kept] = {}
        self._calls, self._bytes = Quota(MAX_CALLS), Quota(MAX_BYTES)

    def __len__(self) -> int:
        return len(self._kept)

    def has_room(self, principal: Principal, known: KnownCall) -> bool:
        self._drop_expired()
        return self._calls.has_room(principal) and self._bytes.has_room(principal, known.size)

    def keep(self, principal: Principal, digest: bytes, state: str, known: KnownCall, for_s: float) -> None:
        """Keep what is known of a request with this digest for so long, if there is room: else it is asked again."""
        key = _key(principal, digest, state)
        self._drop(key)
        if self.has_room(principal, known):
            self._kept[key] = _Kept(principal, known, known.size, trio.current_time() + for_s)
            self._calls.add(principal)
            self._bytes.add(principal, known.size)

    def take(self, principal: Principal, digest: bytes, state: str) -> KnownCall | None:
        self._drop_expired()
        return self._drop(_key(principal, digest, state))

    def _drop(self, key: tuple[Principal, bytes, bytes]) -> KnownCall | None:
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        self._calls.remove(kept.principal)
        self._bytes.remove(kept.principal, kept.size)
        return kept.known

    def _drop_expired(self) -> None:
        now = trio.current_time()
        for key in [key for key, kept in self._kept.items() if kept.until <= now]:
            self._drop(key)


def _key(principal: Principal, digest: bytes, state: str) -> tuple[Principal, bytes, bytes]:
    return principal, digest, hashlib.blake2b(state.encode(errors="surrogatepass"), digest_size=16).digest()

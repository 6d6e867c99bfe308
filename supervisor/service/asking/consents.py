"""What people have said yes to for longer than one call: a tool, as it was defined then, for a session or for good.

- A yes is one person's. Where it is for a session it is also that of one client, in memory, for twelve hours at most.
- It is for one definition of a tool: one that has changed is asked about again.
- Anybody takes their own back, and an admin anybody's.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, Literal, Protocol

import msgspec
import trio

from actors.catalogue.lists.marks import digest
from actors.principal import Principal
from supervisor.service.asking.exchange import Exchange

How = Literal["once", "session", "always"]
SESSION_S: Final = 12 * 3600.0
MAX_OF_ONE: Final = 1000
"""Of one person; the oldest go first."""


class Consent(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One yes, given at `given_at` (unix s). `client` is empty for one for good; `pinned` is a digest of the tool."""

    principal: Principal
    server: str
    tool: str
    pinned: bytes
    client: str = ""
    given_at: float = 0.0

    @property
    def id(self) -> str:
        """By which it is taken back."""
        text = "\0".join((self.principal, self.server, self.tool, self.client)).encode()
        return hashlib.sha256(text + self.pinned).hexdigest()[:12]


class ConsentStore(Protocol):
    """Where those for good are kept."""

    def save_consent(self, consent: Consent) -> None: ...

    def forget_consent(self, consent: Consent) -> None: ...


class Consents:
    """Those of everybody. `clock` gives unix seconds; without a `store` all of them are forgotten at the end.

    Those for a while end by `elapsed`, which nobody sets.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        store: ConsentStore | None = None,
        elapsed: Callable[[], float] = trio.current_time,
    ) -> None:
        self._clock = clock
        self._elapsed = elapsed
        self._until: dict[str, float] = {}
        self._store = store
        self._given: OrderedDict[str, Consent] = OrderedDict()

    def take(self, kept: Iterable[Consent]) -> None:
        """Know those that were kept."""
        for consent in kept:
            self._given.setdefault(consent.id, consent)

    def has(self, exchange: Exchange, server: str) -> bool:
        """Say whether whoever calls has said yes to this tool before, as it is now."""
        return any(self._holds(wanted) for wanted in self._possible(exchange, server) or ())

    def give(self, exchange: Exchange, server: str, how: How) -> Consent | None:
        """Remember a yes; None where that is for one call."""
        for_client, for_good = self._possible(exchange, server) or (None, None)
        given = {"session": for_client, "always": for_good}.get(how)
        if given is None:
            return None
        own = [each for each in self._given.values() if each.principal == given.principal]
        for each in own[: max(0, len(own) - MAX_OF_ONE + 1)]:
            self.revoke(each)
        self._given[given.id] = given
        if given.client:
            self._until[given.id] = self._elapsed() + SESSION_S
        if not given.client and self._store is not None:
            self._store.save_consent(given)
        return given

    def of(self, principal: Principal | None) -> list[Consent]:
        """Return those of one person, or of everybody, the oldest first."""
        wanted = [each for each in self._given.values() if principal in (None, each.principal)]
        return [each for each in wanted if self._holds(each)]

    def revoke(self, consent: Consent) -> None:
        self._given.pop(consent.id, None)
        self._until.pop(consent.id, None)
        if not consent.client and self._store is not None:
            self._store.forget_consent(consent)

    def _holds(self, wanted: Consent) -> bool:
        given = self._given.get(wanted.id)
        return given is not None and not (given.client and self._elapsed() >= self._until[given.id])

    def _possible(self, exchange: Exchange, server: str) -> tuple[Consent, Consent] | None:
        """Return what whoever calls could have said: for this client, and for good."""
        if (tool := exchange.tool) is None:
            return None
        own = tool.own or tool
        for_good = Consent(
            principal=exchange.client.principal,
            server=server,
            tool=own.name,
            pinned=digest(own),
            given_at=self._clock(),
        )
        return msgspec.structs.replace(for_good, client=exchange.client.name or "a client without a name"), for_good

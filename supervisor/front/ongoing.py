"""What is under way for those who have shown who they are, and what ends it before it is done.

    credential            a call, a page                      a stream of changes, a WebSocket
    ──────────            ──────────────                      ────────────────────────────────
    expires               is answered: it began in time       ends
    is revoked            ends                                ends
    gives another right   ends, a moment later                ends, a moment later

What ends so is cut short: nothing that could be said then would be true. But a stream of events that is gone on with
later ends as it does otherwise.

Requests take connections, of which there are so many: nobody has more under way than are left for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from actors.errors import TooManyCalls
from actors.kit import Latest, Shares
from supervisor.front.edge.request import HttpRequest
from supervisor.identity.people import Person
from supervisor.identity.requester import Bearer, Requester
from supervisor.servers.deployment import Deployment

ANSWER_S: Final = 1.0
"""What is under way for somebody whose rights have changed ends after this time."""
LOOK_EVERY_S: Final = 1.0
"""So often is looked which providers are to be asked again about tokens of what is under way."""
MAX_LOOKS: Final = 8


class Ongoing:
    """Ends it as long as it runs. `person_of` says who shows that by the newest configuration."""

    def __init__(
        self,
        person_of: Callable[[Requester], Person | None],
        deployment: Latest[Deployment],
        clock: Callable[[], float],
        bearer: Bearer | None,
        connections: int,
    ) -> None:
        """`clock` gives unix seconds."""
        self._person_of = person_of
        self._deployment = deployment
        self._clock = clock
        self._bearer = bearer
        self._scopes: dict[trio.CancelScope, Requester] = {}
        self._shares = Shares(connections)

    def refusal(self, request: HttpRequest) -> TooManyCalls | None:
        """Return the error for a request of somebody who has too many under way; None if it can be served."""
        principal = request.principal
        return None if self._shares.has_place(principal) else TooManyCalls(self._shares.why_not(principal, "requests"))

    @contextmanager
    def stay(self, request: HttpRequest) -> Iterator[None]:
        """Serve a request in the block, which may be ended before it is answered."""
        requester = request.requester
        with trio.CancelScope() as whole:
            scope = whole

            def end_with_credential(part: trio.CancelScope | None = None) -> None:
                nonlocal scope
                if part is not None:
                    del self._scopes[scope]
                    self._scopes[part] = requester
                    scope = part
                if requester.expires_at is not None:
                    left_s = max(0.0, requester.expires_at - self._clock())
                    scope.deadline = min(scope.deadline, trio.current_time() + left_s)

            request.end_with_credential = end_with_credential
            self._scopes[scope] = requester
            if request.is_websocket:
                end_with_credential()
            self._shares.add(request.principal)
            try:
                yield
            finally:
                self._shares.remove(request.principal)
                del self._scopes[scope]

    def revoke(self, digest: bytes) -> None:
        """End what is under way for whoever has shown this token of our own."""
        for scope, requester in [*self._scopes.items()]:
            if requester.token is not None and requester.token.digest == digest:
                scope.cancel()

    async def run(self) -> None:
        """End what is under way for those who are others since the configuration has changed, or are revoked."""
        async with trio.open_nursery() as nursery:
            if self._bearer is not None:
                nursery.start_soon(self._look_again, self._bearer)
            await self._follow()

    async def _follow(self) -> None:
        while True:
            await self._deployment.wait_newer(self._deployment.version)
            for scope, requester in [*self._scopes.items()]:
                if requester.is_proven and requester.person.user and self._person_of(requester) != requester.person:
                    # Not at once: it may be the very request that made the change, which has to be answered.
                    scope.deadline = min(scope.deadline, trio.current_time() + ANSWER_S)

    async def _look_again(self, bearer: Bearer) -> None:
        """Ask the providers that are asked about tokens whether those of what is under way are still good.

        Those that have expired are not: of them a provider says no more than that.
        """
        places = trio.CapacityLimiter(MAX_LOOKS)

        async def look(token: str) -> None:
            async with places:
                revoked = await bearer.is_revoked(token)
            for scope, requester in [*self._scopes.items()] if revoked else ():
                if requester.shown == token and self._is_live(requester):
                    scope.cancel()

        while True:
            await trio.sleep(LOOK_EVERY_S)
            async with trio.open_nursery() as nursery:
                for token in {each.shown for each in self._scopes.values() if each.shown and self._is_live(each)}:
                    if bearer.is_due(token):
                        nursery.start_soon(look, token)

    def _is_live(self, requester: Requester) -> bool:
        return requester.expires_at is None or self._clock() < requester.expires_at

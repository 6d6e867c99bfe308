"""What is noted of a server for people, and told to the registry: its states, its era, its lists, its last error."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from actors.calls import Calls
from actors.catalogue.entries import Offer
from actors.lifecycle import Life, State
from actors.messages import EraLearned, ServerChanged, ServerListed, ServerStatus
from actors.protocol.versions import Era
from actors.reporter import Reporter
from actors.server.link import Link
from actors.server.recovery import Recovery
from actors.transport.base import Exit

STDERR_LINES = 20


class Record:
    """Notes of one server over all its incarnations. `clock` gives unix time in seconds, `hide` masks secrets."""

    def __init__(
        self,
        server: str,
        transport: str,
        reporter: Reporter,
        clock: Callable[[], float],
        era: Era | None,
        hide: Callable[[str], str],
    ) -> None:
        self.last_error: str | None = None
        self.era = era
        self.noise = 0
        self.hide = hide
        self._server = server
        self._transport = transport
        self._reporter = reporter
        self._clock = clock
        self._since = clock()

    def learn(self, era: Era) -> None:
        """Note which era the server speaks."""
        if era != self.era:
            self.era = era
            self._reporter.report(EraLearned(server=self._server, era=era))

    def entered(self) -> None:
        """Note that the server is in another state from now on."""
        self._since = self._clock()

    def changed(self, status: ServerStatus, previous: State, reason: str) -> None:
        """Tell that the server is in another state."""
        self._reporter.report(ServerChanged(status=status, previous=previous, reason=reason))

    def noted(self, status: ServerStatus) -> None:
        """Tell that the server is in the same state as before, but there is more to say of it."""
        self._reporter.report(ServerChanged(status=status, previous=status.state, reason=""))

    def listed(self, incarnation: int, offer: Offer) -> None:
        """Tell what the server offers."""
        shown = replace(offer, problems=tuple(self.hide(problem) for problem in offer.problems))
        self._reporter.report(ServerListed(server=self._server, incarnation=incarnation, offer=shown))

    def ended(self, life: Life, exit_: Exit, *, failed: bool) -> None:
        """Note an exit. What it wrote to stderr is for operators; clients get the plain reason."""
        if failed:
            words = f"; last words: {exit_.last_stderr}" if exit_.last_stderr else ""
            self.last_error = (life.reason or exit_.reason) + words

    def status(
        self,
        life: Life,
        link: Link | None,
        known: Offer | None,
        calls: Calls,
        recovery: Recovery,
        *,
        installing: bool,
    ) -> ServerStatus:
        """Return how the server is doing now."""
        next_start_s = recovery.next_start_s()
        agreement = link.talk.agreement if link is not None else None
        return ServerStatus(
            server=self._server,
            state=life.state,
            wanted=life.wanted,
            since=self._since,
            transport=self._transport,
            incarnation=life.incarnation,
            pid=link.pid if link is not None else None,
            era=self.era,
            protocol_version=agreement.version if agreement is not None else (known.version if known else None),
            restarts=recovery.restarts,
            activity="installing" if installing else None,
            next_start=None if next_start_s is None else self._clock() + next_start_s,
            last_error=self.last_error,
            in_flight=calls.in_flight,
            waiting=calls.waiting,
            calls=calls.total,
            failures=calls.failures,
            noise=self.noise + (link.noise if link is not None else 0),
            strays=link.talk.strays if link is not None else 0,
            stderr=link.last_stderr(STDERR_LINES) if link is not None else "",
        )

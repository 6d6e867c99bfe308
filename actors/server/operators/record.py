"""What is noted of a server for people, and told to the registry: its states, its era, its lists, its last error."""

from __future__ import annotations

from collections.abc import Callable

import trio
from msgspec.structs import replace

from actors.catalogue.offer import Offer
from actors.kit.reporter import Reporter
from actors.life.policy import RestartType
from actors.life.states import Life, State
from actors.messages import EraLearned, ServerChanged, ServerListed, ServerStatus
from actors.protocol.agreement.versions import Era
from actors.server.calls.calls import Calls
from actors.server.operators.last_words import ending
from actors.server.operators.story import Story
from actors.server.process.link import Link
from actors.transport.base import Exit


class Record:
    """Notes of one server over all its incarnations. `hide` masks secrets; `era` is what it spoke at last.

    `since` is when it came into its state, `last_error_at` when `last_error` was noted, in seconds of the trio clock.
    """

    def __init__(
        self, server: str, reporter: Reporter, story: Story, hide: Callable[[str], str], era: Era | None
    ) -> None:
        self.era = era
        self.noise = 0
        self.hide = hide
        self.story = story
        self.since = trio.current_time()
        self.last_error_at: float | None = None
        self._server = server
        self._reporter = reporter
        self._last_error: str | None = None
        self._of_before = False

    @property
    def last_error(self) -> str | None:
        """What is wrong with the server. A server that came up again after it has none."""
        return self._last_error

    @last_error.setter
    def last_error(self, text: str | None) -> None:
        self._last_error = text
        self.last_error_at = trio.current_time() if text is not None else None
        self._of_before = False

    def learn(self, era: Era) -> None:
        if era != self.era:
            self.era = era
            self._reporter.report(EraLearned(server=self._server, era=era))

    def entered(self, state: State) -> None:
        """Note that the server is in another state. What was wrong before this start is over once it is up."""
        self.since = trio.current_time()
        if state is State.SPAWNING:
            self._of_before = True
        elif state is State.READY and self._of_before:
            self.last_error = None

    def changed(self, status: ServerStatus, previous: State, reason: str, began: float) -> None:
        """Tell that the server is in another state; for `began` see `Story.entered`."""
        self.story.entered(status, previous, reason, began)
        self._reporter.report(ServerChanged(status=status, previous=previous, reason=reason))

    def noted(self, status: ServerStatus) -> None:
        """Tell that the server is in the same state as before, but there is more to say of it."""
        self._reporter.report(ServerChanged(status=status, previous=status.state, reason=""))

    def waits(self, status: ServerStatus, delay_s: float) -> None:
        """Tell that the server is started again after a while."""
        self.story.waits(delay_s)
        self.noted(status)

    def listed(self, incarnation: int, offer: Offer, *, ready: bool = False) -> None:
        """Tell what the server offers; `ready`: it was up already, so what differs is news."""
        shown = replace(offer, problems=tuple(self.hide(problem) for problem in offer.problems))
        self.story.listed(shown, ready=ready)
        self._reporter.report(ServerListed(server=self._server, incarnation=incarnation, offer=shown))

    def not_started(self, reason: str, detail: str, *, permanent: bool) -> None:
        self.last_error = detail or reason
        self.story.not_started(self.last_error, permanent=permanent)

    def ended(self, life: Life, exit_: Exit, link: Link | None, calls: Calls, restart: RestartType) -> bool:
        """Note an exit; return whether the process ended by itself with nothing to do, which is no failure.

        What it wrote to stderr is for operators; clients get the plain reason.
        """
        idle = life.serving and not calls.in_flight and not calls.waiting
        normal = idle and not exit_.asked and exit_.code == 0 and restart != "permanent"
        renewed = exit_.renewable and life.serving
        failed = not normal and not renewed and (not life.draining or bool(life.reason))
        installer = link.silent_installer if link is not None else None
        process = link is None or link.pid is not None
        self.story.ended(life, exit_, calls.in_flight, failed=failed, process=process, installer=installer)
        if failed:
            self.last_error = (life.reason or exit_.reason) + ending(exit_, installer)
        if link is not None:
            self.noise += link.noise
        return normal

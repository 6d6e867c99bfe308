"""The story of one server, a line for each thing that happens to it. Goes into its journal and the daemon's log."""

from __future__ import annotations

import trio

from actors.catalogue.names.renames import renamed
from actors.catalogue.offer import Offer
from actors.life.states import Life, State
from actors.messages import Refreshed, ServerStatus
from actors.server.operators.journal import Journal
from actors.server.operators.last_words import ending
from actors.transport.base import Exit
from actors.transport.stdio.installer import Installer

MAX_NAMES = 5
TOLD_WAIT_S = 1.0
"""A shorter wait for a place among the starts is not told."""
INSTALLING_TOLD_S = 60.0
"""How often is told that an install goes on."""


def listed_change(before: Offer | None, after: Offer) -> Refreshed:
    """Return the totals of what a server lists, and the names of its tools that differ from before."""
    # Definitions are compared where they are: copies of a long list would take 40 ms.
    old = {tool.name: tool.definition for tool in before.tools} if before is not None else {}
    new = {tool.name: tool.definition for tool in after.tools}
    return Refreshed(
        tools=len(after.tools),
        resources=len(after.resources) + len(after.templates),
        prompts=len(after.prompts),
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(sorted(name for name in new.keys() & old.keys() if new[name] != old[name])),
        renamed=renamed(before.tools, after.tools) if before is not None else {},
        problems=after.problems,
    )


class Story:
    """Tells what happens to one server. Texts of the server in it have no secrets any more."""

    def __init__(self, server: str, journal: Journal, known: Offer | None) -> None:
        self._server = server
        self._journal = journal
        self._woken_at = 0.0
        self._began = 0.0
        self._installing_told_at = 0.0
        self._troubled = False
        self._seen = known

    def entered(self, status: ServerStatus, previous: State, reason: str, began: float) -> None:
        """The server is in another state. Its process has been starting since `began`, in seconds of the trio clock."""
        match status.state:
            case State.SPAWNING:
                self._woken_at = trio.current_time()
                if previous is State.DORMANT:
                    self._journal.note("woken by a call" if status.waiting else "woken")
                elif previous is State.FAILED:
                    self._journal.note("tried again")
            case State.HANDSHAKING:
                self._started(status, began)
            case State.READY:
                self._ready(status)
            case State.DORMANT if previous is not State.RESPAWNING:
                by_itself = previous is State.READY
                self._journal.note(
                    f"{'ended by itself with nothing to do' if by_itself else 'asleep'}; a call wakes it"
                )
            case State.FAILED:
                self._failed(status, previous, reason)
            case State.RESPAWNING:
                self._troubled = True
            case State.STOPPED:
                self._journal.note("stopped", "debug")
            case _:
                return

    def _started(self, status: ServerStatus, began: float) -> None:
        self._began = self._installing_told_at = began
        waited_s = began - self._woken_at
        queued = f" after {waited_s:.0f} s of waiting for its turn" if waited_s >= TOLD_WAIT_S else ""
        self._journal.note(f"started{queued}, pid {status.pid}" if status.pid is not None else f"started{queued}")

    def _ready(self, status: ServerStatus) -> None:
        seconds = trio.current_time() - self._began
        tools = f"{len(self._seen.tools)} tools, " if self._seen is not None else ""
        spoken = f"protocol {status.protocol_version}" if status.protocol_version else f"{status.era} protocol"
        self._journal.note(f"{'recovered, ' if self._troubled else ''}ready after {seconds:.1f} s: {tools}{spoken}")
        self._troubled = False

    def _failed(self, status: ServerStatus, previous: State, reason: str) -> None:
        self._troubled = True
        tried = previous is State.RESPAWNING
        what = "gave up" if tried else "cannot be started"
        why = " ".join((status.last_error or "").split()) if tried else ""
        self._journal.note(f"{what}: {why or reason}; to try again: mcpvisor restart {self._server}", "warning")

    def ordered(self, what: str) -> None:
        self._journal.note(f"{what} ordered")

    def installing(self) -> None:
        """The start takes so long because the server is being installed, as far as can be told."""
        now = trio.current_time()
        if self._installing_told_at == self._began or now >= self._installing_told_at + INSTALLING_TOLD_S:
            self._installing_told_at = now
            self._journal.note(f"is being installed, for {now - self._began:.0f} s so far")

    def not_started(self, reason: str, *, permanent: bool) -> None:
        if not permanent:  # if it is, the next line says so
            self._journal.note(f"could not be started: {reason}", "warning")

    def ended(
        self,
        life: Life,
        exit_: Exit,
        in_flight: int,
        *,
        failed: bool,
        process: bool,
        installer: Installer | None = None,
    ) -> None:
        """A `process` is gone, or a connection. `installer`: started by that, it never said a word of the protocol."""
        self._journal.end_line()
        if not failed:
            if life.fallback:
                self._journal.note("it did not answer in which era of the protocol it speaks: it gets a fresh process")
            elif exit_.renewable:
                self._journal.note(f"{exit_.reason}, a new one begins")
            return
        killed, died = ("killed", "died") if process or exit_.code is not None else ("disconnected", "disconnected")
        how = f"{killed} because {life.reason}" if life.reason else f"{died} while {life.state.value}: {exit_.reason}"
        lost = f"; {in_flight} calls in flight failed" if in_flight else ""
        self._journal.note(f"{how}{lost}{ending(exit_, installer)}", "warning")

    def waits(self, delay_s: float) -> None:
        self._journal.note(f"started again in {delay_s:.1f} s" if delay_s else "started again at once")

    def listed(self, offer: Offer, *, ready: bool) -> None:
        before, self._seen = self._seen, offer
        if ready and before is not None:
            change = listed_change(before, offer)
            moves = tuple(f"{old} -> {new}" for old, new in change.renamed.items())
            came = tuple(name for name in change.added if name not in change.renamed.values())
            went = tuple(name for name in change.removed if name not in change.renamed)
            parts = (("+", came), ("-", went), ("~", change.changed), ("renamed: ", moves))
            if told := ", ".join(_counted(sign, names) for sign, names in parts if names):
                self._journal.note(f"its tools changed: {told}; {change.tools} now")
        if offer.problems and (before is None or before.problems != offer.problems):
            more = f" (and {len(offer.problems) - 1} more)" if len(offer.problems) > 1 else ""
            self._journal.note(f"problem in its lists: {offer.problems[0]}{more}", "warning")


def _counted(sign: str, names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:MAX_NAMES])
    return f"{sign}{len(names)} ({shown}{', ...' if len(names) > MAX_NAMES else ''})"

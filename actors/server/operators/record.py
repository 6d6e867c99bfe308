"""What is noted of a server: for people in its journal and the daemon's log, for programs as facts for the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import trio
from msgspec.structs import replace

from actors.catalogue.diff import Change, Compared
from actors.catalogue.offer import Offer
from actors.command_line import command
from actors.facts import ExitReason, FactLog, RunEnded, StartedAgain, StartEnded
from actors.kit.reporter import Reporter
from actors.launch import is_own
from actors.life.breakers import OpenBreaker
from actors.life.policy import RestartType
from actors.life.states import ALIVE, Life, State
from actors.messages import Departure, EraLearned, Refreshed, ServerChanged, ServerListed, ServerStatus
from actors.protocol.agreement.versions import Era
from actors.server.calls.calls import Calls
from actors.server.calls.errors import when_again
from actors.server.incarnation import Link
from actors.server.operators.journal import Journal
from actors.transport.base import Exit
from actors.transport.stdio.causes import Kind, cause_of, shortened
from actors.transport.stdio.installer import NPM, Installer

MAX_NAMES = 5
TOLD_WAIT_S = 1.0
"""A shorter wait for a place among the starts is not told."""
INSTALLING_TOLD_S = 60.0
"""How often is told that an install goes on."""
MAX_TOOL_CHARS = 100
SUBJECTS: Mapping[str, str] = {"server": "the server is", "discovery": "its lists are"}
SILENT = (
    "it wrote nothing: run its command in a terminal, and see in its documentation which keys and arguments it needs"
)
STARTING = ALIVE - {State.READY, State.DRAINING}


def refreshed(offer: Offer, change: Change) -> Refreshed:
    """Return the totals of what a server lists, and the names of its tools that differ from before."""
    return Refreshed(
        tools=len(offer.tools),
        resources=len(offer.resources) + len(offer.templates),
        prompts=len(offer.prompts),
        added=change.added,
        removed=change.removed,
        changed=change.changed,
        renamed=change.renamed,
        problems=offer.problems,
    )


class Record:
    """Notes of one server over all its incarnations. `hide` masks secrets; `era` is what it spoke at last.

    `since` is when it came into its state, `last_error_at` when `last_error` was noted, in seconds of the trio clock.
    `seen` is what was listed last.
    """

    def __init__(
        self,
        server: str,
        reporter: Reporter,
        journal: Journal,
        hide: Callable[[str], str],
        era: Era | None,
        seen: Offer | None,
        facts: FactLog,
    ) -> None:
        self.era = era
        self.noise = 0
        self.since = trio.current_time()
        self.last_error_at: float | None = None
        self.exit = Exit()
        self._server = server
        self._reporter = reporter
        self._journal = journal
        self._hide = hide
        self._facts = facts
        self._seen = seen
        self.server_version = hide(seen.server_version) if seen is not None else ""
        self._last_error: str | None = None
        self._unlisted = ""
        self._refused = ("", "")
        self._of_before = False
        self._woken_at = self._began = self._installing_told_at = 0.0
        self._troubled = False

    @property
    def last_error(self) -> str | None:
        """What is wrong with the server. A server that came up again after it has none."""
        return self._last_error

    @last_error.setter
    def last_error(self, text: str | None) -> None:
        self._last_error = text
        self.last_error_at = trio.current_time() if text is not None else None
        self._of_before = False

    def blame(self, said: str) -> str:
        """Note what is wrong in the server's own words, which may repeat what it was given; return them masked."""
        self.last_error = reason = self._hide(said)
        return reason

    def learn(self, era: Era) -> None:
        if era != self.era:
            self.era = era
            self._reporter.report(EraLearned(server=self._server, era=era))

    # States ---------------------------------------------------------------------------------------------------------

    def enter(self, state: State) -> None:
        """Note that the server is in another state. What was wrong before this start is over once it is up."""
        self.since = trio.current_time()
        if state is State.SPAWNING:
            self._of_before, self.exit = True, Exit()
        elif state is State.READY and self._of_before:
            self.last_error = None

    def change(self, status: ServerStatus, previous: State, reason: str, began: float) -> None:
        """Tell that the server is in another state. Its process has been starting since `began`."""
        self._note_state(status, previous, reason, began)
        self._observe(status.state, previous)
        self._reporter.report(ServerChanged(status=status, previous=previous, reason=reason))

    def update(self, status: ServerStatus) -> None:
        """Tell that the server is in the same state as before, but there is more to say of it."""
        self._reporter.report(ServerChanged(status=status, previous=status.state, reason=""))

    def wait(self, status: ServerStatus, delay_s: float) -> None:
        self._journal.note(f"started again in {delay_s:.1f} s" if delay_s else "started again at once")
        self.update(status)

    def install(self, status: ServerStatus) -> None:
        """Tell that the start takes so long because the server is being installed, as far as can be told."""
        now = trio.current_time()
        if self._installing_told_at == self._began or now >= self._installing_told_at + INSTALLING_TOLD_S:
            self._installing_told_at = now
            self._journal.note(f"is being installed, for {now - self._began:.0f} s so far")
        self.update(status)

    def leave(self, departure: Departure, in_flight: int) -> None:
        may_end = f"; {in_flight} calls in flight have {departure.drain_s:g} s to end" if in_flight else ""
        self._journal.note(f"leaves: {departure.reason}{may_end}")

    def note_breaker(self, status: ServerStatus, breaker: OpenBreaker, *, opened: bool) -> None:
        """Tell that a breaker has opened, or is closed again."""
        what = f"tool {breaker.tool[:MAX_TOOL_CHARS]!r} is" if breaker.tool else SUBJECTS[breaker.breaker]
        if opened:
            why = self._hide(breaker.reason)
            self._journal.note(f"{what} left alone for {breaker.seconds:.0f} s, as calls fail: {why}", "warning")
        else:
            self._journal.note(f"{what} used again")
        self.update(status)

    def note(self, what: str) -> None:
        self._journal.note(what, "warning")

    def order(self, what: str) -> None:
        self._journal.note(f"{what} ordered")

    def _note_state(self, status: ServerStatus, previous: State, reason: str, began: float) -> None:
        match status.state:
            case State.SPAWNING:
                self._woken_at = trio.current_time()
                if previous is State.DORMANT:
                    self._journal.note("woken by a call" if status.waiting else "woken")
                elif previous is State.FAILED:
                    self._journal.note("tried again")
            case State.HANDSHAKING:
                self._note_start(status, began)
            case State.READY:
                self._note_ready(status)
            case State.DORMANT if previous is not State.RESPAWNING:
                by_itself = previous is State.READY
                self._journal.note(
                    f"{'ended by itself with nothing to do' if by_itself else 'asleep'}; a call wakes it"
                )
            case State.FAILED:
                self._note_failure(status, previous, reason)
            case State.RESPAWNING:
                self._troubled = True
            case State.STOPPED:
                self._journal.note("stopped", "debug")
            case _:
                return

    def _observe(self, state: State, previous: State) -> None:
        if state is State.SPAWNING and previous is State.RESPAWNING:
            self._facts.note(StartedAgain(launch=self._server))
        elif state in (State.READY, State.FAILED, State.RESPAWNING) and previous in STARTING:
            seconds = trio.current_time() - self._woken_at
            self._facts.note(StartEnded(launch=self._server, seconds=seconds, good=state is State.READY))

    def _note_start(self, status: ServerStatus, began: float) -> None:
        self._began = self._installing_told_at = began
        waited_s = began - self._woken_at
        queued = f" after {waited_s:.0f} s of waiting for its turn" if waited_s >= TOLD_WAIT_S else ""
        self._journal.note(f"started{queued}, pid {status.pid}" if status.pid is not None else f"started{queued}")

    def _note_ready(self, status: ServerStatus) -> None:
        seconds = trio.current_time() - self._began
        tools = f"{len(self._seen.tools)} tools, " if self._seen is not None else ""
        spoken = f"protocol {status.protocol_version}" if status.protocol_version else f"{status.era} protocol"
        self._journal.note(f"{'recovered, ' if self._troubled else ''}ready after {seconds:.1f} s: {tools}{spoken}")
        self._troubled = False

    def _note_failure(self, status: ServerStatus, previous: State, reason: str) -> None:
        self._troubled = True
        # After a restart that is not tried any more the line before says why the last one failed.
        why = " ".join(self._as_logged(status.last_error or reason).split())
        what = "failed too often" if previous is State.RESPAWNING else f"cannot be started: {why}"
        wait_s = None if status.next_start is None else status.next_start - trio.current_time()
        again = "a call tries it again" if wait_s is None else when_again(wait_s, wait_s)
        self._journal.note(f"{what}; {again}, at once: {command('restart', self._server)}", "warning")

    # Ends -----------------------------------------------------------------------------------------------------------

    def refuse(self, reason: str, detail: str, *, permanent: bool) -> None:
        """Note that there is no process. `detail` is for operators."""
        self.last_error = detail or reason
        self._refused = (self.last_error, reason)
        if not permanent:  # if it is, the next line says so
            self._journal.note(f"could not be started: {self._as_logged(self.last_error)}", "warning")

    def _as_logged(self, error: str) -> str:
        """Return an error as the log has it: that of a launch which is somebody's alone is read by members, too."""
        detail, reason = self._refused
        return reason if is_own(self._server) and error == detail else error

    def end(self, life: Life, exit_: Exit, link: Link | None, calls: Calls, restart: RestartType) -> bool:
        """Note an exit; return whether the process ended by itself with nothing to do, which is no failure.

        What it wrote to stderr is for operators; clients get the plain reason.
        """
        if not life.reason and not exit_.cause:  # else it ended for another reason than this
            self.exit = Exit(code=exit_.code, signal=exit_.signal)
        idle = life.serving and not calls.in_flight and not calls.waiting
        normal = idle and not exit_.asked and exit_.code == 0 and restart != "permanent"
        renewed = exit_.renewable and life.serving
        failed = not normal and not renewed and (life.state is not State.DRAINING or bool(life.reason))
        told = self._last_words(exit_, link) if failed else ""
        process = link is None or link.pid is not None
        self._note_end(life, exit_, calls.in_flight, told, failed=failed, process=process)
        self._facts.note(RunEnded(launch=self._server, by=exit_reason(life, exit_)))
        if failed:
            self.last_error = (life.reason or exit_.reason) + told
        if link is not None:
            self.noise += link.counters.stdout_noise
        return normal

    @staticmethod
    def _last_words(exit_: Exit, link: Link | None) -> str:
        if link is None:
            return ending(exit_, None, served=True)
        return ending(exit_, link.process.installer, served=link.process.spoken.is_set())

    def _note_end(self, life: Life, exit_: Exit, in_flight: int, told: str, *, failed: bool, process: bool) -> None:
        """A `process` is gone, or a connection."""
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
        if life.permanent and life.wanted != "stopped":  # it is given up now: that line says why
            if lost:
                self._journal.note(f"{killed}{lost}", "warning")
            return
        self._journal.note(f"{how}{lost}{told}", "warning")

    # Lists ----------------------------------------------------------------------------------------------------------

    def publish(
        self,
        incarnation: int,
        offer: Offer,
        compared: Compared,
        *,
        ready: bool = False,
        seconds: float | None = None,
        failure: str = "",
    ) -> None:
        """Tell what the server offers; `ready`: it was up already, so what differs is news, as `compared` has it.

        `seconds`: how long the last reading took that came to its end. `failure`: why this brought no list of tools.
        """
        if failure:
            failure = self._unlisted = self.blame(failure)
        elif self._unlisted and self.last_error == self._unlisted:
            self.last_error = None
        offer = replace(offer, problems=tuple(self._hide(problem) for problem in offer.problems))
        before, self._seen = self._seen, offer
        version = self._hide(offer.server_version) or self.server_version
        if self.server_version not in ("", version):
            self._journal.note(f"it is version {version} now, it was {self.server_version}")
        self.server_version = version
        if ready and before is not None:
            change = compared.of(before.tools, offer.tools).change
            moves = tuple(f"{old} -> {new}" for old, new in change.renamed.items())
            came = tuple(name for name in change.added if name not in change.renamed.values())
            went = tuple(name for name in change.removed if name not in change.renamed)
            parts = (("+", came), ("-", went), ("~", change.changed), ("renamed: ", moves))
            if told := ", ".join(_count(sign, names) for sign, names in parts if names):
                self._journal.note(f"its tools changed: {told}; {len(offer.tools)} now")
        if offer.problems and (before is None or before.problems != offer.problems):
            more = f" (and {len(offer.problems) - 1} more)" if len(offer.problems) > 1 else ""
            self._journal.note(f"problem in its lists: {offer.problems[0]}{more}", "warning")
        self._reporter.report(
            ServerListed(server=self._server, incarnation=incarnation, offer=offer, seconds=seconds, failure=failure)
        )


def exit_reason(life: Life, exit_: Exit) -> ExitReason:
    """Return why a process ended that had this life."""
    if life.reason or life.fallback:
        return "silent"
    if exit_.asked or life.state is State.DRAINING:
        return "idle" if life.wanted == "dormant" else "ordered"
    return "exit" if exit_.signal is None else "signal"


def _count(sign: str, names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:MAX_NAMES])
    return f"{sign}{len(names)} ({shown}{', ...' if len(names) > MAX_NAMES else ''})"


def ending(exit_: Exit, installer: Installer | None, *, served: bool = False) -> str:
    """Return what is added to the reason of an end, and what to do where that is known.

    `installer` started it; `served`: it said a word of the protocol, else the installer may have failed instead.
    """
    within = f"; it runs in a sandbox: {exit_.denial}" if exit_.denial else ""
    return f"{_ending(exit_, installer, served=served)}{within}"


def _ending(exit_: Exit, installer: Installer | None, *, served: bool) -> str:
    cause = cause_of(exit_.last_stderr, installer)
    if cause.kind is not Kind.ERROR:
        cause = max(cause, cause_of(exit_.last_stdout, installer), key=lambda cause: cause.kind)
    if cause.words:
        return f"; last words: {cause.words}{f'; {cause.advice}' if cause.advice else ''}"
    if served or exit_.code is None or exit_.asked:
        return ""
    if installer is None or not exit_.code:
        return f"; {SILENT}"
    said = (
        f": {shortened([exit_.install_log])}"
        if exit_.install_log
        else " did not say why: perhaps it cannot install the server"
    )
    return f"; {installer.launcher}{said}; {_more_of(installer)}"


def _more_of(installer: Installer) -> str:
    if installer.launcher not in NPM:
        return "try the command in a terminal"
    return f"to see why: npx --foreground-scripts -y {installer.package or 'PACKAGE'}"

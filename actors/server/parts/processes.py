"""The processes of one server, one after the other: started, ended, and what becomes of them.

No I/O and no waiting: what runs a process are tasks of the actor, see `Incarnation`.

How long a start may take:
- A start that may install is left alone beyond its deadlines while its processes work, within `install_timeout_s`.
- Before the first handshake of a launch ever, a launcher that works alone may also be quiet, for `install_quiet_s`: it
  waits for the network, and package managers pause between their tries (npm up to a minute). Once it has started
  something and that is quiet, it is the server, which hangs.
"""

from __future__ import annotations

import trio
from msgspec.structs import replace

from actors.command_line import command
from actors.kit import Turn
from actors.launch import server_of
from actors.life import lifecycle
from actors.life.states import State, Timer
from actors.messages import Activity
from actors.protocol.agreement.era import Negotiation
from actors.protocol.agreement.versions import Era
from actors.protocol.conversation import Conversation
from actors.server.inbox import ProcessExit
from actors.server.incarnation import Incarnation, Link
from actors.server.parts.context import ServerContext
from actors.server.settings import DRAIN_S, LIST_LIMITS

STARTED_S = 1.0
"""A process that is not there after this time waits for something that its start takes."""
WORKING_S = 15.0
"""A process that did something this short a time ago is at work."""


class Processes:
    """`link` is the present process and the conversation with it, None if there is none."""

    def __init__(self, context: ServerContext) -> None:
        self.link: Link | None = None
        self._context = context
        self._settings = context.server.settings
        self._course = context.course
        self._record = context.record
        self._new = context.server.known is None and context.server.era is None
        """No handshake has ever succeeded with this launch, so it may not be installed."""
        self._supposed: Era | None = None
        """The era to begin with, though nothing proves it."""
        self._asks = False
        """It asks by requests, so it is spoken to in the era that has them."""
        self._untried: Era | None = None
        """The era to begin with once, as the probe of the other one ruined the last process, and none followed it."""
        self._prolonged = False
        self._again = False  # the next process follows one that was only ruined by the probe of its era
        self._turn: Turn | None = None

    @property
    def activity(self) -> Activity | None:
        if self.link is not None and self.link.process.waiting:
            return "waiting for its turn"
        if self._waits_for_room():
            return "waiting for room"
        return "installing" if self._installs() else None

    @property
    def run(self) -> str:
        """Which incarnation it is among those of all servers; empty if there is none."""
        return self.link.run if self.link is not None else ""

    # Beginning and end ----------------------------------------------------------------------------------------------

    def spawn(self, number: int, *, urgent: bool) -> None:
        """Start incarnation `number` in tasks of the actor; `urgent`: somebody waits for more than its lists.

        One that follows a process which was ruined by the probe of its era starts where that one stood in the line.
        """
        server, settings = self._context.server, self._settings
        process = Incarnation(
            number,
            server.transport,
            self._context.post,
            spawn_timeout_s=settings.start_timeout_s,
            installer=settings.installer,
            installs=self._new,
            hear=server.journal.overhear,
        )
        self._turn = process.turn = Turn(again=server.restarts.failing, before=self._turn if self._again else None)
        self._again = False
        process.predecessor = server.predecessor
        if urgent:
            process.turn.hurry()
        self._context.start_soon(process.run, self._context.shared.starts)
        self._prolonged = False
        era, self._untried = self._supposed or self._untried or ("legacy" if self._asks else self._record.era), None
        negotiation = Negotiation(self._context.shared.identity, era, settings.terms)
        tools = self._context.mirrors_of, self._context.needs_task
        ids = self._context.shared.request_ids
        talk = Conversation(ids, negotiation, LIST_LIMITS, *tools, trio.current_time)
        self.link = Link(process, talk)
        server.seat.run = self.link.run

    def hurry(self) -> None:
        """Somebody waits for a call now: pass those who only wait to be discovered."""
        if self.link is not None:
            self.link.process.turn.hurry()

    def stop(self, *, polite: bool) -> None:
        """End the present process: politely if so asked, and always if it may be installing, with more time then.

        What is cut off in the middle of an install may leave a package manager's cache broken for ever. The daemon's
        own end is bounded, and does not wait for that as long.
        """
        if self.link is None:
            return
        if not self._installs():
            self.link.process.stop(polite=polite)
            return
        grace_s = self._settings.install_grace_s
        ending = self._course.life.wanted == "stopped"
        self.link.process.stop(polite=True, term_s=min(grace_s, DRAIN_S) if ending else grace_s)

    def take(self, event: lifecycle.Spawned | lifecycle.SpawnRefused | lifecycle.Violated) -> None:
        match event:
            case lifecycle.SpawnRefused(reason=reason, detail=detail, permanent=permanent):
                self._record.refuse(reason, detail, permanent=permanent)
                self.link = None
            case lifecycle.Violated() if self._probe_failed():
                return
        self._course.step(event)

    def on_exit(self, end: ProcessExit) -> None:
        if not end.exit.asked:
            self._probe_failed()
        if end.exit.forgotten:
            self._context.calls.fail_in_flight(end.exit.reason, trio.current_time(), blames=False)
        renewable = self._context.calls.window.end(renewable=end.exit.renewable)
        exit_ = replace(end.exit, renewable=renewable)
        restart = self._context.server.restarts.policy.restart
        normal = self._record.end(self._course.life, exit_, self.link, self._context.calls, restart)
        self.link, self._context.server.seat.run = None, ""
        self._course.step(lifecycle.Exited(end.incarnation, exit_.reason, normal, renewable))

    # Handshake ------------------------------------------------------------------------------------------------------

    def greet(self) -> None:
        if self.link is not None:
            self.link.talk.greet()
            self.flush()

    def handshake_s(self) -> float | None:
        if self.link is None:
            return None
        return self._settings.probe_timeout_s if self.link.talk.probing else self._settings.start_timeout_s

    def on_probe_answered(self) -> None:
        """After an answer to the probe of the era, the handshake has its whole time."""
        if self.link is not None and self._course.life.state is State.HANDSHAKING and self.link.probe_answered():
            self._course.step(lifecycle.Prolonged(self.link.number, Timer.HANDSHAKE, self._settings.start_timeout_s))

    def on_agreed(self, link: Link, *, known: bool) -> None:
        """The handshake is done; `known`: so are the lists."""
        self._new = False
        self._supposed = None
        self._course.step(lifecycle.Agreed(link.number, known=known))

    def on_late(self) -> bool:
        """The handshake takes too long, unless the server is being installed: True, and it has more time."""
        number = self._course.life.incarnation
        more_s = self._more_s()
        if more_s > 0:
            self._course.step(lifecycle.Prolonged(number, Timer.HANDSHAKE, more_s))
        elif not self._probe_failed():
            self._course.step(lifecycle.Expired(number))
        return more_s > 0

    def speak_legacy(self) -> str:
        """See that the next process is spoken to in the legacy era, if that is left open; return what helps.

        A remote server has a session of that era beside, for clients of that era, see `legacy_session`.
        """
        server, only = self._context.server, self._settings.terms.only
        if server.transport.kind != "stdio" or only is not None:
            return 'with "era": "legacy" in its entry it can ask'
        self._asks = True
        return f"once it is started again ({command('restart', server_of(server.name))}) it can ask"

    def give_up(self) -> None:
        """Whatever was supposed of the era may be wrong."""
        self._supposed = None

    def _probe_failed(self) -> bool:
        """Return whether the trouble came before any answer to the era's probe: then a fresh process is needed.

        Not where a server was given up: to try it again costs one start, not two each time. One that never spoke is
        tried in one era, and the next time in the other.
        """
        if self._course.life.state is not State.HANDSHAKING or self.link is None or not self.link.talk.probing:
            return False
        if self._context.server.restarts.probing:
            self._untried = "legacy" if self._record.era is None else None
            return False
        self._supposed = "legacy"
        self._again = True
        self._context.server.restarts.ruin()
        self._course.step(lifecycle.Fallback(self.link.number))
        return True

    def _waits_for_room(self) -> bool:
        """Whether a process is not there though it was its turn: to start one takes a few ms, and what else it takes
        is waited for.
        """
        if self.link is None or self._context.server.transport.kind != "stdio":
            return False
        process = self.link.process
        return process.connection is None and trio.current_time() >= process.began + STARTED_S

    # Installing -----------------------------------------------------------------------------------------------------

    def _installs(self) -> bool:
        """Whether a process runs that may be installing the server, as far as can be told."""
        if self.link is None or self.link.silent_installer is None or self.link.process.connection is None:
            return False
        return self._new or self._prolonged

    def _more_s(self) -> float:
        """How many seconds more a handshake has whose time is up: 0.0 unless it may be installing."""
        if self.link is None or self.link.silent_installer is None:
            return 0.0
        process = self.link.process
        patience_s = self._settings.install_quiet_s if self._new and process.alone else WORKING_S
        until = min(process.worked_at + patience_s, process.began + self._settings.install_timeout_s)
        more = max(0.0, until - trio.current_time())
        self._prolonged |= more > 0
        return more

    # Output ---------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Hand over what is to be said; a process that leaves too much unread is replaced."""
        if self.link is None:
            return
        if self.link.talk.output:
            self.link.flush()
        if self.link.choked:
            self._course.step(lifecycle.Violated(self.link.number, "it does not read its input"))

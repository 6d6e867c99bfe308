"""The processes of one server, one after the other: started, ended, and what becomes of them.

No I/O and no waiting: what runs a process are tasks of the actor, see `Incarnation`.
"""

from __future__ import annotations

from msgspec.structs import replace

from actors.life.events import Agreed, Exited, Expired, Fallback, Prolonged, Spawned, SpawnRefused, Violated
from actors.life.policy import RestartType
from actors.life.timers import Timer
from actors.messages import Activity
from actors.server.calls.calls import Calls
from actors.server.course import Course
from actors.server.process.incarnation import ProcessExit
from actors.server.process.link import Launcher, Link
from actors.server.process.startup import Startup
from actors.server.record import Record
from actors.server.settings import ServerSettings


class Processes:
    """`link` is the present process and the conversation with it, None if there is none."""

    def __init__(
        self,
        launcher: Launcher,
        settings: ServerSettings,
        restart: RestartType,
        calls: Calls,
        record: Record,
        course: Course,
        *,
        new: bool,
    ) -> None:
        self.link: Link | None = None
        self._again = False  # the next process follows one that was only ruined by the probe of its era
        self._startup = Startup(settings, new=new)
        self._start_timeout_s = settings.start_timeout_s
        self._launcher = launcher
        self._restart: RestartType = restart
        self._calls = calls
        self._record = record
        self._course = course

    @property
    def activity(self) -> Activity | None:
        return self._startup.activity(self.link)

    @property
    def run(self) -> str:
        """Which incarnation it is among those of all servers; empty if there is none."""
        return self.link.run if self.link is not None else ""

    # Beginning and end ----------------------------------------------------------------------------------------------

    def spawn(self, number: int, *, urgent: bool) -> None:
        """Start incarnation `number`; `urgent`: somebody waits for more than its lists."""
        era, again = self._startup.begin(self._record.era), self._again
        self._again = False
        self.link = self._launcher.launch(number, era, urgent=urgent, new=self._startup.new, again=again)

    def hurry(self) -> None:
        if self.link is not None:
            self.link.process.hurry()

    def stop(self, *, polite: bool) -> None:
        if self.link is not None:
            self._startup.stop(self.link, self._course.life.wanted, polite=polite)

    def take(self, event: Spawned | SpawnRefused | Violated) -> None:
        match event:
            case SpawnRefused(reason=reason, detail=detail, permanent=permanent):
                self._record.not_started(reason, detail, permanent=permanent)
                self.link = None
            case Violated() if self._probe_failed():
                return
        self._course.step(event)

    def ended(self, end: ProcessExit) -> None:
        if not end.exit.asked:
            self._probe_failed()
        renewable = self._calls.window.end(renewable=end.exit.renewable)
        exit_ = replace(end.exit, renewable=renewable)
        normal = self._record.ended(self._course.life, exit_, self.link, self._calls, self._restart)
        self.link = None
        self._course.step(Exited(end.incarnation, exit_.reason, normal, renewable))

    # Handshake ------------------------------------------------------------------------------------------------------

    def greet(self) -> None:
        if self.link is not None:
            self.link.talk.greet()
            self.flush()

    def handshake_s(self) -> float | None:
        return self._startup.handshake_s(self.link) if self.link is not None else None

    def on_probe_answered(self) -> None:
        """After an answer to the probe of the era, the handshake has its whole time."""
        if self.link is not None and self._course.life.handshaking and self.link.probe_answered():
            self._course.step(Prolonged(self.link.number, Timer.HANDSHAKE, self._start_timeout_s))

    def agreed(self, link: Link, *, known: bool) -> None:
        """The handshake is done; `known`: so are the lists."""
        self._startup.greeted()
        self._course.step(Agreed(link.number, known=known))

    def on_late(self) -> bool:
        """The handshake takes too long, unless the server is being installed: True, and it has more time."""
        number = self._course.life.incarnation
        more_s = self._startup.more_s(self.link)
        if more_s > 0:
            self._course.step(Prolonged(number, Timer.HANDSHAKE, more_s))
        elif not self._probe_failed():
            self._course.step(Expired(number))
        return more_s > 0

    def give_up(self) -> None:
        """Whatever was supposed of the era may be wrong."""
        self._startup.suppose(None)

    def _probe_failed(self) -> bool:
        """Return whether the trouble came before any answer to the era's probe: then a fresh process is needed."""
        if not self._course.life.handshaking or self.link is None or not self.link.talk.probing:
            return False
        self._startup.suppose("legacy")
        self._again = True
        self._course.step(Fallback(self.link.number))
        return True

    # Output ---------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Hand over what is to be said; a process that leaves too much unread is replaced."""
        if self.link is None:
            return
        if self.link.talk.output:
            self.link.flush()
        if self.link.choked:
            self._course.step(Violated(self.link.number, "it does not read its input"))

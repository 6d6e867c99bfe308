"""How long one start of a server may take, and whether it installs meanwhile. No I/O.

- A start that may install is left alone beyond its deadlines while its processes work, within `install_timeout_s`.
- Before the first handshake of a launch ever, a launcher that works alone may also be quiet, for `install_quiet_s`: it
  waits for the network, and package managers pause between their tries (npm up to a minute). Once it has started
  something and that is quiet, it is the server, which hangs.
"""

from __future__ import annotations

import trio

from actors.life.states import Wanted
from actors.messages import Activity
from actors.protocol.agreement.versions import Era
from actors.server.process.link import Link
from actors.server.settings import DRAIN_S, ServerSettings

WORKING_S = 15.0
"""A process that did something this short a time ago is at work."""


class Startup:
    """The starts of one server. `new`: no handshake has ever succeeded with this launch, so it may not be installed."""

    def __init__(self, settings: ServerSettings, *, new: bool) -> None:
        self.new = new
        self._settings = settings
        self._supposed: Era | None = None
        self._prolonged = False

    def begin(self, learned: Era | None) -> Era | None:
        """Note that a process is started; return the era to begin with, None if it must be found out."""
        self._prolonged = False
        return self._supposed or learned

    def suppose(self, era: Era | None) -> None:
        """Begin with this era from now on, though nothing proves it; None takes it back."""
        self._supposed = era

    def greeted(self) -> None:
        """Note that a handshake succeeded: what era was supposed is now known."""
        self.new = False
        self._supposed = None

    def handshake_s(self, link: Link) -> float:
        return self._settings.probe_timeout_s if link.talk.probing else self._settings.start_timeout_s

    def more_s(self, link: Link | None) -> float:
        """Return how many seconds more a handshake has whose time is up: 0.0 unless it may be installing."""
        if link is None or link.process.installer is None or link.process.spoken.is_set():
            return 0.0
        process = link.process
        patience_s = self._settings.install_quiet_s if self.new and process.alone else WORKING_S
        until = min(process.worked_at + patience_s, process.began + self._settings.install_timeout_s)
        more = max(0.0, until - trio.current_time())
        self._prolonged |= more > 0
        return more

    def installing(self, link: Link | None) -> bool:
        """Return whether a process runs that may be installing the server, as far as can be told."""
        if link is None or link.process.installer is None or link.process.connection is None:
            return False
        return not link.process.spoken.is_set() and (self.new or self._prolonged)

    def activity(self, link: Link | None) -> Activity | None:
        """Return what more can be said of a server than its state."""
        if link is not None and link.process.waiting:
            return "waiting for its turn"
        return "installing" if self.installing(link) else None

    def stop(self, link: Link, wanted: Wanted, *, polite: bool) -> None:
        """End a process: politely if so asked, and always if it may be installing, with more time after SIGTERM.

        What is cut off in the middle of an install may leave a package manager's cache broken for ever. The daemon's
        own end is bounded, and does not wait for that as long.
        """
        if not self.installing(link):
            link.process.stop(polite=polite)
            return
        grace_s = self._settings.install_grace_s
        link.process.stop(polite=True, term_s=min(grace_s, DRAIN_S) if wanted == "stopped" else grace_s)

"""What is kept of one server for its operator: what it wrote, and what happened to it. Outlives its incarnations.

Rules of this file:
- Taking something in is cheap and bounded, whatever the server writes: it is kept as bytes, in rings, and what does not
  fit is dropped and counted. It is decoded, masked and made visible only when somebody looks (`render`).
- Our own lines have a ring of their own: a server that floods its stderr cannot drown the reason of its last exit.
- Lines are numbered without gaps in the order they came; a reader keeps the number it has seen.
- What a server wrote without ending the line (a question, its last words) counts as a line once it has been quiet for
  a second, or when the process is gone.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice, takewhile
from typing import Literal

import msgspec

from actors.kit import Latest
from actors.transport.redaction import HIDDEN, KeyLines, Mask, without_secrets
from actors.transport.side_output import Source, visible

Level = Literal["debug", "info", "warning"]
Tell = Callable[[Level, str], None]

MAX_BYTES = 256 * 1024
MAX_LINES = 2000
MAX_NOTES = 500
MAX_LINES_AT_ONCE = 1000
"""Of one piece of output (64 KiB at most come at once); the newest are kept."""
LINE_BYTES = 4096
NOTE_CHARACTERS = 2000
MAX_MASKS = 8
"""So many sets of secrets are hidden at once: of so many configurations of the server."""
NOISE_CHARACTERS = 200
QUIET_S = 1.0
NOISE_TOLD_S = 600.0
"""Noise on stdout is a note of ours at most this often."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line as it may be shown; `time` is unix time in seconds."""

    number: int
    time: float
    source: Source
    text: str


class KeptLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line as it came. `cut`: the rest of it was dropped. `user`: who alone had the server when it came."""

    number: int
    time: float
    source: Source
    data: bytes
    cut: bool = False
    user: str = ""


def _newest_first(line: KeptLine) -> int:
    return -line.number


class Journal:
    """The lines of one server. `clock` gives unix time in seconds, `mask` hides secrets.

    `tell` gets each note of ours, for the daemon's log. `now` gives seconds of a clock that is never set back, by which
    a line without an end becomes one; without it that is `clock`. The first line has the number behind `before`. `user`
    tells who alone has the server now, `stir` is called when there is more: neither waits or raises. `voices` are those
    of several processes of the server, by label; see `JournalVoice`.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        mask: Mask | None = None,
        tell: Tell = lambda level, text: None,
        max_bytes: int = MAX_BYTES,
        now: Callable[[], float] | None = None,
        before: int = 0,
    ) -> None:
        self.newest = Latest(before)
        self.voices: dict[str, Journal] = {}
        self.user: Callable[[], str] = str
        self.stir: Callable[[], None] = lambda: None
        self.clock = clock
        self.now = now or clock
        self._mask = self._newest_mask = mask or Mask({})
        self._masks = 1
        self._tell = tell
        self._max_bytes = max_bytes
        self._output: deque[KeptLine] = deque()
        self._size = 0
        self._notes: deque[KeptLine] = deque(maxlen=MAX_NOTES)
        self._number = self._before = before
        self._begun = b""
        self._begun_at = 0.0
        self._skipping = False
        self._noise_told_at: float | None = None
        self._keys: dict[Source, KeyLines] = {"stderr": KeyLines(), "stdout": KeyLines()}

    # Writing --------------------------------------------------------------------------------------------------------

    def fresh(self) -> Journal:
        return Journal(self.clock, mask=self._mask, max_bytes=self._max_bytes, now=self.now)

    @property
    def mask(self) -> Mask:
        """What hides every secret that the server may repeat."""
        return self._mask

    def hide(self, mask: Mask) -> bool:
        """Hide these secrets, too: the server is given others than before, and may repeat the old ones for a while.

        Return whether any is new. What it wrote is kept as it came, so all of them stay hidden; after `MAX_MASKS` it is
        dropped, with the oldest.
        """
        if self._mask.hides(mask):
            self._newest_mask = mask
            return False
        self._masks += 1
        if self._masks > MAX_MASKS:
            self._output.clear()
            self._size, self._masks, self._mask = 0, 2, self._newest_mask
        self._mask, self._newest_mask = self._mask.join(mask), mask
        return True

    def note(self, text: str, level: Level = "info", *, aloud: bool = True) -> None:
        """Add a line of ours, cut at 2000 characters; names that a server gave are masked in it, too.

        The daemon's log does not get it unless it is said `aloud`.
        """
        self.end_quiet_line()
        text = self._mask(text[:NOTE_CHARACTERS])
        self._notes.append(self._line("supervisor", text.encode(errors="replace"), self.clock()))
        self._announce()
        if aloud:
            self._tell(level, text)

    def overhear(self, source: Source, data: bytes) -> None:
        """Add what the server wrote: any piece of its stderr, or whole lines of its stdout; or what is said of that."""
        if source == "supervisor":
            self.note(data.decode().rstrip(), aloud=False)
            return
        if source == "stdout":
            self._add_all(source, data.removesuffix(b"\n").split(b"\n"))
            self._tell_noise(data)
            return
        if self._skipping:
            _, ended, data = data.partition(b"\n")
            self._skipping = not ended
        *lines, rest = (self._begun + data).rsplit(b"\n", MAX_LINES_AT_ONCE)
        self._begun = b""
        if len(lines) == MAX_LINES_AT_ONCE:
            self._number += lines[0].count(b"\n")
            lines[0] = lines[0].rpartition(b"\n")[2]
        self._add_all(source, lines)
        self._begin(rest)

    def _begin(self, rest: bytes) -> None:
        """Keep the beginning of a line, or the line if it is too long already."""
        self._begun, self._begun_at = rest, self.now()
        if rest:
            self.stir()
        if len(rest) > self.longest_line:
            self.end_line()
            self._skipping = True

    def end_line(self) -> None:
        """Count what was written without an end of line as a line: nothing will follow."""
        begun, self._begun = self._begun, b""
        self._skipping = False
        self._add_all("stderr", [begun])

    @property
    def longest_line(self) -> int:
        """More than is ever shown, so that a secret at its end is either whole, and masked, or not shown."""
        return LINE_BYTES + self._mask.longest

    def _add_all(self, source: Source, lines: list[bytes]) -> None:
        now, longest = self.clock(), self.longest_line
        for line in lines:
            data = line.rstrip()
            if data:
                if self._keys[source].inside(data):
                    data = HIDDEN.encode()
                self.keep(source, data[:longest], now, cut=len(data) > longest)
        self.trim()

    def trim(self) -> None:
        """Forget the oldest lines if there are too many, and tell of new ones."""
        while self._size > self._max_bytes or len(self._output) > MAX_LINES:
            self._size -= len(self._output.popleft().data)
        if self._number > self.newest.value:
            self._announce()

    def keep(self, source: Source, data: bytes, time: float, *, cut: bool = False) -> None:
        """Keep one line as it came; whoever adds lines looks whether there are too many then."""
        self._output.append(self._line(source, data, time, cut=cut))
        self._size += len(self._output[-1].data)

    def _announce(self) -> None:
        self.newest.set(self._number)
        self.stir()

    def _line(self, source: Source, data: bytes, time: float, *, cut: bool = False) -> KeptLine:
        self._number += 1
        return KeptLine(number=self._number, time=time, source=source, data=data, cut=cut, user=self.user())

    def _tell_noise(self, data: bytes) -> None:
        now = self.now()
        if self._noise_told_at is not None and now < self._noise_told_at + NOISE_TOLD_S:
            return
        self._noise_told_at = now
        first = data.strip().partition(b"\n")[0]
        shown = self._text(first[: self.longest_line], cut=len(first) > self.longest_line, limit=NOISE_CHARACTERS)
        if shown:
            self.note(f"it writes to stdout what is no MCP message, which is ignored: {shown}", "warning")

    # Reading --------------------------------------------------------------------------------------------------------

    def end_quiet_line(self) -> None:
        """Count what was written without an end of line as a line, if nothing followed for a second."""
        for each in (self, *self.voices.values()):
            if each._begun and each.now() >= each._begun_at + QUIET_S:
                each.end_line()

    @property
    def has_begun_line(self) -> bool:
        """Whether there is a line without an end, which may become one without anybody telling."""
        return any(each._begun for each in (self, *self.voices.values()))

    def last(self, count: int) -> list[KeptLine]:
        self.end_quiet_line()
        return self._newer(self._before, count)

    def _newer(self, number: int, limit: int) -> list[KeptLine]:
        """Return the newest lines behind a number. What is older costs nothing."""

        def newest(kept: Iterable[KeptLine]) -> list[KeptLine]:
            return list(islice(takewhile(lambda line: line.number > number, kept), limit))

        both = heapq.merge(*map(newest, (reversed(self._output), reversed(self._notes))), key=_newest_first)
        return list(islice(both, max(0, limit)))[::-1]

    def after(self, number: int, limit: int) -> tuple[int, int, list[KeptLine]]:
        """Return (number to go on from, how many lines were missed, lines): the newest of what came after `number`.

        -1 is "from now on"; a number that was never given out is of another run of the daemon: everything is new.
        """
        self.end_quiet_line()
        if number < 0:
            return self._number, 0, []
        if not self._before <= number <= self._number:
            number = self._before
        lines = self._newer(number, limit)
        return self._number, self._number - number - len(lines), lines

    def render(self, lines: list[KeptLine]) -> list[LogLine]:
        """Return lines as they may be shown: without secrets, unprintable characters escaped. Costs a millisecond or
        more for each line of a server with many secrets: call it in a thread.
        """
        return [
            LogLine(number=line.number, time=line.time, source=line.source, text=self.shown_text(line))
            for line in lines
        ]

    def shown_text(self, line: KeptLine) -> str:
        """Return the text of one line, as `render` does."""
        limit = NOISE_CHARACTERS if line.source == "stdout" else LINE_BYTES
        return self._text(line.data, cut=line.cut, limit=limit)

    def _text(self, data: bytes, *, cut: bool, limit: int) -> str:
        text = without_secrets(self._mask(_COLOURS.sub("", data.decode(errors="replace"))))
        if cut:  # it may end with the beginning of a secret
            text = text[: max(0, len(text) - self._mask.longest)]
        return visible(text[:limit] + "…" if cut or len(text) > limit else text)


class JournalVoice(Journal):
    """What one of several processes of a server adds to the journal of that: its lines, with a label before each.

    What a process writes comes in pieces. So the lines of each are put together by themselves before they are lines of
    the journal, which is one for all of them: its bounds, its numbers and its masks. Whoever reads, reads the whole.
    """

    def __init__(self, whole: Journal, label: str) -> None:
        super().__init__(whole.clock, mask=whole.mask, now=whole.now)
        self._whole = whole
        self._label = label
        self.stir = lambda: whole.stir()

    @property
    def longest_line(self) -> int:
        return self._whole.longest_line

    def note(self, text: str, level: Level = "info", *, aloud: bool = True) -> None:
        """Add a line of ours about this process; see `Journal.note`."""
        self.end_quiet_line()
        self._whole.note(f"{self._label}: {text}", level, aloud=aloud)

    def keep(self, source: Source, data: bytes, time: float, *, cut: bool = False) -> None:
        """Keep one line in the journal, behind the label."""
        self._whole.keep(source, self._label.encode() + b": " + data, time, cut=cut)

    def trim(self) -> None:
        """Have the journal see to its bounds."""
        self._whole.trim()


def voice_of(whole: Journal, label: str) -> Journal:
    """Return what a process of that label adds to a journal by; the same one each time."""
    if label not in whole.voices:
        whole.voices[label] = JournalVoice(whole, label)
    return whole.voices[label]

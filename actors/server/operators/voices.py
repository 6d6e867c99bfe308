"""What one of several processes of a server adds to the journal of that: its lines, with a label before each.

What a process writes comes in pieces. So the lines of each are put together by themselves before they are lines of the
journal, which is one for all of them: its bounds, its numbers and its masks.
"""

from __future__ import annotations

from actors.server.operators.journal import Journal, Level
from actors.transport.side_output import Source


class JournalVoice(Journal):
    """The journal as one process has it. Whoever reads, reads the whole."""

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

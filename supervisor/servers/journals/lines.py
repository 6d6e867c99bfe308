"""Lines of logs: as they stand in files, how those are called, and which lines somebody wants. Pure."""

from __future__ import annotations

import hashlib
import re
from typing import Final

import msgspec

from actors.launch import is_own, server_of
from actors.server.operators.journal import LogLine
from actors.transport.redaction import Mask

MAX_GREP_CHARACTERS: Final = 200
CUT: Final = "…"
"""The end of a line whose rest is missing."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_READABLE: Final = 40
_FILE: Final = re.compile(
    r"([A-Za-z0-9_-]{0,40}-[0-9a-f]{16})(~[0-9a-f]{16})?\.log(?:\.([1-9][0-9]{0,2}))?(\..+\.new)?"
)


class FileLine(LogLine, frozen=True, kw_only=True, omit_defaults=True):
    """One line in a file, without secrets. `user`: who alone had the launch when it came; empty: nobody or more."""

    user: str = ""


class ServerLine(LogLine, frozen=True, kw_only=True):
    """One line among those of several servers; `server` is a launch by name."""

    server: str


class FileName(msgspec.Struct, frozen=True):
    """What the name of a file says. `stem` is that of its server, `own` the rest of that of a launch which not all
    share, `number` which old file it is, 0 for the newest. `draft`: a whole file was being written anew.
    """

    stem: str
    own: str
    number: int
    draft: bool


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines: the newest so many, `since` a moment in unix seconds, with the text `grep` in them in whatever case,
    `before` a number. Only those are whose launch was `user`'s alone, where there is one.
    """

    lines: int
    since: float = 0.0
    grep: str = ""
    before: int | None = None
    user: str | None = None

    def may_show(self, line_user: str, time: float, number: int) -> bool:
        """Say whether a line is wanted, whatever its text is."""
        theirs = self.user is None or (self.user != "" and line_user == self.user)
        return theirs and time >= self.since and (self.before is None or number < self.before)

    def fits(self, text: str) -> bool:
        return not self.grep or self.grep.casefold() in text.casefold()


def stem_of(launch: str) -> str:
    """Return what the files of a launch begin with: the name as far as files may have it, and a digest of it."""
    server = server_of(launch)
    stem = f"{_UNSAFE.sub('_', server)[:_READABLE]}-{_digest(server)}"
    return f"{stem}~{_digest(launch)}" if is_own(launch) else stem


def file_name(launch: str, number: int = 0) -> str:
    """Return the name of a file, the newest or the old one of that number."""
    return f"{stem_of(launch)}.log" + (f".{number}" if number else "")


def parse_file_name(name: str) -> FileName | None:
    """Return what a name says, None if it is none of ours."""
    match = _FILE.fullmatch(name)
    return FileName(match[1], match[2] or "", int(match[3] or 0), bool(match[4])) if match else None


def hide(text: str, mask: Mask) -> str:
    """Return a line without what is known to be secret by now; what was cut may end with the beginning of that."""
    shown = mask(text)
    if not shown.endswith(CUT):
        return shown
    body = shown.removesuffix(CUT)
    return body[: len(body) - mask.begun_at_end(body)] + CUT


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8, person=b"mcpvisor log").hexdigest()

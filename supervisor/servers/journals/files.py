"""Logs of servers on the disk. Blocks, raises `OSError`, and is for one thread at a time.

- A file is for its owner alone, and lines of JSON. What is in it was masked before, and is again where more is known.
- The newest file of a launch is `NAME.log`; with `NAME.log.1` and so on they take no more than they may. What was
  written of a line when the disk was full is taken back.
- A line that cannot be read is left out: the daemon may have died in the middle of it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import Final

import msgspec

from actors.launch import is_own, server_of
from actors.server.operators.journal import LogLine
from actors.transport.redaction import Mask
from supervisor.host.files import PRIVATE, write_atomically

# Lines of logs: as they stand in files, how those are called, and which lines somebody wants.

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


CHUNK_BYTES: Final = 32 * 1024
MAX_LINE_BYTES: Final = 64 * 1024
"""Of a line as it stands in a file. One of ours has a fifth of that at most."""
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC

_decode: Final = msgspec.json.Decoder(FileLine).decode


class Limits(msgspec.Struct, frozen=True):
    """How much is kept of each launch: bytes in all, and old files. 0 bytes: nothing is."""

    max_bytes: int
    old_files: int

    @property
    def file_bytes(self) -> int:
        return max(1, self.max_bytes // (1 + self.old_files))


class ReadLimit:
    """How much one page may read: bytes, and seconds from now on. `spent` once that was not enough."""

    def __init__(self, max_bytes: int, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self.spent = False
        self._left = max_bytes
        self._now = now
        self._until = now() + seconds

    def take(self, count: int = 0) -> bool:
        """Say whether so many bytes may be read, and count them."""
        self._left -= count
        self.spent = self.spent or self._left < 0 or self._now() > self._until
        return not self.spent


class LogFiles:
    """The files below one directory, which is made when something is written."""

    def __init__(self, root: Path) -> None:
        self._root = root

    # Writing --------------------------------------------------------------------------------------------------------

    def append(self, launch: str, lines: Sequence[FileLine], limits: Limits) -> None:
        """Write lines behind those of before; the oldest go where there is no room."""
        self._make_root()
        encoded = [msgspec.json.encode(line) + b"\n" for line in lines]
        while encoded:
            size = self._size(launch)
            fitting, end = 0, size
            for data in encoded:
                if fitting and end + len(data) > limits.file_bytes:
                    break
                fitting, end = fitting + 1, end + len(data)
            if size and end > limits.file_bytes:
                self._rotate(launch, limits)
                continue
            self._write(launch, b"".join(encoded[:fitting]))
            encoded = encoded[fitting:]

    def _make_root(self) -> None:
        try:
            self._root.mkdir(mode=0o700)
        except FileExistsError:
            if not stat.S_ISDIR(self._root.lstat().st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self._root)) from None

    def _size(self, launch: str) -> int:
        try:
            return (self._root / file_name(launch)).lstat().st_size
        except FileNotFoundError:
            return 0

    def _write(self, launch: str, data: bytes) -> None:
        fd = os.open(self._root / file_name(launch), _FLAGS, PRIVATE)
        try:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":  # an earlier daemon died in the middle of a line
                data = b"\n" + data
            try:
                if os.write(fd, data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)

    def _rotate(self, launch: str, limits: Limits) -> None:
        """Number the files of a launch higher by one each, and drop those that there is no room for."""
        kept = limits.max_bytes - limits.file_bytes
        for number, path in [*enumerate(self._paths(launch), 1)]:
            kept -= path.lstat().st_size
            if number > limits.old_files or kept < 0:
                path.unlink()
                kept = -1
        for number, path in reversed([*enumerate(self._paths(launch), 1)]):
            path.replace(self._root / file_name(launch, number))

    # Removing and masking -------------------------------------------------------------------------------------------

    def remove(self, launch: str) -> None:
        """Remove the files of a launch; of a server whose name it is, those of all its launches."""
        stem = stem_of(launch)
        for path, name in self._all():
            if stem == (name.stem + name.own if is_own(launch) else name.stem):
                path.unlink(missing_ok=True)

    def tidy(self, servers: Collection[str], used_since: float) -> None:
        """Remove what is of no server among these, or of a launch of theirs that was last written before a moment.

        `used_since` is unix time in seconds; a launch that all share is never too old.
        """
        stems = set(map(stem_of, servers))
        for path, name in self._all():
            old = name.own and path.lstat().st_mtime < used_since
            if name.stem not in stems or name.draft or old:
                path.unlink(missing_ok=True)

    def mask(self, launch: str, mask: Mask) -> None:
        """Take out of what was written what is known to be secret by now."""
        for path in self._paths(launch):
            if any(hide(line.text, mask) != line.text for line in _lines(path)):
                shown = (msgspec.structs.replace(line, text=hide(line.text, mask)) for line in _lines(path))
                write_atomically(path, b"".join(msgspec.json.encode(line) + b"\n" for line in shown))

    # Reading --------------------------------------------------------------------------------------------------------

    def newest_first(self, launch: str, limit: ReadLimit) -> Iterator[FileLine]:
        """Yield the lines of a launch, as far as may be read."""
        for path in self._paths(launch):
            yield from _backwards(path, limit)

    def _paths(self, launch: str) -> list[Path]:
        """Return the files of a launch that there are, the newest first."""
        newest = self._root / file_name(launch)
        old = (self._root / file_name(launch, number) for number in count(1))
        return [*filter(_is_there, [newest]), *takewhile(_is_there, old)]

    def _all(self) -> list[tuple[Path, FileName]]:
        try:
            entries = sorted(self._root.iterdir())
        except FileNotFoundError:
            return []
        named = ((path, parse_file_name(path.name)) for path in entries)
        return [(path, name) for path, name in named if name is not None]


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def _line_of(data: bytes) -> FileLine | None:
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _lines(path: Path) -> Iterator[FileLine]:
    """Yield the lines of a file, the first one first."""
    with path.open("rb") as file:
        yield from filter(None, map(_line_of, file))


def _backwards(path: Path, limit: ReadLimit) -> Iterator[FileLine]:
    """Yield the lines of a file, the last one first."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        end, rest = os.fstat(fd).st_size, b""
        while end and limit.take(min(end, CHUNK_BYTES)):
            start = max(0, end - CHUNK_BYTES)
            first, *whole = (os.pread(fd, end - start, start) + rest).split(b"\n")
            rest, end = first if len(first) <= MAX_LINE_BYTES else b"", start
            yield from filter(None, map(_line_of, reversed(whole)))
        last = _line_of(rest) if not end else None
        if last is not None:
            yield last
    finally:
        os.close(fd)

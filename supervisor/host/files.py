"""Files that a person or another program writes as well: read whole, replaced at once or not at all. Blocks.

- A link stays a link: what it leads to is replaced. Mode and owner stay; a new file is for its owner alone. Behind a
  link to nothing one is made where a directory of the user's waits for it, as who keeps dotfiles elsewhere needs it.
- What the file held before is kept beside it, in `NAME.mcpvisor.bak`, for its owner alone: it may hold secrets. Of a
  file that is somebody else's every copy is kept, as `NAME.mcpvisor.bak.2` and so on: one of them may be the only one
  of what they wrote. Of our own the last one is.
- A file that changed since it was read is left as it is. Between that look and the rename is a moment in which another
  program may write all the same: whoever edits a file of a running program reads it once more afterwards.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from glob import escape as glob_escape
from pathlib import Path

from actors.errors import ConfigError
from actors.kit import is_want
from actors.kit.paths import is_dangling, is_file

BACKUP_SUFFIX = ".mcpvisor.bak"
PRIVATE = 0o600
_PRIVATE_DIRECTORY = 0o700
_CHANGED = "the file has changed meanwhile"
_AGAIN = "nothing was written; try again"


def read_if_there(path: Path) -> str | None:
    """Return the text of a file, None if there is none. Raises `ConfigError` as `read_text` does."""
    try:
        path.stat()
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        pass  # `read_text` says why
    # Imported here, as it brings all that reads a configuration: commands that only ask a daemon start sooner.
    from supervisor.config.file import read_text

    return read_text(path)


def replace_text(path: Path, before: str | None, after: str, *, keeps_all: bool = False) -> Path | None:
    """Replace the text of a file that was read as `before`, None if there was none; return where the backup is.

    `keeps_all`: no copy is ever overwritten; one that holds the same is not made twice. Missing directories are made.
    Raises `ConfigError` if the file has changed since, or cannot be written.
    """
    if read_if_there(path) != before:
        raise ConfigError(_CHANGED, path=str(path), hint=_AGAIN)
    try:
        target = Path(os.path.realpath(path))
        if before is None:
            _check_target(path, target)
            make_private(target.parent)
            write_atomically(target, after.encode())
            return None
        about = target.stat()
        if not about.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise ConfigError(
                "the file may not be written", path=str(path), hint="whoever made it so may manage it by other means"
            )
        backup = _keep(path, before.encode()) if keeps_all else _backup_of(path)
        if not keeps_all:
            write_atomically(backup, before.encode())
        write_atomically(target, after.encode(), about)
    except OSError as error:
        raise _unwritable(path, error) from None
    return backup


def keep_text(path: Path, text: str) -> None:
    """Write a file that nobody but us writes, in a directory that is made if need be. Raises `ConfigError`."""
    try:
        make_private(path.parent)
        write_atomically(path, text.encode())
    except OSError as error:
        raise _unwritable(path, error) from None


def make_private(path: Path) -> list[Path]:
    """Make a directory and those above it that are missing, each for its owner alone: `Path.mkdir` gives its mode to
    the last one only. Return those that were made, the outermost first. Raises `OSError`.
    """
    try:
        path.mkdir(mode=_PRIVATE_DIRECTORY)
    except FileNotFoundError:
        if path.parent == path:
            raise
        return [*make_private(path.parent), *make_private(path)]
    except OSError:  # of a read-only file system, too, where it is there
        if not stat.S_ISDIR(path.stat().st_mode):
            raise
        return []
    return [path]


def _backup_of(path: Path) -> Path:
    """Return where the copy of a file is, beside the file itself where `path` is a link."""
    target = Path(os.path.realpath(path))
    return target.with_name(target.name + BACKUP_SUFFIX)


def copies_of(path: Path) -> list[Path]:
    """Return the copies of a file that are there, the newest first."""
    first = _backup_of(path)
    numbers = (each.name.removeprefix(f"{first.name}.") for each in first.parent.glob(f"{glob_escape(first.name)}.*"))
    later = sorted((int(number) for number in numbers if number.isdecimal()), reverse=True)
    copies = [first.with_name(f"{first.name}.{number}") for number in later]
    return copies + ([first] if is_file(str(first)) else [])


def _keep(path: Path, content: bytes) -> Path:
    """Return where a copy with this content is, made if none has it. Raises `OSError`."""
    copies = copies_of(path)
    for copy in copies:
        if copy.read_bytes() == content:
            return copy
    first = _backup_of(path)
    number = int(copies[0].suffix[1:]) if copies and copies[0] != first else 1 if copies else 0
    while True:
        copy = first.with_name(f"{first.name}.{number + 1}") if number else first
        number += 1
        try:
            write_atomically(copy, content, is_new=True)
        except FileExistsError:  # by another command at the same time
            continue
        return copy


def remove_file(path: Path, text: str) -> None:
    """Remove a file that still holds `text`; a link to it stays. Raises `ConfigError` as `replace_text` does."""
    if read_if_there(path) != text:
        raise ConfigError(_CHANGED, path=str(path), hint=_AGAIN)
    try:
        Path(os.path.realpath(path)).unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


def _check_target(path: Path, target: Path) -> None:
    """Raise `ConfigError` for a link to nothing, unless what it leads to can only be a file of this user's."""
    if not any(is_dangling(str(each)) for each in (path, *path.parents)):
        return
    try:
        owner = target.parent.stat().st_uid
    except FileNotFoundError:
        fault, hint = "in a directory that is not there", "make that directory, or remove the link"
    else:
        if owner == os.geteuid():
            return
        fault, hint = "in a directory of another user", "remove the link"
    raise ConfigError(f"it is a link to {target}, {fault}; nothing was written", path=str(path), hint=hint)


def _unwritable(path: Path, error: OSError) -> ConfigError:
    """Return what to say of an error of the disk. Raises it if it is want of resources."""
    if is_want(error):
        raise error
    reason = error.strerror or "unknown reason"
    return ConfigError(f"the file cannot be written: {reason}", path=str(path), hint="check permissions")


def _claim(path: Path, draft: Path) -> None:
    """Move a file to a name that nothing has. Raises `FileExistsError` if something does.

    On a file system without hard links (FAT, some shares) an empty file holds the name for a moment.
    """
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        raise
    except OSError:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
        draft.replace(path)
    else:
        draft.unlink()


def write_atomically(path: Path, content: bytes, like: os.stat_result | None = None, *, is_new: bool = False) -> None:
    """Write a whole file with mode and owner of `like`, for its owner alone without one. Raises `OSError`.

    `is_new`: `FileExistsError` if there is one. A reader never finds half of it, after a power cut neither.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            if like is not None:
                with suppress(PermissionError):  # only root gives files away
                    os.fchown(fd, like.st_uid, like.st_gid)
                os.fchmod(fd, stat.S_IMODE(like.st_mode))
            os.fsync(fd)
        if is_new:
            _claim(path, draft)
        else:
            draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

"""What is at a path that somebody else chose: in a configuration, in the environment. Blocks.

Rules of this file:
- No path is the reason of an exception: a name that is too long, a directory that may not be searched, a loop of links,
  a NUL character are answers, in words for people. Only want of resources (`is_want`) is raised, because it passes.
- Whoever asks whether such a path exists, and what is there, asks here: `Path.exists` and its like raise for some of
  these names, and for others they say that nothing is there.
"""

from __future__ import annotations

import os
import stat

from actors.kit.want import is_want

NO_FILE = "no such file"
_NOTHING = ""


def objection_to_directory(path: str) -> str:
    """Say why nobody can work in a directory, empty if we can. Raises want of resources."""
    mode = _mode(path)
    if isinstance(mode, str):
        return f"cannot be used: {mode}" if mode else "does not exist"
    if not stat.S_ISDIR(mode):
        return "is not a directory"
    return "" if os.access(path, os.X_OK) else "may not be entered by this user"


def objection_to_program(path: str) -> str:
    """Say why a file cannot be executed, empty if it can. Raises want of resources."""
    mode = _mode(path)
    if mode == _NOTHING:
        return "is a dangling symbolic link" if os.path.islink(path) else NO_FILE  # noqa: PTH114 - raises for no path
    if isinstance(mode, str):
        return mode
    if stat.S_ISDIR(mode):
        return "is a directory"
    if not stat.S_ISREG(mode):
        return "is not a file"
    return "" if os.access(path, os.X_OK) else "is not executable"


def is_file(path: str) -> bool:
    """Return whether an ordinary file is there, as far as we may see. Raises want of resources."""
    mode = _mode(path)
    return not isinstance(mode, str) and stat.S_ISREG(mode)


def leads_to(path: str) -> str:
    """Return where a symbolic link leads in the end, empty for what is none."""
    return os.path.realpath(path) if os.path.islink(path) else ""  # noqa: PTH114 - raises for no path


def is_dangling(path: str) -> bool:
    """Return whether a path is a symbolic link to nothing. Raises want of resources."""
    return os.path.islink(path) and _mode(path) == _NOTHING  # noqa: PTH114 - raises for no path


def names_in(directory: str) -> list[str]:
    """Return the names in a directory, none if it cannot be read. Raises want of resources."""
    try:
        return os.listdir(directory)  # noqa: PTH208 - thousands of names, no Path for each
    except (OSError, ValueError) as error:
        _raise_want(error)
        return []


def ends_of(path: str, head_bytes: int, tail_bytes: int) -> tuple[bytes, bytes]:
    """Return the beginning and the end of an ordinary file, both empty if it cannot be read. Raises want of resources.

    They overlap where the file is short.
    """
    if not is_file(path):  # opening a pipe would wait for ever
        return b"", b""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as above
            head = file.read(head_bytes)
            file.seek(max(0, os.fstat(file.fileno()).st_size - tail_bytes))
            return head, file.read(tail_bytes)
    except OSError as error:
        _raise_want(error)
        return b"", b""


def absolute(path: str) -> str:
    """Return a path that begins at the root; as it is where our own working directory is gone."""
    try:
        return os.path.abspath(path)  # noqa: PTH100 - Path.resolve would follow links, which $PWD does not
    except OSError:
        return path


def _mode(path: str) -> int | str:
    """Return the mode (stat(2)) of what is at a path, links followed; or why nobody can tell, empty if nothing is."""
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - Path would be made for each of thousands of names
    except (FileNotFoundError, NotADirectoryError):
        return _NOTHING
    except (OSError, ValueError) as error:
        _raise_want(error)
        # A `ValueError` is Python's: a NUL character, or one that no file name can have.
        return str(error.strerror) if isinstance(error, OSError) else "no path has such characters"


def _raise_want(error: OSError | ValueError) -> None:
    if is_want(error):
        raise error

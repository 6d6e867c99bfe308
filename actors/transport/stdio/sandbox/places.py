"""What a server sees in its sandbox, looked up on the disk. Blocks.

Rules of this file:
- Whoever writes a directory can put a link into it. So a link is followed only where the server cannot write, and what
  is listed must not be reached through one: else the next start would bind whatever the link says.
- The configuration and the data directory of the daemon are in no place that is bound. They are not covered, as what
  covers a file goes when the file is replaced.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from actors.errors import SpawnFailed
from actors.kit.paths import ends_of, is_file, objection_to_program
from actors.transport.stdio.sandbox.bubblewrap import (
    INSTALL,
    PRIVATE_TMP,
    PROGRAM,
    SYSTEM,
    Bound,
    Sandbox,
    Sight,
    is_within,
    is_within_any,
    objection_to_place,
    wrap,
)

SEARCHED = "/usr/local/bin:/usr/bin:/bin"
"""Where bwrap is looked for. Not on the PATH of anybody: it runs outside of the sandbox."""
MAX_STEPS: Final = 16
"""So many links and interpreters are followed from a program."""
_SHEBANG_BYTES: Final = 256


def bwrap_program() -> str:
    """Return where bwrap is. Raises `SpawnFailed` (permanent) if it is nowhere."""
    for directory in SEARCHED.split(":"):
        candidate = f"{directory}/{PROGRAM}"
        if not objection_to_program(candidate):
            return candidate
    raise _refusal("bwrap is not installed, and the server asks for a sandbox", INSTALL)


def put_into_sandbox(
    argv: Sequence[str], environment: Mapping[str, str], cwd: str, sandbox: Sandbox, private: Iterable[str]
) -> tuple[list[str], dict[str, str]]:
    """Return what to execute for a program in a sandbox, and its environment. Raises `SpawnFailed` (permanent).

    `cwd` is its working directory, empty for none of ours. `private` are the places of the daemon.
    """
    bwrap = bwrap_program()
    sight = sight_of(argv[0], environment, cwd, sandbox, private)
    return wrap(bwrap, sight, argv, dict(environment))


def sight_of(program: str, environment: Mapping[str, str], cwd: str, sandbox: Sandbox, private: Iterable[str]) -> Sight:
    """Return what a program sees. Raises `SpawnFailed` (permanent) for a place that cannot be shown."""
    home = _home()
    written = [*([("cwd", cwd)] if cwd else []), *(("write", path) for path in sandbox.write)]
    writable = {path: _real(key, path, home) for key, path in written}
    listed = writable | {path: _real("read", path, home) for path in sandbox.read if path not in writable}
    own = [*writable, *writable.values()]
    needed = {path: os.path.realpath(path) for path in _needs(program, environment, own)}
    bound = [Bound(place, place, path in writable) for path, place in listed.items()]
    bound += [Bound(place, place) for place in needed.values() if not is_within_any(place, listed.values())]
    real = [each.at for each in bound]
    for path, place in {**needed, **listed}.items():  # as it is called where its name has a link in it
        if path != place and not is_within_any(path, real):
            bound.append(Bound(place, path, path in writable))
    _guard(bound, private)
    return Sight(
        bound=tuple(dict.fromkeys(bound)),
        home=environment.get("HOME") or home,
        cwd=cwd or PRIVATE_TMP,
        network=sandbox.network,
    )


def _home() -> str:
    return os.path.normpath(os.environ.get("HOME") or "/")


def _real(key: str, path: str, home: str) -> str:
    """Return a listed path without links."""
    real_home = os.path.realpath(home)
    meant = real_home + path[len(home) :] if is_within(path, home) and home != "/" else path
    real = os.path.realpath(path)
    what = f"the sandbox cannot have {path} (`{key}`)"
    if objection := objection_to_place(os.path.normpath(path), home) or objection_to_place(real, real_home):
        raise _refusal(f"{what}: {objection}")
    if not os.path.lexists(real):
        raise _refusal(f"{what}: there is no such file or directory", "make it, or take it out of the list")
    if real != meant:
        raise _refusal(f"{what}: there is a symbolic link in it", f"write where it leads to: {real}")
    return real


def _guard(bound: Iterable[Bound], private: Iterable[str]) -> None:
    shown = [*(each.place for each in bound), *SYSTEM]
    for place in map(os.path.realpath, private):
        for each in shown:
            if is_within(place, each) or is_within(each, place):
                raise _refusal(
                    f"the sandbox would show {each}, and with it the configuration or the data directory of the daemon",
                    "list directories that have neither, or move these",
                )


def _needs(program: str, environment: Mapping[str, str], writable: Sequence[str]) -> Iterator[str]:
    """Yield the places of a program beyond those of the system: its files, those that it links to, its interpreter."""
    todo = [program]
    for _ in range(MAX_STEPS):
        if not todo:
            return
        path = todo.pop()
        if is_within_any(path, writable) or is_within_any(os.path.realpath(Path(path).parent), writable):
            continue
        if not is_within_any(path, SYSTEM):
            yield from _beside(path)
        if target := _target(path):
            todo.append(os.path.normpath(Path(path).parent / target))
        elif interpreter := _interpreter(path, environment.get("PATH", "")):
            todo.append(interpreter)


def _target(path: str) -> str:
    """Return what a symbolic link says, empty for what is none."""
    try:
        return os.readlink(path)  # noqa: PTH115 - Path would need an exception for most
    except OSError:
        return ""


def _beside(path: str) -> Iterator[str]:
    """Yield what belongs to a program: where that is a directory of programs, the libraries beside it, too."""
    directory = Path(path).parent
    if directory.name != "bin":
        yield path
        return
    for place in (directory, *(directory.parent / name for name in ("lib", "lib64", "libexec", "pyvenv.cfg"))):
        if os.path.lexists(place) and not is_within_any(str(place), SYSTEM):
            yield str(place)


def _interpreter(path: str, searched: str) -> str:
    """Return the program that runs a script, empty for what is none."""
    head, _ = ends_of(path, _SHEBANG_BYTES, 0) if is_file(path) else (b"", b"")
    if not head.startswith(b"#!"):
        return ""
    words = os.fsdecode(head[2:].partition(b"\n")[0]).split()
    if words and words[0].rpartition("/")[2] == "env":
        asked = next((word for word in words[1:] if "=" not in word and not word.startswith("-")), "")
        return shutil.which(asked, path=searched) or ""
    return words[0] if words and words[0].startswith("/") else ""


def _refusal(reason: str, hint: str = "") -> SpawnFailed:
    return SpawnFailed(reason, permanent=True, hint=hint)

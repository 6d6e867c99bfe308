"""The sandbox of a server: what it sees in there, as arguments of `bwrap` (bubblewrap 0.4 and newer), and its failures.

What is not bound does not exist in there: the root is empty, and read-only in the end. So a place is hidden by
leaving it out, and nothing has to be covered. (A file that covers another one is uncovered when that is replaced
outside.) What there is is looked up on the disk (`sight_of`), which blocks; the rest is pure.

- Whoever writes a directory can put a link into it. So a link is followed only where the server cannot write, and what
  is listed must not be reached through one: else the next start would bind whatever the link says.
- The configuration and the data directory of the daemon are in no place that is bound.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from actors.errors import SpawnFailed
from actors.kit.paths import ends_of, is_file, objection_to_program

PROGRAM: Final = "bwrap"
SHELL: Final = "/bin/sh"
READY_FD: Final = 9
"""Where the shell in the sandbox says that it runs; one digit, as more is nothing that every shell takes."""
PRIVATE_TMP: Final = "/tmp"
_NO_FILES: Final = ("/dev", "/proc")
"""What shows the devices and processes of the machine is never bound."""

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Programs and libraries of the machine, which every sandbox reads."""
_ETC: Final = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "fonts", "gai.conf", "group"),
    *("host.conf", "hostname", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"),
    *("nsswitch.conf", "os-release", "passwd", "pki", "protocols", "python3", "resolv.conf", "services", "ssl"),
    "timezone",
)
"""What programs look up in /etc: no configuration of services, which may have secrets in it."""
_APART: Final = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    # The server leads a process group without us in it: a signal for it ends neither bwrap nor the sandbox.
    *("--new-session", "--die-with-parent", "--cap-drop", "ALL"),
)
_LOADER: Final = "LD_"
"""Begins the names of variables that put foreign code into a program: bwrap itself runs outside of the sandbox."""
INSTALL: Final = (
    "install bubblewrap, the package bubblewrap of your system, or take `sandbox` out of the entry of the server"
)
_NAMESPACES: Final = (
    "allow user namespaces to bwrap: on Ubuntu by an AppArmor profile for it (the package apparmor-profiles), "
    "elsewhere by the sysctl kernel.unprivileged_userns_clone or user.max_user_namespaces; in a container, by its "
    "security profile"
)
_SCARCE: Final = (
    "Resource temporarily unavailable",
    "Cannot allocate memory",
    "Too many open files",
    "Too many processes",
)
_REFUSED: Final = (
    "namespace",
    "setting up uid map",
    "mount proc on",
    "NETLINK",
    "RTM_NEWADDR",
    "Failed to make / slave",
    "No permissions",
)
SEARCHED = "/usr/local/bin:/usr/bin:/bin"
"""Where bwrap is looked for. Not on the PATH of anybody: it runs outside of the sandbox."""
MAX_STEPS: Final = 16
"""So many links and interpreters are followed from a program."""
_SHEBANG_BYTES: Final = 256


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """What a server may do: read and write below absolute paths, and use the network.

    It reads programs and libraries of the machine, too, and writes below its working directory and in a /tmp that is
    its own.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False

    def denial(self, cwd: str) -> str:
        """Return in words what is denied to a server with that working directory, empty for one of its own."""
        written = ", ".join((*([cwd] if cwd else []), *self.write, f"a {PRIVATE_TMP} of its own"))
        beyond = ", ".join((*self.read, *([cwd] if cwd else []), *self.write))
        reads = f"reads nothing but system files{f' and {beyond}' if beyond else ''}"
        return f"{'' if self.network else 'no network; '}writes only in {written}; {reads}"


class Bound(msgspec.Struct, frozen=True):
    """A place of the machine that is seen in a sandbox, at the path `at`."""

    place: str
    at: str
    writable: bool = False


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """All that is seen in a sandbox beside system files. Paths are absolute; links in `place` are resolved."""

    bound: tuple[Bound, ...] = ()
    home: str = "/"
    cwd: str = PRIVATE_TMP
    network: bool = False


def is_within(path: str, directory: str) -> bool:
    """Say whether an absolute path is a directory, or below it; both in their normal form."""
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def is_within_any(path: str, directories: Iterable[str]) -> bool:
    return any(is_within(path, directory) for directory in directories)


def objection_to_place(path: str, home: str) -> str:
    """Say why a path is nothing to show in a sandbox, empty if it can be; both in their normal form."""
    if is_within(home, path):
        return "it would show the home directory: name directories below it"
    if is_within_any(path, _NO_FILES):
        return "a sandbox has devices and processes of its own"
    return ""


def arguments(sight: Sight) -> list[str]:
    """Return the arguments for `bwrap`. What lies deeper is bound later: the nearest place says who writes there."""
    bound = sorted(sight.bound, key=lambda each: (each.at.count("/"), each.at, each.writable))
    return [
        *_APART,
        *(() if sight.network else ("--unshare-net",)),
        *("--dev", "/dev", "--proc", "/proc", "--tmpfs", PRIVATE_TMP, "--dir", sight.home),
        *(word for path in _system() for word in ("--ro-bind-try", path, path)),
        *(word for each in bound for word in ("--bind" if each.writable else "--ro-bind", each.place, each.at)),
        *("--remount-ro", "/", "--chdir", sight.cwd),
    ]


def _system() -> list[str]:
    return [*SYSTEM, *(f"/etc/{name}" for name in _ETC)]


def wrap(
    bwrap: str, sight: Sight, argv: Sequence[str], environment: dict[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return what to execute in place of a program, and with which environment.

    A shell in the sandbox says on `READY_FD` that the sandbox is there, and becomes the program.
    """
    outside = {name: value for name, value in environment.items() if not name.startswith(_LOADER)}
    inside = [(name, value) for name, value in environment.items() if name.startswith(_LOADER)]
    if "TMPDIR" in environment:
        inside.append(("TMPDIR", PRIVATE_TMP))
    variables = [word for name, value in inside for word in ("--setenv", name, value)]
    tell = f'echo >&{READY_FD}; exec {READY_FD}>&-; exec "$@"'
    return [bwrap, *arguments(sight), *variables, "--", SHELL, "-c", tell, SHELL, *argv], outside


class Trouble(msgspec.Struct, frozen=True):
    """Why there is no sandbox. `scarce`: the system lacks something now, see `SpawnFailed`."""

    reason: str
    hint: str = ""
    scarce: bool = False


def trouble_of(said: str) -> Trouble:
    """Return what is wrong by what `bwrap` wrote before it ended."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if line.startswith("bwrap:")), lines[-1] if lines else "")
    reason = told.removeprefix("bwrap:").strip() or "bwrap ended without a word"
    scarce = any(word in reason for word in _SCARCE)
    refused = not scarce and any(word in reason for word in _REFUSED)
    return Trouble(reason, _NAMESPACES if refused else "", scarce)


# What a server sees in there, looked up on the disk -------------------------------------------------------------------


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

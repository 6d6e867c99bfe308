"""The sandbox of a server as arguments of `bwrap` (bubblewrap 0.4 and newer), and what that says of failures. Pure.

What is not bound does not exist in there: the root is empty, and read-only in the end. So a place is hidden by
leaving it out, and nothing has to be covered. (A file that covers another
one is uncovered when that is replaced outside.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

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

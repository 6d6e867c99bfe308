"""From a configured command to what is executed: one absolute path and a minimal environment.

A command is resolved once, against the PATH of the child and never against a relative entry of it, so that a file
planted in the working directory is not run by accident. What the kernel would only call "No such file or directory"
gets its own words here. All of it is permanent: trying again without a change is pointless.
These functions look at the file system and block: call them in a thread.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from rapidfuzz import fuzz, process

from actors.errors import SpawnFailed
from actors.kit import is_want, reason_of
from actors.kit.paths import NO_FILE, absolute, names_in, objection_to_directory, objection_to_program
from actors.transport.redaction import without_secrets
from actors.transport.stdio.remedies import how_to_install
from actors.transport.stdio.resources.allotment import Allotment
from actors.transport.stdio.sandbox import Sandbox

_MIB = 1 << 20
INHERITED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"),
    # Where uv keeps what it downloaded: without it a daemon with its own cache directory downloads everything again.
    "XDG_CACHE_HOME",
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    # Where certificates are: behind a proxy that has its own, no server can speak TLS without them. OpenSSL, Node.js,
    # Python's requests, and curl.
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)
"""The variables of our own environment that every server sees; nothing secret belongs in them."""
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_SHEBANG_BYTES = 256
_NEAREST_SCORE = 70
_WANTS = {
    errno.EMFILE: "the daemon has no free file descriptors (EMFILE)",
    errno.ENFILE: "the system has no free file descriptors (ENFILE)",
    errno.EAGAIN: "the daemon may not start more processes or threads (EAGAIN)",
    errno.ENOMEM: "the system has no free memory (ENOMEM)",
}
"""Words for what is mostly wanted when a process starts; for all else that `is_want` tells, the system has its own."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What to start. `env` is added to the few variables a server inherits; `cwd` is ours if it is empty.

    In a `sandbox` an empty one is a directory of its own.
    """

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    sandbox: Sandbox | None = None

    @property
    def denial(self) -> str:
        """What its sandbox denies in words, empty for none."""
        return self.sandbox.denial(self.cwd) if self.sandbox is not None else ""


class ProcessLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one process; the three steps of a stop add up to at most 5 s by default.

    A process that takes no byte for `write_timeout_s`, although there are some, is lost. What may be taken of the
    machine is for all processes of the server together, as much as there is for None.
    """

    max_line_bytes: int = 16 * 1024 * 1024
    max_lines_per_s: int = 10_000
    write_timeout_s: float = 10.0
    stop_eof_s: float = 2.0
    stop_term_s: float = 2.0
    reap_s: float = 1.0
    max_memory_mib: int | None = None
    max_processes: int | None = None
    max_open_files: int | None = None
    max_processors: float | None = None

    def allotment(self, launch: str) -> Allotment:
        """Return what a launch may take of the machine."""
        return Allotment(
            name=launch,
            memory_bytes=None if self.max_memory_mib is None else self.max_memory_mib * _MIB,
            processes=self.max_processes,
            files=self.max_open_files,
            processors=self.max_processors,
        )


def build_environment(configured: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server: `INHERITED` variables of `base`, then the configured ones. Has a PATH."""
    environment = {name: base[name] for name in INHERITED if name in base and not base[name].startswith("()")}
    environment.setdefault("PATH", DEFAULT_PATH)
    environment.update(configured)
    return environment


def check_strings(args: Sequence[str], environment: Mapping[str, str]) -> None:
    """Raise `SpawnFailed` (permanent) for what no kernel accepts; the message names the place, never a value."""
    for number, text in enumerate(args):
        if "\0" in text:
            raise _refusal(f"argument {number} has a NUL character in it")
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name:
            raise _refusal(f"{name!r} is not a name for an environment variable")
        if "\0" in value:
            raise _refusal(f"the environment variable {name} has a NUL character in it")


def working_directory(cwd: str) -> str:
    """Return a working directory as an absolute path, ours for none. Raises `SpawnFailed` if we may not enter it."""
    place = absolute(cwd)
    objection = objection_to_directory(place)
    if objection and not cwd:
        raise _refusal("the daemon's own working directory is gone: set `cwd`, or start the daemon elsewhere")
    if objection:
        raise _refusal(f"the working directory {place} {objection}")
    return place


def prepare(launch: Launch, base: Mapping[str, str]) -> tuple[list[str], dict[str, str], str]:
    """Return what to execute, with which environment, where: nothing in it is relative. Raises `SpawnFailed`.

    `base` is our own environment. No directory is the one of a sandbox that has none of ours.
    """
    env = build_environment(launch.env, base)
    check_strings(launch.args, env)
    place = working_directory(launch.cwd)
    argv = [resolve_command(launch.command, path=env["PATH"], cwd=place), *launch.args]
    return argv, env, place if launch.cwd or launch.sandbox is None else ""


def resolve_command(command: str, *, path: str, cwd: str) -> str:
    """Return the absolute path of `command`: as it is, relative to `cwd` if it has a slash, else searched on `path`.

    Symbolic links stay (a virtual environment is one). Raises `SpawnFailed` (permanent) with the reason: not found (the
    detail has the PATH searched, and how to install it or the nearest name), a directory, not executable, the
    interpreter of its first line is missing, or a whole command line.
    """
    if not command or "\0" in command:
        raise _refusal("the command is empty or has a NUL character in it")
    try:
        return _resolve(command, path, cwd)
    except SpawnFailed:
        if is_whole_line(command, path, cwd):
            raise _refusal(
                "the command is a whole command line: its first word is the program, those after it belong into `args`"
            ) from None
        raise


def is_whole_line(command: str, path: str, cwd: str) -> bool:
    words = command.split()
    try:
        return len(words) > 1 and bool(_resolve(words[0], path, cwd))
    except SpawnFailed:
        return False


def _resolve(command: str, path: str, cwd: str) -> str:
    if "/" in command:
        # Not Path: it would lose the `./..` parts, which mean something across symbolic links.
        executable = command if command.startswith("/") else os.path.join(cwd, command)  # noqa: PTH118 - see above
        reason = objection_to_program(executable)
        if reason:
            raise _refusal(f"{without_secrets(command)}: {reason}")
    else:
        executable = _search(command, path)
    reason, hint = _shebang_objection(executable, path)
    if reason:
        short = reason.replace(f" on PATH {path}", " on the PATH")
        shown = without_secrets(command)
        raise _refusal(f"{shown}: {short}", f"{without_secrets(executable)}: {reason}", hint)
    return executable


def no_thread(error: RuntimeError) -> SpawnFailed:
    """Return the error for a thread that could not be started. Raises any other `RuntimeError` again: a bug."""
    if not is_want(error):
        raise error
    return SpawnFailed(_WANTS[errno.EAGAIN], scarce=True)


def explain_exec(program: str, error: OSError) -> SpawnFailed:
    """Return the error for what executing `program` raised. Want of resources is not permanent, nor its fault."""
    if is_want(error):
        want = _WANTS.get(error.errno or 0) or f"the system has too little of something: {reason_of(error)}"
        return SpawnFailed(want, scarce=True, detail=f"cannot start {program}: {want}")
    if error.errno == errno.ENOEXEC:
        return _refusal(f"{program} is neither a program nor a script with a #! line")
    if error.errno == errno.E2BIG:
        return _refusal("the arguments and the environment together are too long for the system")
    transient = {errno.ETXTBSY, errno.EIO}
    return SpawnFailed(
        f"cannot start {program}: {os.strerror(error.errno or 0)}", permanent=error.errno not in transient
    )


def _refusal(reason: str, detail: str = "", hint: str = "") -> SpawnFailed:
    return SpawnFailed(reason, permanent=True, detail=detail, hint=hint)


def _directories(path: str) -> list[str]:
    """The absolute entries: a relative one, or an empty one, means the working directory, where anything may lie."""
    return [entry for entry in path.split(":") if entry.startswith("/")]


def _search(command: str, path: str) -> str:
    near = ""
    for directory in _directories(path):
        candidate = f"{directory.rstrip('/')}/{command}"
        reason = objection_to_program(candidate)
        if not reason:
            return candidate
        if not near and reason != NO_FILE:
            near = f"; {candidate}: {reason}"
    hint, shown = how_to_install(command), without_secrets(command)
    if not near and not hint and (nearest := nearest_command(command, path)):
        near = f"; did you mean {nearest}?"
    raise _refusal(
        f"command {shown!r} was not found on the PATH",
        f"command {shown!r} was not found on PATH {path}{near}",
        hint,
    )


def _shebang_objection(program: str, path: str) -> tuple[str, str]:
    """Why the interpreter a script names cannot be executed, and what to do; empty if it can or there is none."""
    try:
        with Path(program).open("rb") as file:
            head = file.read(_SHEBANG_BYTES)
    except OSError:
        return "", ""  # executable but not readable is allowed, the kernel reads it itself
    if not head.startswith(b"#!"):
        return "", ""
    first = os.fsdecode(head[2:].partition(b"\n")[0])
    if first.endswith("\r"):
        return "its first line ends with a carriage return, so its interpreter cannot be found", ""
    words = first.split()
    if not words:
        return "", ""
    reason = objection_to_program(words[0])
    if reason:
        return f"the interpreter {words[0]} of its first line cannot be used: {reason}", ""
    if words[0].rpartition("/")[2] == "env":
        return _env_objection(words[1:], path)
    return "", ""


def _env_objection(words: Sequence[str], path: str) -> tuple[str, str]:
    """`#!/usr/bin/env node` fails inside of `env`, with an exit code only: look where it will look."""
    plain = words[1:] if words and words[0] == "-S" else words
    asked = next((word for word in plain if "=" not in word), "")
    if not asked or "/" in asked or asked.startswith("-"):  # other options of env: let it find out
        return "", ""
    if any(not objection_to_program(f"{directory.rstrip('/')}/{asked}") for directory in _directories(path)):
        return "", ""
    return f"the interpreter {asked} of its first line was not found on PATH {path}", how_to_install(asked)


def nearest_command(command: str, path: str) -> str | None:
    """Return the executable on `path` whose name is most like `command`, None if none is alike."""
    places: dict[str, str] = {}
    for directory in _directories(path):
        for name in names_in(directory):  # thousands
            places.setdefault(name, directory)
    likely = process.extract(command, places.keys(), scorer=fuzz.ratio, limit=5, score_cutoff=_NEAREST_SCORE)
    return next((name for name, _, _ in likely if not objection_to_program(f"{places[name].rstrip('/')}/{name}")), None)

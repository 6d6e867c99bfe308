"""Does a command first install what it runs? `npx PACKAGE`, `uvx TOOL`, `docker run IMAGE` and their like.

Such a start takes a second or many minutes, which nobody can tell from outside before. The words are looked for where
a command may stand: at the beginning, behind `env` and `exec`, and in the text of `sh -c` and `cmd /c`. A launcher that
is not known here is taken for an ordinary program, which costs it nothing but patience.

npm shows nothing of the scripts of a package (`postinstall` and others) and, where one of them fails, nothing at all
(npm-exec, "--foreground-scripts"). A log of each run is in `_logs` of its cache (npm's documentation, "Logging"):
`install_failure` reads why it failed there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice

import msgspec
import trio

from actors.kit.paths import ends_of, names_in
from actors.transport.redaction import without_secrets
from actors.transport.side_output import visible

ANY: frozenset[str] = frozenset()
"""The launcher installs whatever its first word is."""

LAUNCHERS: Mapping[str, frozenset[str]] = {
    "npx": ANY,
    "npm": frozenset({"exec", "x"}),
    "pnpx": ANY,
    "pnpm": frozenset({"dlx"}),
    "yarn": frozenset({"dlx"}),
    "bunx": ANY,
    "bun": frozenset({"x"}),
    "deno": frozenset({"run", "x"}),
    "uvx": ANY,
    "uv": frozenset({"run", "tool"}),
    "pipx": frozenset({"run"}),
    "docker": frozenset({"run", "container", "compose"}),
    "podman": frozenset({"run", "container", "compose"}),
    "nerdctl": frozenset({"run", "container", "compose"}),
    "go": frozenset({"run"}),
    "cargo": frozenset({"run"}),
    "dotnet": frozenset({"run", "tool"}),
    "dnx": ANY,
    "nix": frozenset({"run", "shell", "develop"}),
    "jbang": ANY,
}
"""Programs that install (or build) and run, with the words that make them do so."""

_SHARED = frozenset({"npx", "npm", "pnpx", "pnpm", "bunx", "bun", "yarn"})
"""Launchers that unpack a package into a directory that every server of the package shares, without a lock."""
NPM = frozenset({"npx", "npm"})
"""Launchers that are npm: it shows nothing of the scripts of a package, and keeps logs of its own."""
_NAMES_PACKAGE = frozenset({"-p", "--package"})
_MODULES = frozenset({"pipx", "uv"})
"""Launchers that are started as `python -m NAME`, too."""
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish"})
_PREFIXES = frozenset({"exec", "env", "nice", "nohup", "command", "time"})
_BREAKS = frozenset({"&&", "||", ";", "|", "&", "(", "{", "then", "do"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"(python|py)[0-9.]*")
_ENDING = re.compile(r"\.(exe|cmd|bat|ps1|sh)$")
_MAX_DEPTH = 4
_MAX_SCRIPT_CHARS = 16_384
"""A longer script is a program of its own."""
LOOK_S = 3.0
MAX_LOGS = 32
"""So many of the newest logs are looked at: npm keeps ten of all its runs, and those that go on."""
HEAD_BYTES = 16 * 1024
"""The command is in one of the first lines."""
TAIL_BYTES = 16 * 1024
"""What failed is in one of the last."""
_SUFFIX = "-debug-0.log"
_SCRIPT = re.compile(r"^\d+ info run (\S+) (\S+) \S+ (.+)$", re.MULTILINE)
_FAILED = re.compile(r"^\d+ info run (\S+) (\S+) \{ code: ([1-9]\d*|null), signal: (\S+) \}$", re.MULTILINE)
_GIT = re.compile(r"^\d+ silly fetch manifest (\S+@(?:git|github:|gitlab:|bitbucket:)\S*)$", re.MULTILINE)
_GIT_FAILED = re.compile(r"^\d+ verbose exit 128$", re.MULTILINE)
"""npm ends with the exit code of git where that cannot fetch a dependency, and says nothing of it."""
_ERROR = re.compile(r"^\d+ (?:verbose stack|error) ((?!A complete log|code ).*\S)", re.MULTILINE)


class Installer(msgspec.Struct, frozen=True):
    """What a launch may have to install. Of equal `package`s only one should be installed at a time, if it has one."""

    launcher: str
    package: str = ""


def installer_of(command: str, args: Sequence[str]) -> Installer | None:
    """Return what starts the server, if that may install it first; None for an ordinary program."""
    return _find([command, *args], 0)


def _find(words: Sequence[str], depth: int) -> Installer | None:
    words = _bare(words)
    if not words or depth > _MAX_DEPTH:
        return None
    program, rest = _program(words[0]), words[1:]
    if program in _SHELLS or program == "cmd":
        return next(filter(None, (_find(part, depth + 1) for part in _scripts(program, rest))), None)
    if _PYTHON.fullmatch(program) and rest[:1] == ["-m"] and rest[1:2] and rest[1] in _MODULES:
        return _find(rest[1:], depth + 1)
    wanted = LAUNCHERS.get(program)
    if wanted is None or (wanted and wanted.isdisjoint(rest)):
        return None
    if program == "deno" and not any(word.startswith(("npm:", "jsr:", "http")) for word in rest):
        return None
    return Installer(program, _package(rest, wanted) if program in _SHARED else "")


def _bare(words: Sequence[str]) -> list[str]:
    """Return the words without what may stand before a command: `env A=b`, `exec`."""
    bare, prefixed = list(words), False
    while bare:
        prefix = _program(bare[0]) in _PREFIXES
        if not prefix and not _ASSIGNMENT.match(bare[0]) and not (prefixed and bare[0].startswith("-")):
            break
        prefixed |= prefix
        del bare[0]
    return bare


def _program(word: str) -> str:
    return _ENDING.sub("", re.split(r"[/\\]", word)[-1].lower())


def _scripts(shell: str, rest: Sequence[str]) -> list[list[str]]:
    if shell == "cmd":
        return [list(rest[1:])] if rest and rest[0].lower() == "/c" else []
    place = next((number for number, word in enumerate(rest) if re.fullmatch(r"-[a-z]*c", word)), None)
    if place is None or place + 1 >= len(rest):
        return []
    return _commands(rest[place + 1])


def _commands(script: str) -> list[list[str]]:
    """Return the commands of a shell script, as far as plain splitting finds them."""
    if len(script) > _MAX_SCRIPT_CHARS:
        return []
    lexer = shlex.shlex(script, posix=True, punctuation_chars=";&|(){}")
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word in _BREAKS:
                commands.append([])
            else:
                commands[-1].append(word)
    except ValueError:  # a quotation that does not end: the shell will say so
        return []
    return commands


def _package(rest: Sequence[str], wanted: frozenset[str]) -> str:
    """Return the package's name as it was written, empty if it cannot be told."""
    for number, word in enumerate(rest):
        if word in _NAMES_PACKAGE:
            return next(iter(rest[number + 1 : number + 2]), "")
        if word.startswith("--package="):
            return word.partition("=")[2]
    return next((word for word in rest if not word.startswith("-") and word not in wanted), "")


async def install_failure(command: str, args: Sequence[str], env: Mapping[str, str]) -> str:
    """Return what npm noted of the failure of this command, on one line; empty if npm does not start it."""
    installer = installer_of(command, args)
    if installer is not None and installer.launcher in NPM:
        with trio.move_on_after(LOOK_S), suppress(OSError, RuntimeError):  # of want: then nobody knows
            return await trio.to_thread.run_sync(failure_in, logs_of(env), installer.package, abandon_on_cancel=True)
    await trio.lowlevel.checkpoint()
    return ""


def logs_of(env: Mapping[str, str]) -> str:
    """Return the directory of npm's logs for a process with this environment, empty if it has none."""
    cache = env.get("npm_config_cache") or (f"{env['HOME']}/.npm" if env.get("HOME") else "")
    return env.get("npm_config_logs_dir") or (f"{cache}/_logs" if cache else "")


def failure_in(directory: str, package: str) -> str:
    """Return what the newest log about a package says of its failure, on one line; empty if there is none. Blocks."""
    names = sorted((name for name in names_in(directory) if name.endswith(_SUFFIX)), reverse=True)
    logs = (ends_of(f"{directory}/{name}", HEAD_BYTES, TAIL_BYTES) for name in islice(names, MAX_LOGS))
    return failure(((head.decode(errors="replace"), tail.decode(errors="replace")) for head, tail in logs), package)


def failure(logs: Iterable[tuple[str, str]], package: str) -> str:
    """Return what the first log that is about a package says; the logs are given by their beginnings and ends."""
    head, tail = next(((head, tail) for head, tail in logs if _is_about(head, package)), ("", ""))
    if failed := _FAILED.search(tail):
        of, script, code, killer = failed.groups()
        run = next((started[3] for started in _SCRIPT.finditer(tail) if started.group(1, 2) == (of, script)), "")
        how = f"code {code}" if code != "null" else f"signal {killer}"
        return _safe(f"the {script} script of {of} failed with {how}{f': {run}' if run else ''}")
    if errors := dict.fromkeys(_ERROR.findall(tail)):
        return _safe(" | ".join(errors))
    wanted = _GIT.findall(f"{head}\n{tail}") if _GIT_FAILED.search(tail) else ()
    return _safe(f"git cannot fetch what it depends on: {wanted[-1]}") if wanted else ""


def _safe(text: str) -> str:
    """Return text of a package, or with the address of a registry, as it may be shown."""
    return visible(without_secrets(text))


def _is_about(head: str, package: str) -> bool:
    argv = next((line for line in head.splitlines() if " verbose argv " in line), "")
    return f'"{package}"' in argv or f'"{package}@' in argv

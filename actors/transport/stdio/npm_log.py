"""What npm notes of an install that failed, in a log of its own.

npm shows nothing of the scripts of a package (`postinstall` and others) and, where one of them fails, nothing at all
(npm-exec, "--foreground-scripts"). A log of each run is in `_logs` of its cache (npm's documentation, "Logging").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice

import trio

from actors.kit.paths import ends_of, names_in
from actors.transport.redaction import without_secrets
from actors.transport.side_output import visible
from actors.transport.stdio.installer import NPM, installer_of

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

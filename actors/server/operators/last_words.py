"""Why a program ended, as far as what it wrote last tells. Pure.

- Most programs name an error last; what follows it belongs to it, what stands before it are the frames of a stack.
- Package managers name the error first and its causes below it: the deepest one is the reason.
- Whatever names no error is told from its end backwards.
- What was written to stderr comes first, then lines of stdout that are no messages, then the log that a package manager
  keeps in a file.
"""

from __future__ import annotations

import re

from actors.transport.base import Exit
from actors.transport.stdio.installer import NPM, Installer
from actors.transport.stdio.remedies import advice_on

MAX_WORDS_CHARS = 200

_NO_REASON = re.compile(
    r"\W*$|npm (warn|notice|verb)|npm error (a complete log|    )|\s+at |node\.js v\d|\(node:\d+\)|"
    r"\(use `node --trace|Traceback \(most recent",
    re.IGNORECASE,
)
"""Lines that say nothing of why a program ended: no letters, warnings of npm, frames of a stack."""
_ERROR = re.compile(
    r"^\u00d7|(?:^|[\s\[(:])(?:fatal|error|panic|\w*(?:Error|Exception))\b[^:\"'`=]{0,40}:", re.IGNORECASE
)
_CAUSE = re.compile(r"(?:\[cause\]|cause|caused by):|[├╰]─▶", re.IGNORECASE)
"""A line with the cause of the error above it: of Node.js, uv (now and before), and of programs in Rust."""
_NPM = re.compile(r"npm (?:error|ERR!)(?: (?:\d{3}|notarget|gyp ERR!)(?!\S))?\s*", re.IGNORECASE)
_NPM_EMPTY = re.compile(r"(?:code \S+)?$")
_PYTHON = re.compile(
    r"current Python version \(([\d.]+)\) does not satisfy Python ?([<>=!~]+)(\d+)\.(\d+)|"
    r"requires a different Python: ([\d.]+) not in '([<>=!~]+)(\d+)\.(\d+)"
)
"""What uv and pip say of a package that does not run with the Python that they found."""


def ending(exit_: Exit, installer: Installer | None) -> str:
    """Return what is added to the reason of an end, and what to do where that is known.

    `installer` started a process that never said a word of the protocol: it may have failed instead of the server.
    """
    within = f"; it runs in a sandbox: {exit_.denial}" if exit_.denial else ""
    return f"{_ending(exit_, installer)}{within}"


def _ending(exit_: Exit, installer: Installer | None) -> str:
    for text in (exit_.last_stderr, exit_.last_stdout):
        if words := last_words(text):
            advice = _python_advice(text) or advice_on(text)
            return f"; last words: {words}{f'; {advice}' if advice else ''}"
    if installer is None or not exit_.code:
        return ""
    said = (
        f": {_forwards([exit_.install_log])}"
        if exit_.install_log
        else " did not say why: perhaps it cannot install the server"
    )
    return f"; {installer.launcher}{said}; {_more_of(installer)}"


def last_words(text: str) -> str:
    """Return what the end of an output says of why a program ended, on one line of at most 200 characters."""
    if version := _PYTHON.search(" ".join(text.split())):
        own, relation, *wanted = filter(None, version.groups())
        return _forwards([f"the current Python version ({own}) does not satisfy Python{relation}{'.'.join(wanted)}"])
    lines = [" ".join(line.split()) for line in text.splitlines() if not _NO_REASON.match(line)]
    lines = list(dict.fromkeys(reversed(_without_npm(lines))))[::-1]  # what is said again and again is told once
    errors = [at for at, line in enumerate(lines) if _ERROR.search(line) and not _CAUSE.match(line)]
    return _forwards(_deepest(lines[errors[-1] :])) if errors else _backwards(lines)


def _without_npm(lines: list[str]) -> list[str]:
    """Return what npm says of an error, if it says anything, without what it puts before every line."""
    said = [line[match.end() :] for line in lines if (match := _NPM.match(line))]
    told = [line for line in said if not _NPM_EMPTY.match(line)] or said
    return [f"npm error: {told[0]}", *told[1:]] if told else lines


def _deepest(lines: list[str]) -> list[str]:
    causes = [at for at, line in enumerate(lines) if _CAUSE.match(line)]
    return [lines[0], *lines[causes[-1] :]] if causes else lines


def _forwards(lines: list[str]) -> str:
    words = " | ".join(lines)
    return words if len(words) <= MAX_WORDS_CHARS else words[: MAX_WORDS_CHARS - 1] + "…"


def _backwards(lines: list[str]) -> str:
    first = max(0, len(lines) - 1)
    while first and len(" | ".join(lines[first - 1 :])) <= MAX_WORDS_CHARS:
        first -= 1
    return _forwards(lines[first:])


def _python_advice(text: str) -> str:
    version = _PYTHON.search(" ".join(text.split()))
    if version is None:
        return ""
    _, relation, major, minor = filter(None, version.groups())
    usable = int(minor) + {"<": -1, ">": 1}.get(relation, 0)
    return f'put "--python", "{major}.{usable}" first into its args' if "!" not in relation else ""


def _more_of(installer: Installer) -> str:
    if installer.launcher not in NPM:
        return "try the command in a terminal"
    return f"to see why: npx --foreground-scripts -y {installer.package or 'PACKAGE'}"

"""What is told of why a program ended, beside how it ended. Pure."""

from __future__ import annotations

from actors.transport.base import Exit
from actors.transport.stdio.causes import Kind, cause_of, shortened
from actors.transport.stdio.installer import NPM, Installer

SILENT = (
    "it wrote nothing: run its command in a terminal, and see in its documentation which keys and arguments it needs"
)


def ending(exit_: Exit, installer: Installer | None, *, served: bool = False) -> str:
    """Return what is added to the reason of an end, and what to do where that is known.

    `installer` started it; `served`: it said a word of the protocol, else the installer may have failed instead.
    """
    within = f"; it runs in a sandbox: {exit_.denial}" if exit_.denial else ""
    return f"{_ending(exit_, installer, served=served)}{within}"


def _ending(exit_: Exit, installer: Installer | None, *, served: bool) -> str:
    cause = cause_of(exit_.last_stderr, installer)
    if cause.kind is not Kind.ERROR:
        cause = max(cause, cause_of(exit_.last_stdout, installer), key=lambda cause: cause.kind)
    if cause.words:
        return f"; last words: {cause.words}{f'; {cause.advice}' if cause.advice else ''}"
    if served or exit_.code is None or exit_.asked:
        return ""
    if installer is None or not exit_.code:
        return f"; {SILENT}"
    said = (
        f": {shortened([exit_.install_log])}"
        if exit_.install_log
        else " did not say why: perhaps it cannot install the server"
    )
    return f"; {installer.launcher}{said}; {_more_of(installer)}"


def _more_of(installer: Installer) -> str:
    if installer.launcher not in NPM:
        return "try the command in a terminal"
    return f"to see why: npx --foreground-scripts -y {installer.package or 'PACKAGE'}"

"""How commands end: exit codes, and the failures that have one.

Exit codes are those of sysexits.h where it has one; 1 means that the daemon or a server answered with an error, or that
entries of a configuration are left out.
"""

from __future__ import annotations

import click

EXIT_FAILED = 1
EXIT_REQUIRED = {"missing": 10, "renamed": 11, "hidden": 12, "held": 13, "unavailable": 14}
"""For tools that are required and cannot be called: the first that is true of any, so the last is the one that may pass
by itself."""
EXIT_UNAVAILABLE = 69
"""sysexits.h EX_UNAVAILABLE: no daemon answers."""
EXIT_WANT = 75
"""sysexits.h EX_TEMPFAIL: the system lacks what the command needs; it may have it later."""
EXIT_CONFIG = 78
"""sysexits.h EX_CONFIG: no daemon starts with this configuration."""
EXIT_INTERRUPTED = 130
"""What a shell gives a program that Ctrl-C ended."""


class CommandFailed(click.ClickException):
    """Ends the command with a message on stderr and exit code 1: the answer was an error."""

    exit_code = EXIT_FAILED


class NoDaemon(CommandFailed):
    """Ends the command because no daemon answers."""

    exit_code = EXIT_UNAVAILABLE


class BadConfiguration(CommandFailed):
    """Ends the command because no daemon starts with this configuration."""

    exit_code = EXIT_CONFIG

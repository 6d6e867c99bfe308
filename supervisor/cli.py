"""The `mcpvisor` command: its subcommands, and what every one of them does at its end.

- Ctrl-C and a closed pipe are quiet: people and `head` end programs that way.
- A command is imported when it is needed: `run` starts a fifth sooner without what draws tables for the others.
- An expected failure is a message on stderr and an exit code, never a traceback. Want of resources is one: whoever
  starts the command may do so again later.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword
from typing import Final

import click
from click.shell_completion import CompletionItem

from actors.kit import is_want, reason_of
from supervisor.commands.outcomes import EXIT_INTERRUPTED, EXIT_WANT
from supervisor.host.loading import pause_gc

GROUPS: Final = {
    "daemon": {
        "run": "supervisor.commands.run",
        "demo": "supervisor.demo.tour",
        "status": "supervisor.commands.status",
        "watch": "supervisor.commands.watch",
        "ui": "supervisor.commands.ui",
        **dict.fromkeys(("usage", "top"), "supervisor.commands.usage"),
        **dict.fromkeys(("nodes", "drain"), "supervisor.commands.fleet"),
        "fleet": "supervisor.commands.fleet",
        "operations": "supervisor.commands.operations",
        "doctor": "supervisor.commands.doctor",
        "completion": "supervisor.commands.completion",
    },
    "configuration": {
        "check": "supervisor.commands.check",
        **dict.fromkeys(("add", "edit", "remove"), "supervisor.commands.servers"),
        **dict.fromkeys(("diff", "reload"), "supervisor.commands.reload"),
        "explain": "supervisor.commands.explain",
    },
    "clients": {
        "connect": "supervisor.commands.connect",
        "import": "supervisor.commands.import_",
        "stdio": "supervisor.commands.stdio",
    },
    "servers": {
        "logs": "supervisor.commands.logs",
        **dict.fromkeys(("restart", "wake", "sleep", "refresh", "enable", "disable"), "supervisor.commands.orders"),
        **dict.fromkeys(("login", "logout"), "supervisor.commands.logins"),
    },
    "people": {
        "me": "supervisor.commands.me",
        "token": "supervisor.commands.token",
        "config": "supervisor.commands.config",
        "audit": "supervisor.commands.audit",
    },
    "tools": {
        "tools": "supervisor.commands.tools",
        "search": "supervisor.commands.search",
        "call": "supervisor.commands.call",
        "approve": "supervisor.commands.approve",
        "consents": "supervisor.commands.consents",
        "questions": "supervisor.commands.questions",
        "history": "supervisor.commands.history",
        "tokens": "supervisor.commands.tokens",
        "describe": "supervisor.commands.describe",
    },
}
"""Where each command is, by subject; it has the same name there, with `_` behind it where Python has that word."""
_MODULES: Final = {command: module for modules in GROUPS.values() for command, module in modules.items()}


_WHOLE: Final = 10_000
"""Characters of a summary: it is wrapped, never cut."""


class Commands(click.Group):
    """The commands, each imported when somebody asks for it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names, by subject."""
        del ctx
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None if there is none of that name."""
        del ctx
        if cmd_name not in _MODULES:
            return None
        with pause_gc():
            name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
            command = getattr(import_module(_MODULES[cmd_name]), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is meant; names the likely one where there is none, as groups of click do."""
        name = args[0]
        if name not in _MODULES and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches  # only who mistypes waits for it

            near = get_close_matches(name.lower(), _MODULES, 1)
            said = f"did you mean {near[0]}?" if near else "mcpvisor --help lists them"
            ctx.fail(f"no command is called {name[:100]!r}: {said}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of the commands for each subject."""
        width = max(map(len, _MODULES))
        for title, modules in GROUPS.items():
            commands = ((name, self.get_command(ctx, name)) for name in modules)
            rows = [(name.ljust(width), command.get_short_help_str(_WHOLE)) for name, command in commands if command]
            with formatter.section(title.capitalize()):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin so, without importing them for what they say of themselves."""
        names = [CompletionItem(name) for name in _MODULES if name.startswith(incomplete)]
        return names or super().shell_complete(ctx, incomplete)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="mcpvisor", prog_name="mcpvisor")
def cli() -> None:
    """Run any number of MCP servers behind one address, with four tools in front of all of theirs.

    `mcpvisor COMMAND --help` says more of a command.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    sys.exit(_main(arguments))


def _main(arguments: Sequence[str] | None) -> int:
    try:
        code = cli.main(arguments, prog_name="mcpvisor", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return EXIT_INTERRUPTED
    except (OSError, RuntimeError, MemoryError, ImportError) as error:
        if not is_want(error):
            raise
        click.echo(f"Error: the system lacks what this needs: {str(error) or reason_of(error)}", err=True)
        return EXIT_WANT
    except BaseExceptionGroup as group:
        if group.split(KeyboardInterrupt)[1] is None:
            return EXIT_INTERRUPTED
        raise
    return code if isinstance(code, int) else 0


def _forget_stdout() -> None:
    """Nobody reads stdout any more: what is left in its buffer must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

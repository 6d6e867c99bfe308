"""The `mcpvisor` command: its subcommands, and what every one of them does at its end.

- Ctrl-C and a closed pipe are quiet: people and `head` end programs that way.
- An expected failure is a message on stderr and an exit code, never a traceback. Want of resources is one: whoever
  starts the command may do so again later.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from actors.kit import is_want, reason_of
from supervisor import __version__
from supervisor.commands.call import call
from supervisor.commands.check import check
from supervisor.commands.common import EXIT_INTERRUPTED, EXIT_WANT
from supervisor.commands.demo import demo
from supervisor.commands.logs import logs
from supervisor.commands.orders import disable, enable, refresh, restart, sleep, wake
from supervisor.commands.run import run
from supervisor.commands.search import search
from supervisor.commands.status import status
from supervisor.commands.tokens import tokens
from supervisor.commands.tools import tools
from supervisor.commands.watch import watch


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mcpvisor")
def cli() -> None:
    """Supervises any number of MCP servers and puts all their tools behind four meta-tools."""


_ORDERS = (restart, wake, sleep, refresh, enable, disable)
for _command in (run, check, status, logs, *_ORDERS, tools, tokens, search, call, watch, demo):
    cli.add_command(_command)


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

"""`completion`: what makes a shell complete our commands, and the names of servers where one is asked for.

Whoever presses a key does not wait: the daemon has a second to answer, then the configuration is read in its place, and
what goes wrong is not said.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import click
import trio
from click.shell_completion import get_completion_class

from actors.errors import ConfigError
from supervisor.daemon_client.client import DaemonUnreachable, RequestRefused, connect
from supervisor.operations import STATUS

ANSWER_S = 1.0
VARIABLE = "_MCPVISOR_COMPLETE"
"""By which click knows that it is asked by a shell: the name of the program in capital letters."""


@click.command()
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands, options and servers.

    Names of servers are those of the daemon, which has a second to answer, else those of the configuration.

    \b
    echo 'eval "$(mcpvisor completion bash)"' >> ~/.bashrc
    echo 'eval "$(mcpvisor completion zsh)"' >> ~/.zshrc
    mcpvisor completion fish > ~/.config/fish/completions/mcpvisor.fish
    """
    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(context.find_root().command, {}, "mcpvisor", VARIABLE).source())


def complete_server(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of servers that begin so and are not there yet: of the daemon, else of the configuration."""
    # Imported here: every command completes names, and would start in twice the time with what reads a configuration.
    from supervisor.config.keys import name_fault

    given = context.params.get(parameter.name or "") or ()
    config, url = context.params.get("config"), context.params.get("daemon") or context.params.get("url")
    names = trio.run(partial(_of_daemon, url)) if url and config is None else []
    names = names or _of_file(config)
    usable = [name for name in names if name.startswith(incomplete) and name_fault(name) is None]
    return [name for name in usable if isinstance(given, str) or name not in given]


async def _of_daemon(url: str) -> list[str]:
    with trio.move_on_after(ANSWER_S):
        try:
            async with connect(url) as daemon:
                rows = (await daemon.perform(STATUS))["servers"]
        except (DaemonUnreachable, RequestRefused):
            return []
        if isinstance(rows, list):
            return [row["server"] for row in rows if isinstance(row, dict) and isinstance(row.get("server"), str)]
    return []


def _of_file(config: Path | None) -> list[str]:
    from supervisor.config import parse
    from supervisor.config.file import read_text
    from supervisor.host.places import find_config

    try:
        path = find_config(config, os.environ)
        return sorted(set(parse(read_text(path), path, os.environ).server_names.values()))
    except ConfigError:
        return []

"""`operations`: what can be asked of the daemon over HTTP, with the command for it."""

from __future__ import annotations

import click

from supervisor.commands.common import console, daemon_options, perform, plain, print_json, print_table, table
from supervisor.operations import OPERATIONS


@click.command()
@daemon_options
def operations(*, as_json: bool, url: str) -> None:
    """Show what you may ask the daemon for over HTTP, and the command that asks for the same.

    \b
    mcpvisor operations
    """
    rows = perform(url, OPERATIONS)["operations"]
    if as_json:
        print_json(rows)
        return
    shown = table("METHOD", "PATH", "ROLE", "COMMAND", "WHAT")
    for row in rows:
        named = (row["method"], row["path"], row["role"] or "anybody", row["command"] or "-", row["what"])
        shown.add_row(*map(plain, named))
    print_table(console(), shown)

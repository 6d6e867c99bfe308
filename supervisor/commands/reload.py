"""`reload` and `diff`: the running daemon takes over what is in its file, or says what it would take over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from actors.kit.paths import absolute
from supervisor import operations
from supervisor.commands.common import daemon_options, node_option, perform, plain, print_json

ROWS = (
    ("+", "added", "added"),
    ("-", "removed", "removed: its calls may end, then it is stopped"),
    ("~", "replaced", "replaced: its calls may end, new ones wait for the new one"),
    ("~", "changed", "changed, without a new process"),
)
"""How the servers of a difference are shown: a sign, the member of the answer, and what happens to them."""


@click.command()
@node_option
@daemon_options
def reload(*, as_json: bool, url: str) -> None:
    """Have the daemon read its configuration again.

    A file with a mistake changes nothing; then it exits with 1.
    """
    answer = perform(url, operations.RELOAD, warns=False)
    if as_json:
        print_json(answer)
    else:
        click.echo(plain(answer["message"]).plain)


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@daemon_options
def diff(*, file: Path | None, as_json: bool, url: str) -> None:
    """Show what a reload would do, and change nothing.

    It compares what the daemon runs with the daemon's own file, or with FILE in its place.

    \b
    mcpvisor diff new.json
    """
    path = absolute(str(file)) if file is not None else ""
    answer = perform(url, operations.RELOAD, {"plan": True, "path": path}, warns=bool(path))
    if as_json:
        print_json(answer)
        return
    for line in list_changes(answer["changes"]):
        click.echo(plain(line).plain)


def list_changes(changes: dict[str, Any]) -> list[str]:
    """Return a line for each server and setting that would change."""
    shown = {**changes, "changed": [name for name in changes["changed"] if name not in changes["replaced"]]}
    lines = [f"{sign} {name}: {what}" for sign, kind, what in ROWS for name in shown[kind]]
    lines += [f"~ setting {name}" for name in changes["settings"]]
    lines += [f"~ setting {name}: takes effect when the daemon is started again" for name in changes["restart"]]
    return lines or ["nothing would change"]

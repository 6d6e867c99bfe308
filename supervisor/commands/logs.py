"""`logs`: what a server wrote and what happened to it, of all its processes since the daemon started."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import click
from rich.text import Text

from supervisor.commands.common import console, json_text, page, plain, run, say, server_argument, url_option
from supervisor.commands.watch import follow

MAX_LINES = 1000
"""The daemon's own bound, written again: to import it would load the whole web server."""
SOURCES = {"supervisor": ("mcpvisor", "bold"), "stdout": ("stdout", "yellow"), "stderr": ("stderr", "dim")}

Line = dict[str, Any]


@click.command()
@server_argument
@click.option("-f", "--follow", "following", is_flag=True, help="Then show new lines as they come, until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    "count",
    type=click.IntRange(0, MAX_LINES),
    default=100,
    metavar="N",
    help="Newest lines to show first.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each line as JSON.")
@url_option
def logs(*, server: str, following: bool, count: int, as_json: bool, url: str) -> None:
    """Show what SERVER wrote, and what happened to it.

    The lines are what it wrote to stderr, what it wrote to stdout that is no message, and what the daemon did with it.

    \b
    mcpvisor logs github -f -n 20
    """
    path = f"/api/servers/{quote(server, safe='')}/logs"
    out = console()

    def show(lines: list[Line]) -> None:
        for logged in lines:
            if as_json:
                click.echo(json_text(logged))
            else:
                out.print(line(logged))

    log = page(url, path, {"lines": count}, needs="lines")
    show(log["lines"])
    if following:
        _follow(url, path, log["newest"], show)
    elif not log["lines"] and not as_json:
        say("Nothing was logged since the daemon started.")


def _follow(url: str, path: str, newest: int, show: Callable[[list[Line]], None]) -> None:
    seen = newest

    def on_event(event: dict[str, Any]) -> None:
        nonlocal seen
        seen = event["newest"]
        if event["missed"]:
            say(f"{event['missed']} lines were missed")
        show(event["lines"])

    run(lambda: follow(url, lambda: f"{path}?after={seen}", on_event))


def line(logged: Line) -> Text:
    at = time.strftime("%m-%d %H:%M:%S", time.localtime(logged["time"]))
    name, style = SOURCES.get(logged["source"], (str(logged["source"]), ""))
    return Text.assemble((at, "dim"), " ", (f"{name:8}", style), " ", plain(logged["text"]))

"""`logs`: what servers wrote and what happened to them, of one or of all, also before the daemon started."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import click
from rich.text import Text

from supervisor import operations
from supervisor.commands.common import (
    NODE,
    console,
    json_text,
    moment_of,
    node_option,
    perform,
    plain,
    plain_line,
    run,
    say,
    url_option,
)
from supervisor.commands.completion import complete_server
from supervisor.commands.watch import follow

MAX_LINES = 1000
MAX_GREP = 200
"""The daemon's own bounds, written again: to import them would load the whole web server."""
SOURCES = {"supervisor": ("mcpvisor", "bold"), "stdout": ("stdout", "yellow"), "stderr": ("stderr", "dim")}

Line = dict[str, Any]


@click.command()
@click.argument("server", required=False, shell_complete=complete_server)
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
@click.option("--since", default="", metavar="WHEN", help="Not before: 10m, 2h, 7d, 2026-11-01, or 2026-11-01T08:30.")
@click.option("--grep", default="", metavar="TEXT", help="Lines with this text in them, in whatever case.")
@click.option("--json", "as_json", is_flag=True, help="Print each line as JSON.")
@node_option
@url_option
def logs(*, server: str | None, following: bool, count: int, since: str, grep: str, as_json: bool, url: str) -> None:
    """Show what SERVER wrote, and what happened to it; without SERVER, that of all by time.

    The lines are what it wrote to stderr, what it wrote to stdout that is no message, and what the daemon did with it.

    \b
    mcpvisor logs github -f -n 20
    mcpvisor logs --since 10m --grep error
    """
    if len(grep) > MAX_GREP:
        raise click.UsageError(f"--grep takes at most {MAX_GREP} characters")
    if following and click.get_current_context().meta.get(NODE):
        raise click.UsageError("--node does not go with --follow: mcpvisor watch tells what happens at all nodes")
    wanted = {"lines": count, "since": moment_of(since), "grep": grep}
    out = console()

    def show(lines: list[Line]) -> None:
        width = max((len(plain(logged.get("server", ""))) for logged in lines), default=0)
        for logged in lines:
            if as_json:
                click.echo(json_text(logged))
            else:
                out.print(line(logged, width))

    asked = {name: value for name, value in wanted.items() if value not in ("", None)}
    log = perform(url, operations.SERVER_LOGS, asked, server=server) if server else perform(url, operations.LOGS, asked)
    show(log["lines"])
    if not log.get("complete", True):
        say("There may be more: the disk did not answer, or there is too much to look through. See --since.")
    if following:
        _follow(url, server, log["newest"] if server else log["until"], grep, show)
    elif not log["lines"] and not as_json:
        say("There are no such lines." if since or grep else "Nothing was logged yet.")


def _follow(url: str, server: str | None, seen: float, grep: str, show: Callable[[list[Line]], None]) -> None:
    def on_event(event: dict[str, Any]) -> None:
        nonlocal seen
        named = {"server": event["server"]} if "server" in event else {}
        lines = [{**named, **logged} for logged in event["lines"]]
        seen = event["newest"] if not named else max([seen, *(logged["time"] for logged in lines)])
        if event["missed"]:
            say(f"{event['missed']} lines were missed" + (f" of {plain(event['server'])}" if named else ""))
        show(lines)

    path = operations.SERVER_LOGS.path({"server": server}) if server else operations.LOGS.rule
    run(lambda: follow(url, lambda: f"{path}?{urlencode({'after': repr(seen), 'grep': grep})}", on_event))


def line(logged: Line, width: int = 0) -> Text:
    """Return a line for a terminal; one of several servers begins with its name, which has `width` columns."""
    at = time.strftime("%m-%d %H:%M:%S", time.localtime(logged["time"]))
    name, style = SOURCES.get(logged["source"], (str(logged["source"]), ""))
    of = (f"{plain(logged['server']).plain:{width}} ", "cyan") if "server" in logged else ""
    return Text.assemble((at, "dim"), " ", of, (f"{name:8}", style), " ", plain_line(logged["text"]))

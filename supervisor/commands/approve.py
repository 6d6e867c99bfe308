"""`approve`: which tools wait for approval, what differs, and their approval."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

import click
from rich.text import Text

from actors.command_line import command
from supervisor import operations
from supervisor.commands.common import ask, console, daemon_options, plain, print_json, say
from supervisor.commands.outcomes import CommandFailed
from supervisor.daemon_client.client import DaemonClient
from supervisor.metatools.texts import clean

MAX_AT_ONCE = 500
"""The daemon's own bound, written again: to import it would load the whole web server."""
WORDS = {
    "added": "is new",
    "changed": "is another one than was approved",
    "suspicious": "is suspicious",
    "unread": "is not known to be approved: the daemon cannot read its database",
}


@click.command()
@click.argument("server", required=False)
@click.argument("tools", nargs=-1, metavar="[TOOL]...")
@click.option("--all", "every", is_flag=True, help="Approve what waits of all servers.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@daemon_options
def approve(*, server: str | None, tools: tuple[str, ...], every: bool, yes: bool, as_json: bool, url: str) -> None:
    """Show which tools wait for approval and what differs, and approve them.

    Without SERVER or --all it only shows them. A TOOL has the name that its server gives it.

    \b
    mcpvisor approve
    mcpvisor approve github
    mcpvisor approve github create_issue
    """
    if every and server is not None:
        raise click.UsageError("--all is for all servers: leave out the name, or --all")
    rows = ask(url, lambda daemon: _find_waiting(daemon, server, tools))
    for missing in sorted(set(tools) - {row["tool"] for row in rows}):
        raise CommandFailed(_no_tool(url, str(server), missing))
    orders = every or server is not None
    if not as_json:
        _show(rows)
    elif not orders:
        print_json(rows)
    if not rows or not orders:
        return
    if not yes and not _agrees(rows):
        raise CommandFailed("nothing was approved")
    approved = ask(url, lambda daemon: _approve(daemon, rows))
    if as_json:
        print_json(approved)
    else:
        say(f"Approved {_count(rows)}.")


def _no_tool(url: str, server: str, name: str) -> str:
    """Return what is said of a tool that does not wait, with those that do."""
    waiting = [row["tool"] for row in ask(url, lambda daemon: _find_waiting(daemon, server, ()))]
    near = difflib.get_close_matches(name[:100], waiting)
    hint = f"did you mean {', '.join(near)}?" if near else f"{command('approve', server)} shows those that do"
    return plain(f"{server} has no tool {name[:100]!r} that waits for approval; {hint}").plain


def _agrees(rows: list[dict[str, Any]]) -> bool:
    try:
        return click.confirm(f"Approve {_count(rows)}?", err=True)
    except click.Abort as error:
        say("")
        if isinstance(error.__context__, KeyboardInterrupt):
            raise
        text = "nothing was approved, as nobody can be asked here: add --yes to approve what is shown"
        raise CommandFailed(text) from None


async def _find_waiting(daemon: DaemonClient, server: str | None, tools: tuple[str, ...]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while True:
        # A list in a parameter is written with commas, which a name may not have (MCP 2025-11-25, server/tools).
        asked = {"servers": server, "tools": tools or None, "offset": len(rows)}
        page = await daemon.perform(operations.TRUST, asked)
        rows += page["tools"]
        if not page["tools"] or len(rows) >= page["total"]:
            return rows


async def _approve(daemon: DaemonClient, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Approve what was shown, some of one server at a time."""
    return [
        await daemon.perform(
            operations.APPROVE, body={"server": server, "tools": {row["tool"]: row["digest"] for row in some}}
        )
        for server, of_server in groupby(rows, lambda row: row["server"])
        for some in _batches(of_server, MAX_AT_ONCE)
    ]


def _batches(rows: Iterable[dict[str, Any]], most: int) -> Iterator[list[dict[str, Any]]]:
    left = iter(rows)
    while some := [*islice(left, most)]:
        yield some


def _show(rows: list[dict[str, Any]]) -> None:
    out = console()
    for row in rows:
        for line in lines_of(row):
            out.print(line, soft_wrap=True)
    if not rows:
        out.print("No tool waits for approval.")


def lines_of(row: dict[str, Any]) -> Iterator[Text]:
    """Yield a tool with why it waits, what is suspicious about it, and what differs."""
    held = "held until it is approved" if row["held"] else "usable all the same"
    yield plain(row["path"]).append(f"  {WORDS.get(row['reason'], row['reason'])}, {held}")
    for finding in row["findings"]:
        yield Text("  ! ", style="bold red").append_text(plain(finding))
    if row["reason"] in ("changed", "suspicious") and row["against"] == "nothing":
        yield Text("  no approved definition of it is kept; this is all of the present one:")
    for change in row["changes"]:
        yield Text("  ").append_text(plain(change["place"]))
        for sign, member, style in (("-", "before", "red"), ("+", "after", "green")):
            if change[member] is not None:
                yield Text(f"    {sign} ", style=style).append(clean(change[member]), style="")
    if row["cut"]:
        yield Text("  ! there is more than is shown here", style="bold red")


def _count(rows: list[dict[str, Any]]) -> str:
    return f"{len(rows)} tool{'s' if len(rows) != 1 else ''}"

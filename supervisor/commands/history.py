"""`history`: what a tool was defined as before, and what changed."""

from __future__ import annotations

import time
from typing import Any

import click
from rich.text import Text

from supervisor import operations
from supervisor.commands.common import console, daemon_options, duration, node_option, perform, plain, print_json
from supervisor.metatools.texts import clean


@click.command()
@click.argument("tool", metavar="SERVER:TOOL")
@node_option
@daemon_options
def history(*, tool: str, as_json: bool, url: str) -> None:
    """Show how the definition of a tool changed since it was first seen.

    \b
    mcpvisor history github:create_issue
    """
    told = perform(url, operations.TOOL_HISTORY, {"path": tool})
    if as_json:
        print_json(told)
        return
    out = console()
    for line in lines_of(told, time.time()):
        out.print(line, soft_wrap=True)


def lines_of(told: dict[str, Any], now: float) -> list[Text]:
    """Return the page as lines: each change with its time, the places that differ, what was there and what is."""
    revisions = told["revisions"]
    count = len(revisions) - 1 + (not told["offered"])
    times = f"changed {count} time{'s' if count != 1 else ''}" if count else "never changed"
    lines = [plain(told["path"]).append(f"  {times}, as far as is kept")]
    if told["own"]:
        lines.append(Text("Its server is not started for all alike. This is of one launch, since the daemon started."))
    for revision in revisions[1:]:
        lines += [Text(), *_change_lines(revision, now)]
    if not told["offered"]:
        lines += [Text(), _moment(revisions[-1]["until"], now).append(": not offered any more")]
    return lines


def _change_lines(revision: dict[str, Any], now: float) -> list[Text]:
    lines = [_moment(revision["since"], now)]
    changes = revision["changes"]
    if changes is None:
        return [*lines, Text("  another definition; one of the two was too long to be kept")]
    if not changes:
        return [*lines, Text("  the same definition as before: it was away in the meantime")]
    for change in changes:
        lines.append(Text("  ").append_text(plain(change["place"])))
        for sign, member, style in (("-", "before", "red"), ("+", "after", "green")):
            if change[member] is not None:
                lines.append(Text(f"    {sign} ", style=style).append(clean(change[member]), style=""))
    return lines


def _moment(unix: float, now: float) -> Text:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(unix))
    return Text(f"{when} ({duration(now - unix)} ago)", style="bold")

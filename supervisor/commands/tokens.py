"""`tokens`: what each tool would cost a model, and what the four meta-tools save."""

from __future__ import annotations

from typing import Any

import click
from rich.console import RenderableType

from supervisor import operations
from supervisor.commands.common import (
    console,
    daemon_options,
    limit_option,
    perform,
    plain,
    print_json,
    servers_option,
    table,
)
from supervisor.commands.status import savings_line

MAX_ROWS = 1000
"""The daemon's own bound, written again: to import it would load the whole web server."""


@click.command()
@servers_option
@limit_option("tools", 20, MAX_ROWS)
@daemon_options
def tokens(*, servers: tuple[str, ...], limit: int, as_json: bool, url: str) -> None:
    """Show how many tokens each server and each tool costs a model.

    The most expensive come first. The last line says what the meta-tools save.
    """
    counts = perform(url, operations.TOOL_TOKENS, {"limit": limit, "servers": servers})
    if as_json:
        print_json(counts)
        return
    out = console()
    out.print(servers_table([row for row in counts["servers"] if not servers or row["server"] in servers]))
    out.print()
    out.print(tools_table(counts["tools"]))
    out.print(f"\n{len(counts['tools'])} of {counts['total']} tools", markup=False)
    totals = {"tools": sum(row["tools"] for row in counts["servers"]), "servers": len(counts["servers"])}
    out.print(savings_line(totals, counts["savings"]), markup=False)


def servers_table(servers: list[dict[str, Any]]) -> RenderableType:
    rows = table("SERVER", "TOOLS", "TOKENS", "", right=("TOOLS", "TOKENS"))
    for row in servers:
        counted = f"{row['counted']} of {row['tools']} counted" if row["counted"] < row["tools"] else ""
        how = "" if row["exact"] or not row["counted"] else "estimate"
        note = ", ".join(part for part in (counted, how) if part)
        rows.add_row(plain(row["server"]), f"{row['tools']}", f"{row['tokens']:,}", note)
    return rows


def tools_table(tools: list[dict[str, Any]]) -> RenderableType:
    rows = table("TOOL", "TOKENS", right=("TOKENS",))
    for row in tools:
        rows.add_row(plain(row["path"]), "-" if row["tokens"] is None else f"{row['tokens']:,}")
    return rows

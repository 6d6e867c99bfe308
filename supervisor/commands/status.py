"""`status`: how the servers of a running daemon are doing."""

from __future__ import annotations

import time
from typing import Any

import click
from rich.console import RenderableType

from supervisor.client import connect
from supervisor.commands.common import (
    ask,
    console,
    duration,
    json_option,
    plain,
    print_json,
    state_text,
    table,
    url_option,
)
from supervisor.tokens import in_words

COLUMNS = ("SERVER", "STATE", "SINCE", "PID", "TOOLS", "TOKENS", "CALLS", "RESTARTS", "LAST ERROR")
NUMBERS = ("SINCE", "PID", "TOOLS", "TOKENS", "CALLS", "RESTARTS")


@click.command()
@json_option
@url_option
def status(*, as_json: bool, url: str) -> None:
    """Show all servers of the running daemon, and the tokens saved."""

    async def question() -> dict[str, Any]:
        async with connect(url) as daemon:
            return await daemon.status()

    found = ask(question)
    if as_json:
        print_json(found)
        return
    out = console()
    out.print(servers_table(found["servers"], time.time()))
    out.print(f"\nmcpvisor {found['version']} at {url}, up {duration(found['uptime_s'])}", markup=False)
    out.print(savings_line(found["totals"], found["tokens"]), markup=False)
    for problem in found["configuration_problems"]:
        out.print(plain(f"problem: {problem}"))


def servers_table(servers: list[dict[str, Any]], now: float) -> RenderableType:
    """Return the rows of `/api/status` as a table; `now` is unix time in seconds."""
    rows = table(*COLUMNS, right=NUMBERS)
    for row in servers:
        rows.add_row(
            plain(row["server"]),
            state_text(row["state"]),
            duration(now - row["since"]),
            _number(row.get("pid")),
            _number(row.get("tools")),
            _number(row.get("tokens")),
            _number(row.get("calls")),
            _number(row.get("restarts")),
            plain(row.get("last_error") or ""),
        )
    return rows


def savings_line(totals: dict[str, Any], tokens: dict[str, Any]) -> str:
    """Return what the four meta-tools save, with the numbers behind it."""
    about = "" if tokens["exact"] else ("about " if tokens["counted"] else "so far about ")
    return (
        f"{totals['tools']} tools of {totals['servers']} servers would cost a model {about}"
        f"{tokens['exposed_tokens']:,} tokens; the four meta-tools cost {tokens['meta_tokens']:,}: "
        f"{in_words(tokens['saved_tokens'], tokens['saved_percent'])}"
    )


def _number(value: object) -> str:
    return "-" if value is None else f"{value}"

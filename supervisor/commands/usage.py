"""`usage`: what was called in an hour to a month, by tool, server, client or user. `top`: the same, as it happens."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, get_args

import click
import trio
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from supervisor import operations
from supervisor.commands.common import (
    ask,
    console,
    daemon_options,
    duration,
    limit_option,
    node_option,
    perform,
    plain,
    print_json,
    print_table,
    run,
    say,
    table,
    url_option,
)
from supervisor.commands.outcomes import CommandFailed
from supervisor.config.keys import nearest_names
from supervisor.daemon_client.client import DaemonClient, connect
from supervisor.usage.periods import NAMES, WINDOWS, By

BARS: Final = "▁▂▃▄▅▆▇█"
LINES_AROUND: Final = 6
"""Of `top`, beside its rows."""
IN_WORDS: Final = {"1h": "hour", "24h": "day", "7d": "week", "30d": "month"}

window_option = click.option(
    "--window", type=click.Choice(list(WINDOWS)), default="1h", help="How far back, until now."
)
by_option = click.option("--by", type=click.Choice(get_args(By)), default="tool", help="What has a row.")


@click.command()
@window_option
@by_option
@click.option("--server", default="", metavar="SERVER", help="Calls of this server alone.")
@click.option("--user", default="", metavar="NAME", help="Calls of this user alone.")
@limit_option("rows", 50, 1000)
@node_option
@daemon_options
def usage(*, window: str, by: By, server: str, user: str, limit: int, as_json: bool, url: str) -> None:
    """Show what was called, how often it failed, and how long it took.

    UNSENT are calls that never reached their server: refused, or it was not up. They are no failures of it.

    P50 and P95: half of the calls, and 95 in 100, took no longer. WAITED is the time before that in which they waited
    for their server to wake, or for their turn.

    \b
    mcpvisor usage --window 24h --by server
    """
    wanted = {"window": window, "by": by, "server": server, "user": user}
    parameters = {name: value for name, value in wanted.items() if value}
    told, line = ask(url, lambda daemon: read(daemon, parameters))
    if server and not told["rows"]:
        _refuse_unknown(url, server)
    if as_json:
        print_json({**told, "timeline": line["buckets"]})
        return
    out = console()
    print_table(out, rows_table(told, limit))
    say(summary(told, line))
    if (more := len(told["rows"]) - limit + told["left_out"]) > 0:
        say(f"There are {more} more rows: see --limit.")


@click.command()
@window_option
@by_option
@click.option(
    "--interval", "pause_s", type=click.FloatRange(0.5, 3600), default=2.0, metavar="SECONDS", help="Between two looks."
)
@url_option
def top(*, window: str, by: By, pause_s: float, url: str) -> None:
    """Show what is called most, as it happens, until Ctrl-C. In a pipe it is shown once."""
    parameters, out = {"window": window, "by": by}, console()

    async def look(daemon: DaemonClient) -> Group:
        told, line = await read(daemon, parameters)
        status = await daemon.perform(operations.ME)
        rows = max(1, out.height - LINES_AROUND) if out.is_terminal else len(told["rows"])
        return Group(Text(summary(told, line)), Text(_servers(status)), Text(), rows_table(told, rows))

    if not out.is_terminal:
        print_table(out, ask(url, look))
        return
    run(lambda: _watch(url, look, pause_s))


async def _watch(url: str, look: Callable[[DaemonClient], Awaitable[Group]], pause_s: float) -> None:
    async with connect(url) as daemon:
        with Live(await look(daemon), screen=True, auto_refresh=False) as live:
            while True:
                await trio.sleep(pause_s)
                live.update(await look(daemon), refresh=True)


async def read(daemon: DaemonClient, parameters: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rows, and the same over time."""
    told = await daemon.perform(operations.USAGE, parameters)
    line = await daemon.perform(operations.USAGE_TIMELINE, parameters)
    return told, line


def rows_table(told: dict[str, Any], limit: int) -> Table:
    columns = [name.upper() for name in NAMES[told["by"]]]
    numbers = ("CALLS", "FAILED", "UNSENT", "P50", "P95", "WAITED", "OUT", "LAST")
    shown, now = table(*columns, *numbers, right=numbers), time.time()
    for row in told["rows"][:limit]:
        took = row["took_ms"]
        shown.add_row(
            *(plain(row[name] or "-") for name in NAMES[told["by"]]),
            f"{row['calls']:,}",
            Text(f"{row['failed']:,}", style="bold red" if row["failed"] else ""),
            Text(f"{row['not_sent']:,}", style="red" if row["not_sent"] else ""),
            *map(in_time, (took["p50"], took["p95"], row["waited_ms"]["p95"])),
            in_bytes(row["bytes_out"]),
            "-" if row["newest"] is None else duration(now - row["newest"]),
        )
    return shown


def _refuse_unknown(url: str, name: str) -> None:
    """Raise `CommandFailed` for a server that is not there; one that was removed may have been called all the same."""
    known = [row["server"] for row in perform(url, operations.ME, warns=False)["servers"]]
    if name not in known:
        near = nearest_names(name, known)
        hint = f"did you mean {', '.join(near)}?" if near else "mcpvisor me lists yours"
        raise CommandFailed(plain(f"there is no server {name[:100]!r}; {hint}").plain)


def summary(told: dict[str, Any], line: dict[str, Any]) -> str:
    """Return the sum as a sentence, with a bar for each part of the window."""
    whole = told["total"]
    if not whole["calls"]:
        return f"Nothing was called in the last {IN_WORDS[told['window']]}."
    failed = (
        f"{whole['failed']:,} failed ({whole['failed'] / whole['calls']:.1%})" if whole["failed"] else "none failed"
    )
    if whole["not_sent"]:
        failed += f", {whole['not_sent']:,} never sent"
    return (
        f"{whole['calls']:,} call{'s' * (whole['calls'] != 1)} in the last {IN_WORDS[told['window']]}, {failed}, "
        f"half of them within {in_time(whole['took_ms']['p50'])}  {bars([each['calls'] for each in line['buckets']])}"
    )


def _servers(told: dict[str, Any]) -> str:
    rows, tokens = told["servers"], told["tokens"]
    online = sum(row["status"] == "online" for row in rows)
    return f"{online} of {len(rows)} servers are online; tokens: {tokens['summary']}"


def bars(counts: list[int], width: int = 60) -> str:
    """Return a bar for each count, or for several together where there are more than `width`."""
    together = max(1, -(-len(counts) // width))
    sums = [sum(counts[at : at + together]) for at in range(0, len(counts), together)]
    most = max(sums, default=0)
    return "".join(BARS[-(-count * len(BARS) // most) - 1] if count else " " for count in sums) if most else ""


def in_time(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "-"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.1f} ms"
    return f"{milliseconds / 1000:.1f} s"


def in_bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"

"""`tools`: the tools that fit criteria, without ranking; `search` ranks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, get_args
from urllib.parse import quote

import click
from click.core import ParameterSource
from rich.console import Group, RenderableType
from rich.text import Text

from actors.catalogue.criteria import MAX_LIMIT, SortBy
from actors.catalogue.inference import Complexity
from actors.catalogue.metadata import SAFETY
from actors.command_line import command
from supervisor import operations
from supervisor.commands.common import (
    below,
    console,
    daemon_options,
    limit_option,
    number,
    perform,
    plain,
    print_json,
    print_table,
    servers_option,
    table,
)
from supervisor.commands.outcomes import EXIT_FAILED, EXIT_REQUIRED

BATCH = 20
BATCH_BYTES = 8192
"""So many tools are asked about with one request, or tools with so long names: an address has bounds."""
SORT_WORDS = tuple(word.replace("_", "-") for word in get_args(SortBy))
SAFETY_STYLES = {"safe": "green", "moderate": "yellow", "dangerous": "bold red"}
COLUMNS = (
    "PATH",
    "SAFETY",
    "CLIENTS",
    "CATEGORY",
    "TOKENS",
    "CALLS",
    "SUCCESS",
    "AVG MS",
    "WAIT MS",
    "WARNINGS",
    "DESCRIPTION",
)
NUMBERS = ("TOKENS", "CALLS", "SUCCESS", "AVG MS", "WAIT MS", "WARNINGS")
MAX_DESCRIPTION_CHARS = 100
MAX_CARD_CHARS = 300
WIDE = 180
"""Columns that the table needs for descriptions to be read."""


@click.command()
@click.option("--name", metavar="TEXT", help="Has this in its name.")
@click.option("--description", metavar="TEXT", help="Has this in its description, as it stands or word by word.")
@servers_option
@click.option("--server-version", "version", metavar="VERSION", help="Its server's version is compatible with this.")
@click.option("--category", metavar="NAME", help="Is of this category, such as file-system, api or data.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Has this tag; of several, all.")
@click.option("--read-only/--not-read-only", default=None, help="Changes nothing, or does.")
@click.option("--destructive/--not-destructive", default=None, help="May destroy something, or not.")
@click.option("--idempotent/--not-idempotent", default=None, help="May be called again without harm, or not.")
@click.option("--open-world/--closed-world", default=None, help="Reaches the outside world, or not.")
@click.option("--safety", type=click.Choice(SAFETY), metavar="LEVEL", help="Is safe, moderate or dangerous.")
@click.option(
    "--requires-confirmation/--no-confirmation",
    default=None,
    help="Needs a yes of the user, by the settings of the daemon, or not.",
)
@click.option(
    "--complexity", type=click.Choice(get_args(Complexity)), metavar="LEVEL", help="Is simple, moderate or complex."
)
@click.option("--include-unavailable", is_flag=True, default=None, help="Show tools of servers that failed, too.")
@click.option(
    "--sort",
    "sort_by",
    type=click.Choice(SORT_WORDS),
    metavar="KEY",
    default="name",
    help=f"Sort by one of {', '.join(SORT_WORDS)}.",
)
@click.option("--descending", is_flag=True, default=None, help="Show the highest first.")
@click.option(
    "--by-effect", is_flag=True, help="Show which of them a client may run to read only, and why not the others."
)
@limit_option("tools", 50, MAX_LIMIT)
@click.option("--offset", type=click.IntRange(0), metavar="N", default=0, help="How many tools to leave out first.")
@click.option(
    "--require",
    "required",
    multiple=True,
    metavar="TOOLS",
    help="List none, but say whether these can be called: server:tool, with commas or several times.",
)
@daemon_options
@click.pass_context
def tools(
    context: click.Context,
    /,
    *,
    as_json: bool,
    url: str,
    sort_by: str,
    by_effect: bool,
    required: tuple[str, ...],
    **criteria: Any,
) -> None:
    """List the tools that fit all criteria, with what is known of them.

    With --require it says whether tools can be called, and calls none: for a script, before it begins. It is about
    whoever asks: what they may call. A server that sleeps is no reason, as the call wakes it.

    \b
    mcpvisor tools --server github --safety dangerous
    mcpvisor tools --require github:create_issue,time:get_current_time

    With --require: exit 0 if all can be called, else the first of these that is true of any: 10 if it is missing, 11
    if it has another name now, 12 if it is hidden from clients, 13 if it waits for approval, 14 if its server cannot
    be used now.
    """
    if required:
        if others := _given(context) - {"--require", "--json", "--url"}:
            raise click.UsageError(f"--require stands alone, without {', '.join(sorted(others))}")
        names = [name.strip() for each in required for name in each.split(",") if name.strip()]
        raise SystemExit(check_required(url, [*dict.fromkeys(names)], as_json=as_json))
    listing = perform(url, operations.TOOLS, {**criteria, "sort_by": sort_by.replace("-", "_")})
    if as_json:
        print_json(listing)
        return
    out = console()
    if listing["tools"]:
        show = partial(rows_of if out.width >= WIDE else cards_of, by_effect=by_effect)
        print_table(out, show(listing["tools"]))
    levels = ", ".join(f"{count} {level}" for level, count in listing["by_safety"].items())
    out.print(f"{len(listing['tools'])} of {listing['total']} tools ({levels})", markup=False)
    for server, names in listing.get("hidden", {}).items():
        out.print(plain(f"hidden by the configuration of {server}: {', '.join(names)}"))
    for server, names in listing.get("held", {}).items():
        out.print(plain(f"held until they are approved ({command('approve', server)}): {', '.join(names)}"))


def _given(context: click.Context) -> set[str]:
    """Return the options of the command line, as they are written there."""
    return {
        (option.secondary_opts if context.params.get(option.name) is False else option.opts)[0]
        for option in context.command.params
        if option.name and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    }


def check_required(url: str, names: list[str], *, as_json: bool) -> int:
    """Show of each tool whether it can be called; return the exit code."""
    if not names:
        raise click.UsageError("--require names no tool")
    rows = [row for part in _batches(names) for row in perform(url, operations.PREFLIGHT, {"tools": part})["tools"]]
    wrong = {row["status"] for row in rows} - {"ready"}
    if as_json:
        print_json({"ready": not wrong, "tools": rows})
    else:
        shown = table("TOOL", "STATUS", "WHY")
        for row in rows:
            style = "green" if row["status"] == "ready" else "bold red"
            shown.add_row(plain(row["asked"]), Text(plain(row["status"]).plain, style=style), plain(row["reason"]))
        print_table(console(), shown)
    return next((code for status, code in EXIT_REQUIRED.items() if status in wrong), EXIT_FAILED if wrong else 0)


def _batches(names: list[str]) -> Iterator[list[str]]:
    part, left = list[str](), BATCH_BYTES
    for name in names:
        size = len(quote(name, errors="replace"))
        if part and (len(part) == BATCH or size > left):
            yield part
            part, left = [], BATCH_BYTES
        part.append(name)
        left -= size
    yield part


def rows_of(listed: list[dict[str, Any]], *, by_effect: bool = False) -> RenderableType:
    rows = table(*COLUMNS, right=NUMBERS)
    for row in listed:
        metadata = row["metadata"]
        rows.add_row(
            plain(row["path"]),
            Text(metadata["safety"], style=SAFETY_STYLES.get(metadata["safety"], "")),
            (_by_effect(row) if by_effect else _for_clients(row)) or "run it",
            plain(metadata["category"]),
            number(row["tokens"]),
            number(row["calls"]),
            "-" if row["success_rate"] is None else f"{row['success_rate']:.0%}",
            number(row["avg_ms"]),
            number(row["avg_wait_ms"]),
            number(_warnings(row)),
            _description(row, MAX_DESCRIPTION_CHARS),
        )
    return rows


def cards_of(listed: list[dict[str, Any]], *, by_effect: bool = False) -> RenderableType:
    """Return rows of `/api/tools` for a narrow terminal: a line for each tool, its description below."""
    lines: list[RenderableType] = []
    for row in listed:
        facts = _facts(row, _by_effect(row) if by_effect else _for_clients(row))
        lines.append(plain(row["path"]).append("  ").append_text(facts))
        if row["description"]:
            lines.append(below(_description(row, MAX_CARD_CHARS)))
    return Group(*lines)


def _facts(row: dict[str, Any], treatment: str) -> Text:
    metadata = row["metadata"]
    line = Text().append(metadata["safety"], style=SAFETY_STYLES.get(metadata["safety"], ""))
    facts = [plain(metadata["category"]).plain, *filter(None, [treatment])]
    if row["tokens"] is not None:
        facts.append(f"{row['tokens']} tokens")
    if row["calls"]:
        success = "" if row["success_rate"] is None else f", {row['success_rate']:.0%} good"
        facts.append(f"{row['calls']} calls{success}")
    if warned := _warnings(row):
        facts.append(f"{warned} warning{'s' if warned > 1 else ''}")
    return line.append(", " + ", ".join(facts), style="dim")


def _for_clients(row: dict[str, Any]) -> str:
    """Say what the daemon does if a client calls it, where it does not simply run it."""
    if not row.get("exposed", True):
        return "not shown"
    return "asks first" if row.get("requires_confirmation") else ""


def _by_effect(row: dict[str, Any]) -> str:
    """Say whether `execute_read_only_mcp_tool` runs it, and why not."""
    why = row.get("not_read_only", "")
    return f"not read-only: {why}" if why else "read-only"


def _description(row: dict[str, Any], most: int) -> Text:
    text = plain(row["description"])
    text.truncate(most, overflow="ellipsis")
    return text


def _warnings(row: dict[str, Any]) -> int:
    return sum(finding["severity"] == "warning" for finding in row["metadata"]["findings"])

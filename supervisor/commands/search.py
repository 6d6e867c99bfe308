"""`search`: what a model gets from `discover_mcp_tools`, for people."""

from __future__ import annotations

from typing import Any

import click

from supervisor.commands.common import (
    ask,
    console,
    daemon_options,
    limit_option,
    plain,
    print_json,
    print_table,
    profile_option,
    readable,
    table,
)
from supervisor.commands.outcomes import CommandFailed
from supervisor.daemon_client.client import SEARCH_TIMEOUT_S
from supervisor.metatools.definitions import DISCOVER, GO_ON, KINDS

KINDS_HELP = f"What to search: {', '.join(KINDS)}; may be repeated."


@click.command()
@click.argument("query")
@limit_option("results", 10, 1000)
@click.option("--kinds", multiple=True, type=click.Choice(KINDS), default=("tool",), metavar="KIND", help=KINDS_HELP)
@click.option("--cursor", metavar="CURSOR", help="Go on where the last answer ended.")
@profile_option
@daemon_options
def search(
    *, query: str, limit: int, kinds: tuple[str, ...], cursor: str | None, profile: str, as_json: bool, url: str
) -> None:
    """Search the tools behind the daemon by what you want to do.

    The QUERY '*' lists them.

    \b
    mcpvisor search "what time is it in Tokyo"
    """
    arguments = {"query": query, "limit": limit, "kinds": list(kinds), **({"cursor": cursor} if cursor else {})}
    result = ask(url, lambda daemon: daemon.call(DISCOVER, arguments, SEARCH_TIMEOUT_S, profile=profile))
    if result.get("isError"):
        raise CommandFailed(readable(result))
    answer = result.get("structuredContent", {})
    if as_json:
        print_json(answer)
        return
    _show(answer)


def _show(answer: dict[str, Any]) -> None:
    rows = table("PATH", "SCORE", "DESCRIPTION", right=("SCORE",))
    for hit in answer["tools"]:
        path = hit.get("tool_path") or hit.get("uri") or hit.get("prompt") or ""
        rows.add_row(plain(path), f"{hit['relevance_score']:.3f}", plain(hit.get("description", "")))
    out = console()
    if answer["tools"]:
        print_table(out, rows)
    if answer.get("notice"):
        out.print(plain(answer["notice"].replace(f"; {GO_ON}", "")))
    if answer.get("next_cursor"):
        out.print(plain(f"for the rest, the same again with --cursor {answer['next_cursor']}"))
    shown, total = len(answer["tools"]), answer["total_found"]
    compared = answer.get("compared") or {}
    if compared.get("rerank") == "neural" and not compared.get("model"):
        out.print("no sentence model is loaded, which `rerank` asks for: the log of the daemon says why", markup=False)
    took = f"{shown} of {total} found in {answer['search_time_ms']:g} ms{_means(compared)}"
    out.print(f"{took}; a score of 0 is best", markup=False)


def _means(compared: dict[str, Any]) -> str:
    """Return by what a search compared, empty if it did not."""
    if not compared:
        return ""
    if not compared.get("model"):
        return " by words"
    made, of = compared["vectors"], compared["of"]
    return " by words and meanings" if made >= of else f" by words, {made} of {of} also by meanings so far"

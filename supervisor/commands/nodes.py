"""`nodes` and `drain`: the daemons behind one address, and having one of them give its servers to the others."""

from __future__ import annotations

import time
from typing import Any, Literal

import click

from supervisor import operations
from supervisor.commands.common import (
    console,
    daemon_options,
    duration,
    node_option,
    perform,
    plain,
    print_json,
    print_table,
    say,
    table,
    timeout_option,
)
from supervisor.fleet.records import NOT_YET


@click.command()
@node_option
@daemon_options
def nodes(*, as_json: bool, url: str) -> None:
    """Show the daemons that share their servers with this one, and which it runs.

    \b
    mcpvisor nodes
    """
    told = perform(url, operations.NODES)
    if as_json:
        print_json(told)
    elif not told["node"]:
        say('This daemon is alone. To have several work as one, set "fleet" in "supervisor" of each; --help has more.')
    else:
        _show(told)


@click.command()
@click.option("--undo", is_flag=True, help="Have it take servers again.")
@timeout_option(120.0, 0.1, "How long to wait; what is not done by then goes on.")
@node_option
@daemon_options
def drain(*, undo: bool, deadline_s: float, as_json: bool, url: str) -> None:
    """Have a daemon take no servers any more, and give its own to the other nodes, before it is stopped.

    Calls that run may end there, and those that come go to the nodes that take over.

    \b
    mcpvisor drain
    mcpvisor drain --undo
    """
    done = perform(url, operations.DRAIN, {"undo": undo}, timeout_s=deadline_s)
    if as_json:
        print_json(done)
    elif undo:
        say(f"{done['node']} takes servers again")
    else:
        say(f"{done['node']} takes no servers any more, and gave {done['moved']} up; it may be stopped now")


def _show(told: dict[str, Any]) -> None:
    rows = table("NODE", "ADDRESS", "VERSION", "WEIGHT", "SERVERS", "CONFIGURATION")
    newest = told["published"]
    for each in told["nodes"]:
        name = f"{each['name']} (this one)" if each["here"] else each["name"]
        weight = str(each["weight"]) if each["weight"] else "drained"
        alike = "the same" if each["alike"] else "others, or started otherwise"
        configuration = configuration_of(each, newest["digest"] if newest else "")
        rows.add_row(plain(name), plain(each["address"]), plain(each["version"]), weight, alike, configuration)
    print_table(console(), rows)
    if newest:
        ago = duration(time.time() - (newest["at"] or 0))
        say(plain(f"{newest['digest']} was published {ago} ago by {newest['by']} at {newest['node']}").plain)
    if told["member"]:
        say(f"{told['node']} runs {', '.join(told['owns']) or 'no server'}; its lease lasts {told['lease_s']:.0f} s")
    else:
        say(f"{told['node']} has no lease now, so it runs no server: mcpvisor status says why")


def progress_of(node: dict[str, Any], digest: str) -> Literal["waiting", "done", "refused"]:
    """Return what became at a node of what was published."""
    if node["published"] in ("", digest):  # it takes none, or this one
        return "done"
    return "refused" if node["refused"] == digest else "waiting"


def configuration_of(node: dict[str, Any], newest: str) -> str:
    """Return what a node reads, in words; `newest` is the digest of what was published last, empty for nothing."""
    if not node["published"]:
        return "its own"
    if node["refused"] and node["refused"] == newest:
        return "refuses what was published: see mcpvisor status there"
    if node["published"] == NOT_YET:
        return "its own, and nothing published yet"
    return "as published" if node["published"] == newest else "as published before"

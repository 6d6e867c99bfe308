"""`nodes` and `drain`: the daemons behind one address, and having one of them give its servers to the others."""

from __future__ import annotations

from typing import Any

import click

from supervisor.commands.common import (
    ask,
    console,
    daemon_options,
    page,
    plain,
    print_json,
    print_table,
    say,
    table,
    timeout_option,
)


@click.command()
@daemon_options
def nodes(*, as_json: bool, url: str) -> None:
    """Show the daemons that share their servers with this one, and which it runs.

    \b
    mcpvisor nodes
    """
    told = page(url, "/api/nodes", needs="nodes")
    if as_json:
        print_json(told)
    elif not told["node"]:
        say('This daemon is alone. To have several work as one, see "fleet" in docs/guides/fleet.md.')
    else:
        _show(told)


@click.command()
@click.option("--undo", is_flag=True, help="Have it take servers again.")
@timeout_option(120.0, 0.1, "How long to wait; what is not done by then goes on.")
@daemon_options
def drain(*, undo: bool, deadline_s: float, as_json: bool, url: str) -> None:
    """Have a daemon take no servers any more, and give its own to the other nodes, before it is stopped.

    Calls that run may end there, and those that come go to the nodes that take over.

    \b
    mcpvisor drain
    mcpvisor drain --undo
    """
    done = ask(url, lambda daemon: daemon.drain(undo=undo, deadline_s=deadline_s))
    if as_json:
        print_json(done)
    elif undo:
        say(f"{done['node']} takes servers again")
    else:
        say(f"{done['node']} takes no servers any more, and gave {done['moved']} up; it may be stopped now")


def _show(told: dict[str, Any]) -> None:
    rows = table("NODE", "ADDRESS", "VERSION", "WEIGHT", "SERVERS")
    for each in told["nodes"]:
        name = f"{each['name']} (this one)" if each["here"] else each["name"]
        weight = str(each["weight"]) if each["weight"] else "drained"
        alike = "the same" if each["alike"] else "others, or started otherwise"
        rows.add_row(plain(name), plain(each["address"]), plain(each["version"]), weight, alike)
    print_table(console(), rows)
    if told["member"]:
        say(f"{told['node']} runs {', '.join(told['owns']) or 'no server'}; its lease lasts {told['lease_s']:.0f} s")
    else:
        say(f"{told['node']} has no lease now, so it runs no server: mcpvisor status says why")

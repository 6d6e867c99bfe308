"""`nodes`, `drain` and `fleet`: the daemons behind one address, having one of them give its servers to the others, and
publishing one configuration for all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import click
import trio

from actors.errors import ConfigError
from supervisor import operations
from supervisor.commands.common import (
    ask,
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
from supervisor.commands.outcomes import EXIT_FAILED, BadConfiguration
from supervisor.commands.reload import list_changes
from supervisor.config.file import read_text
from supervisor.daemon_client.client import DaemonClient, RequestRefused
from supervisor.fleet.engine import NOT_YET


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
        _show_nodes(told)


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


def _show_nodes(told: dict[str, Any]) -> None:
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


Row = dict[str, Any]
_LOOK_S: Final = 0.3
"""Between two looks at what nodes say."""
_TOO_LARGE: Final = 413


@click.group()
def fleet() -> None:
    """Give the nodes of a fleet one configuration.

    They take it where their own file has `"fleet": {"configuration": "published"}` in `supervisor`.
    """


@fleet.command()
@click.option(
    "--file", "file", type=click.Path(path_type=Path), metavar="FILE", help="In place of the node's own file."
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and publish nothing.")
@timeout_option(30.0, 0.1, "How long to wait until all nodes have taken it.")
@daemon_options
def publish(*, file: Path | None, dry_run: bool, deadline_s: float, as_json: bool, url: str) -> None:
    """Publish a configuration for all nodes that take it: the file of this node, or FILE.

    A node takes what its own file does not have, and nothing of what is of one machine: where it listens, its
    certificate, its data directory, `fleet`. Variables stay as they are written; each node fills in its own.

    \b
    mcpvisor fleet publish --dry-run
    mcpvisor fleet publish --file mcp.json

    Exit 1 if it is refused, or a node has not taken it in time.
    """
    wanted = {"plan": dry_run, **({} if file is None else {"text": _text_of(file), "name": str(file)})}

    async def publish_it(daemon: DaemonClient) -> tuple[Row, Sequence[Row]]:
        published = await daemon.perform(operations.PUBLISH, body=wanted)
        return published, [] if dry_run else await _settled_nodes(daemon, published["digest"], deadline_s)

    published, nodes = ask(url, publish_it, _explain)
    if as_json:
        print_json({**published, "nodes": nodes})
    elif dry_run:
        for line in list_changes(published["changes"]):
            click.echo(plain(line).plain)
    else:
        _show(published, nodes)
    done = nodes and all(progress_of(node, published["digest"]) == "done" for node in nodes)
    if not (dry_run or (published["shared"] and done)):
        raise SystemExit(EXIT_FAILED)


def _text_of(file: Path) -> str:
    try:
        return read_text(file)
    except ConfigError as error:
        raise BadConfiguration(str(error)) from None


def _explain(error: RequestRefused) -> str:
    too_large = error.code == _TOO_LARGE
    return error.message + (": publish it at a node that has it as its own file" if too_large else "")


async def _settled_nodes(daemon: DaemonClient, digest: str, deadline_s: float) -> Sequence[Row]:
    """Return the nodes as they are when each has taken it or refused it, or after the deadline.

    There are none as long as the node that is asked is no member of the fleet.
    """
    nodes: Sequence[Row] = []
    with trio.move_on_after(deadline_s):
        while True:
            nodes = (await daemon.perform(operations.NODES))["nodes"]
            if nodes and all(progress_of(node, digest) != "waiting" for node in nodes):
                break
            await trio.sleep(_LOOK_S)
    return nodes


def _show(published: Mapping[str, Any], nodes: Sequence[Row]) -> None:
    again = "was published already" if published["outcome"] == "unchanged" else "is published"
    servers = f"{published['servers']} server{'s' if published['servers'] != 1 else ''}"
    click.echo(plain(f"{published['digest']} {again}, with {servers}: {published['message']}").plain)
    rows = table("NODE", "CONFIGURATION")
    for node in nodes:
        rows.add_row(plain(node["name"]), configuration_of(node, published["digest"]))
    if nodes:
        print_table(console(), rows)
    else:
        say("This node is no member of the fleet now, so what the others do is not known: mcpvisor status says why.")
    if not published["shared"]:
        say("The engine does not answer; it gets this as soon as it does.")

"""`stdio`: the daemon for clients that start a program and speak with it through its pipes.

- stdout has messages of MCP and nothing else, stderr a line for what happens.
- Imported is only what a bridge needs: there is one for each client, for as long as that runs.
- The working directory is that of whichever client starts it: a file in it is no configuration of the daemon of all.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import click
import trio

from actors.errors import ConfigError
from actors.kit.paths import absolute, is_file
from supervisor.bridge.address import DEFAULT_URL, DoorAddress, read_address
from supervisor.bridge.bridge import MAX_LINE_BYTES, Bridge
from supervisor.bridge.connection import open_connection
from supervisor.bridge.pipes import Output, lines
from supervisor.bridge.relay import Relay
from supervisor.bridge.start import Starter
from supervisor.host.logs import logging_to_stderr
from supervisor.host.places import find_config
from supervisor.metatools.definitions import READS

STDIN, STDOUT = 0, 1


@click.command()
@click.option(
    "--url",
    envvar="MCPVISOR_URL",
    metavar="URL",
    help="Address of the daemon, or of one of its doors; also MCPVISOR_URL.",
)
@click.option(
    "--config",
    "config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Configuration file, for a daemon that is started.",
)
def stdio(url: str | None, config: Path | None) -> None:
    """Serve one client on stdin and stdout, through the daemon.

    Where no daemon runs, it starts one. Clients that start a program have `mcpvisor stdio` in their configuration.
    """
    try:
        address = read_address(url or _address_of(config, os.environ))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--url") from None
    if sys.stdin.isatty():
        click.echo(
            "this speaks MCP on stdin and stdout: a client starts it; see mcpvisor connect",
            err=True,
        )
    with logging_to_stderr("info"):
        code = trio.run(_serve, address, _starter(address, config, listens=url is not None))
    sys.exit(code)


def _address_of(config: Path | None, environ: Mapping[str, str]) -> str:
    """Return the address at which the daemon of a configuration listens. What is wrong with that, the daemon says."""
    with suppress(ConfigError, OSError, ValueError):
        file = find_config(config, environ, here=False)
        if is_file(str(file)) and b"listen" in file.read_bytes():  # else all that reads one is not needed
            from supervisor.commands.run import find_published
            from supervisor.config import load
            from supervisor.config.address import base_url

            settings = load(file, environ, published=find_published(file, environ)).settings
            host, port = settings.address
            return base_url(host, port) if port else DEFAULT_URL
    return DEFAULT_URL


def _starter(address: DoorAddress, config: Path | None, *, listens: bool) -> Starter | None:
    """Return what starts a daemon at an address of this machine; `listens`: that is said, not read in its file."""
    if address.secure or not address.is_here:
        return None

    def options() -> list[str]:
        file = absolute(str(find_config(config, os.environ, here=False)))
        return ["--config", file, *(["--listen", address.authority] if listens else [])]

    return Starter(address.port, options, os.environ)


async def _serve(address: DoorAddress, starter: Starter | None) -> int:
    said = lines(STDIN, MAX_LINE_BYTES)
    reads = READS if address.has_metatools else frozenset[str]()
    bridge = Bridge(Relay(str(address), reads=reads), said, Output(STDOUT), partial(open_connection, address), starter)
    async with trio.open_nursery() as nursery:
        await nursery.start(_end_on_signals, bridge)
        code = await bridge.run()
        nursery.cancel_scope.cancel()
    return code


async def _end_on_signals(bridge: Bridge, *, task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        task_status.started()
        async for _ in signals:
            bridge.end()

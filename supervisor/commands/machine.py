"""What `run` does with several nodes on one machine: it starts them, and serves nothing itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from socket import socket
from typing import Final

import msgspec

from actors.errors import ConfigError
from supervisor.config import Configuration
from supervisor.config.values import LogFormat
from supervisor.host.datadir import DataDir

OF_SYSTEMD: Final = frozenset({"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"})
"""Variables that are for the process that systemd has started."""
NODES_END_S: Final = 1.0
"""What nodes have beside their own bound on their end, before they are ended."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that go over settings, or stand in for one."""

    listen: str | None
    idle_exit: float | None
    log_format: LogFormat | None

    def words(self) -> list[str]:
        """Return them as they are written on a command line."""
        given = {"--listen": self.listen, "--idle-exit": self.idle_exit, "--log-format": self.log_format}
        return [word for name, value in given.items() if value is not None for word in (name, str(value))]


def run_machine(
    configuration: Configuration,
    data: DataDir,
    sockets: list[socket],
    announce: Callable[[list[str]], None],
    options: RunOptions,
) -> int:
    """Run several nodes, and serve nothing in this process, which holds their port by `sockets`."""
    from supervisor.bridge.start import daemon_command, with_package
    from supervisor.host.program import Systemd, run_program

    settings, key = configuration.settings, "supervisor.fleet.nodes"
    if sys.platform != "linux":
        raise ConfigError("several nodes of one machine need Linux", key=key, hint="set it to 1")
    try:
        from supervisor.fleet.machine import MachineNodes, NodeCommand
    except ModuleNotFoundError as error:
        hint = "pip install 'mcpvisor[fleet]'"
        raise ConfigError(f"several nodes need the package {error.name}", key=key, hint=hint) from None
    environ = {name: value for name, value in os.environ.items() if name not in OF_SYSTEMD}

    def command(root: Path) -> NodeCommand:
        given = ("--as-node", "--config", str(configuration.path), "--data-dir", str(root), *options.words())
        return NodeCommand(words=daemon_command(*given), environ=with_package(environ))

    listen = f"{settings.listen.rpartition(':')[0]}:{sockets[0].getsockname()[1]}"
    machine = MachineNodes(settings.fleet, data, listen, command)
    machine.systemd = Systemd(os.environ)
    return run_program(machine, announce, settings.shutdown_s + NODES_END_S)

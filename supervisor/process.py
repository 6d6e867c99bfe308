"""The process of a daemon: what is set up before its loop runs, and what is in the process alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from socket import socket

from actors.transport.stdio.containment import become_subreaper
from supervisor.config import Configuration
from supervisor.daemon import Daemon
from supervisor.host.datadir import DataDir
from supervisor.host.descriptors import raise_limit
from supervisor.host.loading import preload
from supervisor.host.program import Systemd, run_program
from supervisor.servers.reloading.reload import Read


def run(
    configuration: Configuration,
    data: DataDir,
    sockets: list[socket],
    announce: Callable[[list[str]], None],
    read: Read | None = None,
    tell_idle: Callable[[bool], None] | None = None,
) -> int:
    """Run a daemon until a signal ends it; return the exit code. `announce` gets the base URLs once it listens.

    `read`, `tell_idle`: see `Daemon`. Raises `ConfigError` if the configuration or what is in the data directory turns
    out to be of no use, and what `is_want` tells if the system has too little for a daemon to begin with.
    """
    become_subreaper()  # what a killed shim leaves behind becomes ours, and is swept
    preload(remote=any(server.kind != "stdio" for server in configuration.servers))
    daemon = Daemon(configuration, data, sockets, descriptors=raise_limit())
    daemon.read = read or daemon.read
    daemon.tell_idle = tell_idle or daemon.tell_idle
    daemon.systemd = Systemd(os.environ)
    return run_program(daemon, announce, configuration.settings.shutdown_s)

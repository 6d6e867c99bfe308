"""Runs the daemon in the foreground: `run_daemon.py --config FILE --listen HOST:PORT --data-dir DIR`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from actors.errors import ConfigError
from supervisor import daemon
from supervisor.config import load
from supervisor.datadir import open_data_dir
from supervisor.front.serve import open_sockets
from supervisor.logs import logging_to_stderr


def announce(urls: list[str]) -> None:
    for url in urls:
        print(f"listening on {url}", flush=True)


def run(config: str, listen: str, data_dir: str) -> int:
    configuration = load(Path(config), os.environ)
    with open_data_dir(Path(data_dir), os.environ) as data:
        sockets = open_sockets(listen, configuration.settings.tcp_user_timeout_s)
        with logging_to_stderr("info"):
            return daemon.run(configuration, data, sockets, announce)


if __name__ == "__main__":
    given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    try:
        sys.exit(run(given["--config"], given["--listen"], given["--data-dir"]))
    except ConfigError as error:
        print(error, file=sys.stderr)
        sys.exit(78)

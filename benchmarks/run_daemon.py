"""Run the daemon with a configuration file: `python -m benchmarks.run_daemon FILE`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from supervisor.config import load
from supervisor.daemon import run
from supervisor.datadir import open_data_dir
from supervisor.front.serve import open_sockets


def main() -> int:
    """Run until a signal; return the exit code."""
    configuration = load(Path(sys.argv[1]), os.environ)
    settings = configuration.settings
    assert settings.data_dir is not None
    with open_data_dir(Path(settings.data_dir), os.environ) as data:
        sockets = open_sockets(settings.listen, settings.tcp_user_timeout_s)
        return run(configuration, data, sockets, lambda urls: None)


if __name__ == "__main__":
    sys.exit(main())

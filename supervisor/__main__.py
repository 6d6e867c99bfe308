"""`python -m supervisor`, and the `mcpvisor` command: what must happen before the rest is loaded.

- No standard stream stays closed: the next file that is opened would become it.
- Ctrl-C while modules are loaded ends the program as it ends others, without a traceback.
- A daemon outlives what ends other programs from its first moment on, not only once it listens.
"""

import sys

from supervisor.host.loading import outlive_signals, pause_gc, plain_interrupt


def main() -> None:
    """Run the command line."""
    with plain_interrupt(), pause_gc():
        if sys.argv[1:2] == ["run"]:
            outlive_signals()
        from supervisor.cli import main as run
        from supervisor.host.descriptors import occupy_standard

        occupy_standard()
    run()


if __name__ == "__main__":
    main()

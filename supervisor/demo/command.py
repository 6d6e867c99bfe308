"""`demo`: the main job with real processes, in a few seconds, with nothing but this package."""

from __future__ import annotations

import sys

import click


@click.command()
def demo() -> None:
    """Show the daemon at work with small servers that ship with it; exit 0 when every step worked."""
    # Imported here: no other command needs it.
    from supervisor.demo.tour import run_tour

    sys.exit(run_tour())

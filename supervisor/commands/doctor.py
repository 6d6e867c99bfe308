"""`doctor`: everything that a daemon needs of this machine, looked at once, and what to do where something is wrong."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import click
import trio
from rich.text import Text

from supervisor.commands.common import (
    console,
    json_option,
    plain,
    print_json,
    print_table,
    table,
    url_besides_option,
)
from supervisor.commands.diagnosis.checks import Verdict, diagnose
from supervisor.commands.diagnosis.gathering import gather
from supervisor.commands.outcomes import CommandFailed
from supervisor.commands.run import config_option

STYLES = {"ok": "green", "warning": "yellow", "wrong": "bold red"}


@click.command()
@config_option
@url_besides_option
@click.option("--network", is_flag=True, help="Also look up the names of remote servers.")
@json_option
def doctor(config: Path | None, *, url: str | None, network: bool, as_json: bool) -> None:
    """Check what the daemon needs of this machine.

    It looks at the configuration, the data directory with its database and disk, the programs of the servers, the
    address, open files, the clock and proxies. For each it says what it saw and what to do. It changes nothing.

    Programs are looked up on the PATH of the daemon if one runs, else on that of this shell.

    Exit 1 if something is wrong. A warning is no reason not to start.
    """
    verdicts = diagnose(trio.run(partial(gather, config, dict(os.environ), url or "", network=network)))
    wrong = sum(verdict.status == "wrong" for _, verdict in verdicts)
    if as_json:
        rows = [{"check": name, "status": each.status, "seen": each.seen, "todo": each.todo} for name, each in verdicts]
        print_json({"checks": rows, "wrong": wrong})
    else:
        _show(verdicts)
    if wrong:
        raise CommandFailed(f"{wrong} of {len(verdicts)} checks found something wrong")


def _show(verdicts: list[tuple[str, Verdict]]) -> None:
    rows = table("CHECK", "STATUS", "SEEN")
    for name, verdict in verdicts:
        rows.add_row(name, Text(verdict.status, style=STYLES[verdict.status]), plain(verdict.seen))
        if verdict.todo:
            rows.add_row("", "", Text("-> ", style="bold") + plain(verdict.todo))
    print_table(console(), rows)

"""`audit`: who did what, as the daemon has recorded it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import click

from supervisor import operations
from supervisor.commands.common import (
    ask,
    console,
    daemon_options,
    limit_option,
    moment_of,
    node_option,
    plain,
    print_json,
    print_table,
    say,
    table,
)
from supervisor.daemon_client.client import DaemonClient
from supervisor.identity.audit import ACTIONS, GROUPS

PAGE_RECORDS: Final = 500
THIS_YEAR_S: Final = 300 * 86_400.0
"""What is younger is shown without its year."""


@click.command()
@click.option("--since", default="", metavar="WHEN", help="Not before: 2h, 7d, 2026-11-01, or 2026-11-01T08:30.")
@click.option("--user", default="", metavar="NAME", help="Done by this user.")
@click.option(
    "--action",
    type=click.Choice([*sorted(GROUPS), *ACTIONS]),
    metavar="ACTION",
    help="This action, such as token.create, or a group of them, such as token.",
)
@limit_option("records", 100, 10_000)
@node_option
@daemon_options
def audit(*, since: str, user: str, action: str | None, limit: int, as_json: bool, url: str) -> None:
    """Show who did what: the newest records, the last one at the bottom.

    \b
    mcpvisor audit --since 7d
    mcpvisor audit --user ana --action server
    """
    wanted: dict[str, Any] = {"since": moment_of(since), "user": user, "action": action or ""}
    told = ask(url, lambda daemon: _read(daemon, {name: value for name, value in wanted.items() if value}, limit))
    records = told["records"][::-1]
    if as_json:
        print_json({**told, "records": records})
        return
    shown, now = table("WHEN", "WHO", "FROM", "ACTION", "ENDED", "TARGET", "DETAIL"), time.time()
    for column in shown.columns[:5]:
        column.no_wrap = True
    for record in records:
        shown.add_row(
            _when(record["time"], now),
            plain(_who(record)),
            plain(record["address"] or "-"),
            plain(record["action"]),
            plain(record["outcome"]),
            plain(record["target"] or "-"),
            plain(_detail(record)),
        )
    print_table(console(), shown)
    for line in _remarks(told):
        say(line)


async def _read(daemon: DaemonClient, wanted: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """Return so many records of the daemon's pages, and what the last page says beside them."""
    records: list[dict[str, Any]] = []
    before: dict[str, Any] = {}
    while True:
        parameters = {**wanted, **before, "limit": min(PAGE_RECORDS, limit - len(records))}
        told = await daemon.perform(operations.AUDIT, parameters)
        records += told["records"]
        if told["next"] is None or len(records) >= limit:
            return {**told, "records": records}
        before = {"before": told["next"]}


def _when(moment: float, now: float) -> str:
    shown = "%m-%d %H:%M" if now - moment < THIS_YEAR_S else "%Y-%m-%d"
    return time.strftime(shown, time.localtime(moment))


def _who(record: Mapping[str, Any]) -> str:
    if record["user"]:
        return f"{record['user']} ({record['team']})" if record["team"] else str(record["user"])
    if record["principal"]:
        return "operator"
    return "somebody" if record["address"] else "daemon"


def _detail(record: Mapping[str, Any]) -> str:
    times = f"{record['count']} times" if record["count"] > 1 else ""
    return ", ".join(filter(None, (record["detail"], times)))


def _remarks(told: Mapping[str, Any]) -> list[str]:
    """Return what is to be said of records that are not there."""
    remarks = []
    if not told["days"]:
        remarks.append("Nothing is recorded: the setting audit_days is 0.")
    if told["next"] is not None:
        remarks.append("There are more: see --limit and --since.")
    if told["dropped"]:
        some = ", ".join(f"{rows} of {action}" for action, rows in told["dropped"].items())
        remarks.append(f"Removed as they were too many, the oldest first: {some}.")
    if told["lost"]:
        remarks.append(f"{told['lost']} records could not be written; mcpvisor status says what is wrong.")
    return [plain(remark).plain for remark in remarks]

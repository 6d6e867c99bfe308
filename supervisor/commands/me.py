"""`me`: who the daemon takes somebody for, and what of it is theirs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from actors.installation import shown
from supervisor import operations
from supervisor.commands.common import (
    console,
    daemon_options,
    duration,
    number,
    perform,
    plain,
    print_json,
    print_table,
    state_text,
    table,
)

_REFUSED = "what needs a yes is refused to you"


@click.command()
@daemon_options
def me(*, as_json: bool, url: str) -> None:
    """Show who you are to the daemon, and how your servers are doing.

    It is about whoever has the token in MCPVISOR_TOKEN. Without one you are the operator.
    """
    mine = perform(url, operations.ME, warns=False)
    if as_json:
        print_json(mine)
        return
    out = console()
    out.print(plain(_who(mine, time.time())))
    if said := confirm_text(mine["confirm"]):
        out.print(plain(said))
    rows = table("SERVER", "STATUS", "TOOLS", "TOKENS", "CALLS", "WHY", right=("TOOLS", "TOKENS", "CALLS"))
    for row in mine["servers"]:
        why = plain(row["reason"])
        counts = [number(row.get(each)) for each in ("tools", "tokens", "calls")]
        rows.add_row(plain(row["server"]), state_text(shown(row)), *counts, why)
    print_table(out, rows)


def confirm_text(rules: Mapping[str, Any]) -> str:
    """Return what somebody has to say yes to besides what everybody has; empty for nothing."""
    if rules["mode"] == "run":
        return "tools run without a yes of yours"
    level = [f"what is {rules['level']} or worse"] if rules["level"] else []
    named = ", ".join([*level, *rules["tools"]])
    if rules["mode"] == "refuse":
        return f"{_REFUSED}, also: {named}" if named else _REFUSED
    return f"you are asked for a yes to: {named}" if named else ""


def _who(mine: dict[str, Any], now: float) -> str:
    if not mine["user"]:
        return "the operator of this daemon"
    team = f" of the team {mine['team']}" if mine["team"] else ""
    left = "" if mine["expires_at"] is None else f"; the token expires in {duration(mine['expires_at'] - now)}"
    return f"{mine['user']}{team}, {mine['role']}{left}"

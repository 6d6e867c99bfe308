"""`consents`: which tools run without asking again, and taking that back."""

from __future__ import annotations

import time
from typing import Any

import click

from supervisor import operations
from supervisor.commands.common import (
    console,
    daemon_options,
    duration,
    perform,
    plain,
    print_json,
    print_table,
    say,
    table,
)
from supervisor.commands.outcomes import CommandFailed


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@daemon_options
def consents(*, ids: tuple[str, ...], as_json: bool, url: str) -> None:
    """Show what you said yes to for longer than one call; with an ID, take it back.

    An admin sees that of everybody.

    \b
    mcpvisor consents 8f8dc83f6ab2
    """
    if ids:
        if len(ids) > 1:
            _check(url, ids)
        for id_ in ids:
            say(_take_back(url, id_))
        return
    told = perform(url, operations.CONSENTS)
    if as_json:
        print_json(told)
        return
    _show(told["consents"])


def _check(url: str, ids: tuple[str, ...]) -> None:
    """Raise `CommandFailed` if one of them is none: then none of them is taken back."""
    known = {each["id"] for each in perform(url, operations.CONSENTS)["consents"]}
    if unknown := [id_[:100] for id_ in ids if id_ not in known]:
        raise CommandFailed(f"nobody said yes by the ID {' or '.join(unknown)}; nothing was taken back")


def _take_back(url: str, id_: str) -> str:
    gone = perform(url, operations.REVOKE_CONSENT, id_=id_)["revoked"]
    return f"{gone['server']}:{gone['tool']} asks again"


def _show(given: list[dict[str, Any]]) -> None:
    if not given:
        say("Every tool that has to ask asks each time.")
        return
    rows, now = table("ID", "TOOL", "WHOSE", "FOR", "SINCE"), time.time()
    for each in given:
        rows.add_row(
            each["id"],
            plain(f"{each['server']}:{each['tool']}"),
            plain(each["user"] or "operator"),
            plain(f"{each['client']}, today" if each["client"] else "good"),
            duration(now - each["given_at"]),
        )
    print_table(console(), rows)

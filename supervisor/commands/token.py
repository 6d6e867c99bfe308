"""`token`: who may come in. Made, listed and revoked by a running daemon."""

from __future__ import annotations

import time
from pathlib import Path
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
    span_seconds,
    table,
)
from supervisor.commands.completion import complete_server
from supervisor.commands.outcomes import CommandFailed
from supervisor.daemon_client.client import base_url
from supervisor.host.files import read_if_there, replace_text
from supervisor.operations import ROLES


@click.group()
def token() -> None:
    """Make, list and revoke the tokens that people come in with.

    They count where the configuration has `"auth": "tokens"` in `supervisor`.
    """


@token.command()
@click.option("--user", required=True, metavar="NAME", help="Whose token it is.")
@click.option("--team", default="", metavar="NAME", help="The one team that it is for; without it all of the user's.")
@click.option(
    "--server",
    default="",
    metavar="SERVER",
    help="The one server that it is for, at an address of its own.",
    shell_complete=complete_server,
)
@click.option("--role", type=click.Choice(ROLES), default="member", help="The most that it gives.")
@click.option("--expires", default="90d", metavar="SPAN", help="After which it is none: 12h, 90d, 1y, or never.")
@click.option("--label", default="", metavar="TEXT", help="What it is for, to be told apart later.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write it there, for you alone.")
@daemon_options
def create(
    *, user: str, team: str, server: str, role: str, expires: str, label: str, out: Path | None, as_json: bool, url: str
) -> None:
    """Make a token and show it, once.

    With `--server` it shows an address that has the token in it, for a client that can be told an address alone. It
    opens that server, and nothing else.

    \b
    mcpvisor token create --user ana --role admin
    mcpvisor token create --user ben --team core --expires 12h --out ben.token
    mcpvisor token create --user ben --server github --label phone
    """
    wanted = {
        "user": user,
        "team": team,
        "server": server,
        "role": role,
        "label": label,
        "expires_in_s": _seconds(expires),
    }
    if out is not None and read_if_there(out) is not None:
        raise CommandFailed(f"{out} is there already: name another file, as no token is made for nothing")
    made = perform(url, operations.MAKE_TOKEN, body=wanted)
    if server:
        made["url"] = f"{base_url(url)}{made['address']}?token={made['token']}"
    shown = made["url" if server else "token"]
    if out is not None:
        replace_text(out, None, f"{shown}\n")
        made = {name: value for name, value in made.items() if name not in ("token", "url")}
        say(f"Wrote {out}: token {made['id']} of {user}.")
    if as_json:
        print_json(made)
    elif out is None:
        click.echo(shown)
        say(f"Token {made['id']} of {user}. It is not shown again.")


@token.command("list")
@daemon_options
def list_(*, as_json: bool, url: str) -> None:
    """List all tokens: whose each is, what it gives, when it was used. None of them is shown."""
    rows = perform(url, operations.ACCESS_TOKENS)["tokens"]
    if as_json:
        print_json(rows)
        return
    shown, now = table("ID", "USER", "TEAM", "ROLE", "SERVER", "EXPIRES", "USED", "LABEL"), time.time()
    for row in rows:
        shown.add_row(
            *(plain(row[name] or "-") for name in ("id", "user", "team", "role", "server")),
            _when(row["expires_at"], now, "never"),
            _when(row["used_at"], now, "not yet"),
            plain(row["label"]),
        )
    print_table(console(), shown)


@token.command()
@click.argument("id_", metavar="ID")
@daemon_options
def revoke(*, id_: str, as_json: bool, url: str) -> None:
    """Let the token of this ID be none any more. What it has open ends at once."""
    revoked = perform(url, operations.REVOKE_TOKEN, id_=id_)["revoked"]
    if as_json:
        print_json(revoked)
    else:
        click.echo(f"{plain(revoked['id']).plain} of {plain(revoked['user']).plain} is revoked")


def _seconds(span: str) -> float | None:
    """Return how long a token is good, None for ever. Raises `UsageError`."""
    if span == "never":
        return None
    seconds = span_seconds(span)
    if seconds is None:
        raise click.UsageError("--expires takes a number with m, h, d or y behind it, such as 90d, or never")
    return seconds


def _when(moment: Any, now: float, none: str) -> str:
    if moment is None:
        return none
    return f"in {duration(moment - now)}" if moment > now else f"{duration(now - moment)} ago"

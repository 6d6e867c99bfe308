"""`config`: values that teams and users give for servers. Given to a running daemon, which keeps them sealed.

A value is never an argument: others on the machine can read those, and shells keep them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

import click

from supervisor import operations
from supervisor.commands.common import (
    ask,
    console,
    daemon_options,
    perform,
    plain,
    print_json,
    print_table,
    server_argument,
    table,
)
from supervisor.commands.completion import complete_server
from supervisor.commands.questions import is_terminal
from supervisor.daemon_client.client import DaemonClient

MAX_INPUT_CHARS: Final = 131_072
"""More than a value may have, which the daemon says."""
_STDIN: Final = "-"

user_option = click.option("--user", default="", metavar="NAME", help="Whose it is; without it that of the token.")
team_option = click.option("--team", default="", metavar="NAME", help="The team whose it is.")


@click.group()
def config() -> None:
    """Give servers the values that they take of teams and users.

    They stand where an entry has `${team:NAME}` or `${user:NAME}`. Without --user and --team they are those of the user
    of the token in MCPVISOR_TOKEN.
    """


@config.command("set")
@server_argument
@click.argument("name")
@click.argument("source", default="", metavar="[-]")
@user_option
@team_option
@click.option("--locked", is_flag=True, help="Users cannot give another one than their team.")
@daemon_options
def set_(*, server: str, name: str, source: str, locked: bool, **options: Any) -> None:
    """Give SERVER the value NAME.

    It is asked for, without being shown if it is secret, or read from stdin: of a pipe, or for `-`. Where it stands for
    several arguments, each is a line of its own; at the terminal an empty line ends them.

    \b
    mcpvisor config set github TOKEN
    mcpvisor config set github HOST --team core --locked
    pass github | mcpvisor config set github TOKEN -
    """
    if source not in ("", _STDIN):
        raise click.UsageError(
            "a value is never an argument, as others can read those: leave it out and type it, or pipe it in for -"
        )
    url, owner = options["url"], _owner(options)
    rows = perform(url, operations.VALUES, {**owner, "server": server})
    row = next((each for each in rows["values"] if each["name"] == name), None)
    known = row is not None or not rows["values"]  # else nobody types in vain: the daemon says what is wrong
    value = _value(name, row or {}, from_stdin=source == _STDIN or not is_terminal()) if known else ""
    tier = "team" if owner["team"] and not owner["user"] else "user"
    whose = owner["team"] if tier == "team" else rows["user"]
    body = {"value": value, "locked": locked}
    given = perform(url, operations.GIVE_VALUE, body=body, tier=tier, owner=whose, server=server, name=name)["given"]
    if options["as_json"]:
        print_json(given)
    else:
        click.echo(f"{_name_of(given)} is given" + (", and locked" if given["locked"] else ""))


@config.command()
@server_argument
@click.argument("name")
@user_option
@team_option
@daemon_options
def unset(*, server: str, name: str, **options: Any) -> None:
    """Take the value NAME of SERVER back.

    \b
    mcpvisor config unset github TOKEN
    """
    url, owner = options["url"], _owner(options)

    async def forget(daemon: DaemonClient) -> dict[str, Any]:
        if owner["team"]:
            tier, whose = "team", owner["team"]
        else:
            tier, whose = "user", owner["user"] or (await daemon.perform(operations.VALUES))["user"]
        return await daemon.perform(operations.FORGET_VALUE, tier=tier, owner=whose, server=server, name=name)

    forgotten = ask(url, forget)["forgotten"]
    if options["as_json"]:
        print_json(forgotten)
    else:
        click.echo(f"{_name_of(forgotten)} is taken back")


@config.command("list")
@click.argument("server", required=False, default="", shell_complete=complete_server)
@user_option
@team_option
@daemon_options
def list_(*, server: str, **options: Any) -> None:
    """List the values that servers take, all or those of SERVER: whose holds, and what is missing. Secrets are hidden.

    \b
    mcpvisor config list
    mcpvisor config list github --user ben
    """
    shown = perform(options["url"], operations.VALUES, {**_owner(options), "server": server})
    if options["as_json"]:
        print_json(shown)
        return
    rows = table("SERVER", "VALUE", "IS", "OF", "FROM", "NOTE")
    for row in shown["values"]:
        rows.add_row(
            plain(row["server"]),
            plain(row["name"]),
            plain(value_text(row)),
            plain(f"{row['by']} {row['owner']}" if row["by"] else "-"),
            plain(place_text(row)),
            plain("; ".join(_notes(row))),
        )
    print_table(console(), rows)
    for waiting in shown["awaiting_team"]:
        click.echo(f"{plain(waiting).plain} waits for a value that its team has to give")


def value_text(row: Mapping[str, Any]) -> str:
    """Return a value as it is shown."""
    value = row["value"]
    if value is None:
        return "-"
    return value if isinstance(value, str) else " ".join(map(str, value))


def place_text(row: Mapping[str, Any]) -> str:
    """Return where a value is kept."""
    if row["kept"] == "file":
        return f"the file, line {row['line']}" if row["line"] else "the file"
    return "mcpvisor config" if row["kept"] == "daemon" else "-"


def _notes(row: Mapping[str, Any]) -> list[str]:
    notes = ["missing"] if row["missing"] else []
    notes += ["the team gives it"] if row["tier"] == "team" else ["locked by the team"] if row["locked"] else []
    notes += [f"one of {', '.join(row['options'])}"] if row["options"] else []
    return [*notes, *([row["description"]] if row["description"] else [])]


def _owner(options: Mapping[str, Any]) -> dict[str, str]:
    if options["user"] and options["team"]:
        raise click.UsageError("a value is of a user or of a team: give --user or --team")
    return {"user": options["user"], "team": options["team"]}


def _value(name: str, row: Mapping[str, Any], *, from_stdin: bool) -> str | list[str]:
    """Return what is typed or piped in."""
    several = bool(row.get("several"))
    if from_stdin:
        text = sys.stdin.read(MAX_INPUT_CHARS)
        return text.splitlines() if several else text.removesuffix("\n").removesuffix("\r")
    hidden = bool(row.get("secret", True))
    if not several:
        return str(click.prompt(name, hide_input=hidden, err=True))
    lines: list[str] = []
    while line := str(click.prompt(name, default="", show_default=False, hide_input=hidden, err=True)):
        lines.append(line)
    return lines


def _name_of(given: Mapping[str, Any]) -> str:
    return plain(f"{given['name']} of {given['server']} for the {given['tier']} {given['owner']}").plain

"""`ui`: the address of the dashboard, with a ticket where the daemon asks who comes in."""

from __future__ import annotations

import webbrowser

import click

from supervisor.commands.common import ask, say, url_option
from supervisor.daemon_client.client import base_url
from supervisor.identity.tickets import GOOD_FOR_S

PATH = "/ui"


@click.command()
@click.option("--open", "opens", is_flag=True, help="Also open it in the browser of this machine.")
@url_option
def ui(*, opens: bool, url: str) -> None:
    """Print the address of the dashboard.

    Where the daemon asks who comes in, it signs in whoever has the token in MCPVISOR_TOKEN, or else the operator.
    Then it is good once.
    """
    ticket = ask(url, lambda daemon: daemon.ticket())
    address = f"{base_url(url)}{PATH}" + (f"/sign-in?ticket={ticket}" if ticket else "")
    click.echo(address)
    if ticket:
        say(f"It is good once, for {GOOD_FOR_S:g} s: whoever opens it is signed in.")
    if opens and not webbrowser.open(address):
        say("There is no browser to open it with.")

"""`ui`: the address of the dashboard, with a ticket where the daemon asks who comes in."""

from __future__ import annotations

import os
import subprocess
import sys
import webbrowser
from contextlib import suppress
from html import escape
from pathlib import Path

import click

from actors.errors import ConfigError
from supervisor.commands.common import ask, say, url_option
from supervisor.commands.outcomes import CommandFailed
from supervisor.daemon_client.client import base_url
from supervisor.host.datadir import make_data_dir
from supervisor.host.files import write_atomically
from supervisor.host.places import default_data_dir
from supervisor.identity.requester import GOOD_FOR_S

PATH = "/ui"
LINK = "sign-in.html"
_REMOVE = "import os, sys, time\nif not os.fork():\n time.sleep(float(sys.argv[2]))\n os.unlink(sys.argv[1])"
"""By a process that nobody has to wait for: the command is done long before the ticket is."""


@click.command()
@click.option("--open", "opens", is_flag=True, help="Open it in the browser of this machine.")
@url_option
def ui(*, opens: bool, url: str) -> None:
    """Print the address of the dashboard.

    Where the daemon asks who comes in, it signs in whoever has the token in MCPVISOR_TOKEN, or else the operator.
    Then it is good once. With --open the browser is given it by a file, as others can see what a program is started
    with.
    """
    ticket = ask(url, lambda daemon: daemon.ticket())
    plain = f"{base_url(url)}{PATH}"
    address = plain + (f"/sign-in?ticket={ticket}" if ticket else "")
    if opens and _open(address, plain):
        return
    click.echo(address)
    if ticket:
        say(f"It is good once, for {GOOD_FOR_S:g} s: whoever opens it is signed in.")


def _open(address: str, plain: str) -> bool:
    """Have a browser open an address; say how, or that there is none. An address with a ticket is in a file, which
    nobody else can read, and which is removed when the ticket is good for nothing any more.
    """
    try:
        file = None if address == plain else _write_link(address)
    except (ConfigError, OSError) as error:
        raise CommandFailed(f"the link cannot be put into a file for the browser: {error}") from None
    if webbrowser.open(plain if file is None else file.as_uri()):
        click.echo(plain)
        if file is not None:
            _remove_later(file)
            say(f"The browser signs in by {file}. If it may not read that: mcpvisor ui prints a link.")
        return True
    if file is not None:
        file.unlink(missing_ok=True)
    say("There is no browser to open it with.")
    return False


def _write_link(address: str) -> Path:
    """Return a file that leads a browser to an address. Raises `ConfigError`, `OSError`."""
    file = make_data_dir(default_data_dir(os.environ)) / LINK
    link = escape(address)
    go = f'<meta http-equiv="refresh" content="0; url={link}"><a href="{link}">mcpvisor</a>'
    write_atomically(file, f'<!doctype html><meta charset="utf-8">{go}'.encode())
    return file


def _remove_later(file: Path) -> None:
    command = [sys.executable, "-I", "-S", "-c", _REMOVE, str(file), f"{GOOD_FOR_S}"]
    null = subprocess.DEVNULL
    with suppress(OSError):  # what is in it is good for nothing then all the same
        subprocess.run(command, stdin=null, stdout=null, stderr=null, start_new_session=True, check=False)

"""`login` and `logout`: at remote servers that want to know who asks.

The address is printed, and the command waits until its user has said yes, or no, in a browser.
"""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Awaitable, Callable
from typing import Any

import click
import trio

from supervisor.client import DaemonClient, RequestRefused
from supervisor.commands.common import ask, daemon_options, plain, print_json, server_argument, timeout_option
from supervisor.commands.outcomes import EXIT_FAILED

WAIT_S = 8.0
"""Of one question; shorter than what a page of the daemon may take."""

Answer = dict[str, Any]


@click.command()
@server_argument
@click.option("--open", "opens", is_flag=True, help="Also open the address in a browser.")
@timeout_option(600.0, 1, "How long to wait.")
@daemon_options
def login(*, server: str, opens: bool, deadline_s: float, as_json: bool, url: str) -> None:
    """Log in at a remote SERVER.

    It prints the address where you say yes, and waits until you have.

    \b
    mcpvisor login tickets --open

    Exit 1 if there was no login.
    """

    def show(answer: Answer) -> None:
        click.echo(f"Log in at {plain(server).plain} here:\n\n  {plain(answer['url']).plain}\n", err=as_json)
        if opens and str(answer["url"]).startswith(("https://", "http://")):
            webbrowser.open(str(answer["url"]))

    _end(url, lambda daemon: _login(daemon, server, deadline_s, show), as_json=as_json)


async def _login(daemon: DaemonClient, server: str, deadline_s: float, show: Callable[[Answer], None]) -> Answer:
    answer = await daemon.login(server)
    if answer["state"] != "pending":
        return answer
    show(answer)
    with trio.move_on_after(deadline_s):
        while True:
            now = await daemon.page(f"/api/logins/{answer['login']}", {"wait_s": WAIT_S}, needs="state")
            if now["state"] != "pending":
                return now
    return {**answer, "state": "failed", "message": f"{server}: nobody said yes within {deadline_s:g} s"}


@click.command()
@server_argument
@daemon_options
def logout(*, server: str, as_json: bool, url: str) -> None:
    """Log out at a remote SERVER.

    The daemon has its tokens revoked there, and forgets them.
    """
    _end(url, lambda daemon: daemon.order(server, "logout", 60.0), as_json=as_json)


def _end(url: str, question: Callable[[DaemonClient], Awaitable[Answer]], *, as_json: bool) -> None:
    async def settle(daemon: DaemonClient) -> Answer:
        try:
            return await question(daemon)
        except RequestRefused as error:
            return {"state": "failed", "message": error.message}

    answer = ask(url, settle)
    good = answer.get("state") in (None, "done")
    if as_json:
        print_json(answer)
    else:
        click.echo(plain(answer["message"]).plain if good else f"Error: {plain(answer['message']).plain}", err=not good)
    if not good:
        sys.exit(EXIT_FAILED)

"""`login` and `logout`: at remote servers that want to know who asks.

The address is printed, and the command waits until its user has said yes, or no, in a browser. Meanwhile it takes the
code that the browser shows, or the address that it ended at.
"""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import click
import trio

from supervisor import operations
from supervisor.commands.common import ask, daemon_options, plain, print_json, say, server_argument, timeout_option
from supervisor.commands.lines import StdinLines
from supervisor.commands.outcomes import EXIT_FAILED
from supervisor.commands.questions import is_terminal
from supervisor.daemon_client.client import DaemonClient, DaemonUnreachable, RequestRefused

WAIT_S = 8.0
"""Of one question; shorter than what a page of the daemon may take."""

CODE: Final = "The code that your browser shows, or the address that it ended at: "
ADDRESS: Final = "If your browser cannot reach the daemon, the address that it ended at: "

Answer = dict[str, Any]
Read = Callable[[], Awaitable[str | None]]


@click.command()
@server_argument
@click.option("--open", "opens", is_flag=True, help="Also open the address in a browser.")
@timeout_option(600.0, 1, "How long to wait.")
@daemon_options
def login(*, server: str, opens: bool, deadline_s: float, as_json: bool, url: str) -> None:
    """Log in at a remote SERVER.

    It prints the address where you say yes, and waits until you have. A daemon with several users then wants the code
    that the browser shows. Where the browser cannot reach the daemon, paste the address that it ended at instead.

    \b
    mcpvisor login tickets --open

    Exit 1 if there was no login.
    """

    def show(answer: Answer) -> None:
        click.echo(f"Log in at {plain(server).plain} here:\n\n  {plain(answer['url']).plain}\n", err=as_json)
        if opens and str(answer["url"]).startswith(("https://", "http://")):
            webbrowser.open(str(answer["url"]))

    _end(url, lambda daemon: log_in(daemon, server, deadline_s, show, StdinLines().next), as_json=as_json)


async def log_in(
    daemon: DaemonClient, server: str, deadline_s: float, show: Callable[[Answer], None], read: Read
) -> Answer:
    """Return how a login ended. `show` is told where a user says yes, `read` gives what is typed in, None at its end.

    Raises `RequestRefused`, `DaemonUnreachable`.
    """
    begun = await daemon.perform(operations.BEGIN_LOGIN, server=server)
    if begun["state"] != "pending":
        return begun
    show(begun)
    ended: Answer | Exception = {**begun, "state": "failed", "message": f"{server}: no login within {deadline_s:g} s"}
    with trio.move_on_after(deadline_s):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_pass_on, daemon, begun, read)
            try:
                ended = await _wait_over(daemon, begun)
            except (RequestRefused, DaemonUnreachable) as error:
                ended = error
            nursery.cancel_scope.cancel()
    if isinstance(ended, Exception):
        raise ended
    return ended


async def _wait_over(daemon: DaemonClient, begun: Answer) -> Answer:
    while True:
        now = await daemon.perform(operations.LOGIN, {"wait_s": WAIT_S}, login=begun["login"])
        if now["state"] != "pending":
            return now


async def _pass_on(daemon: DaemonClient, begun: Answer, read: Read) -> None:
    """Give the daemon what is typed in, until it takes it."""
    confirms = begun.get("confirms", False)
    try:
        while True:
            if confirms or is_terminal():
                click.echo(CODE if confirms else ADDRESS, err=True, nl=not is_terminal())
            if (line := await read()) is None:
                return
            with suppress(DaemonUnreachable):  # whoever waits for the end finds out, too
                try:
                    if line.strip():
                        await daemon.perform(
                            operations.ANSWER_LOGIN, body={"answer": line.strip()}, login=begun["login"]
                        )
                        return
                except RequestRefused as refused:
                    say(plain(refused.message).plain)
    except trio.Cancelled:
        if is_terminal():
            click.echo(err=True)
        raise


@click.command()
@server_argument
@daemon_options
def logout(*, server: str, as_json: bool, url: str) -> None:
    """Log out at a remote SERVER.

    The daemon has its tokens revoked there, and forgets them. Where each user logs in, it is about your own login.
    """
    _end(url, lambda daemon: daemon.perform(operations.LOGOUT, server=server), as_json=as_json)


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

"""`restart`, `wake`, `sleep`, `refresh`, `enable`, `disable`: what an operator may order of servers.

Several servers are ordered at once; each says in a sentence what was done, or why not and what shows more. The exit
code is 1 if any of them did not do it. Where one of several names means no server, none is ordered anything.
"""

from __future__ import annotations

import sys
from typing import Any

import click
import trio

from supervisor import operations
from supervisor.commands.common import ask, daemon_options, plain, print_json, say, timeout_option
from supervisor.commands.completion import complete_server
from supervisor.commands.outcomes import EXIT_FAILED
from supervisor.daemon_client.client import DaemonClient, DaemonUnreachable, RequestRefused

Answers = list[dict[str, Any]]

HELP = {
    "restart": "Stop each SERVER and start it afresh, whatever its state. Earlier failures are forgotten.",
    "wake": "Start each SERVER now, without waiting for a call or a back-off.",
    "sleep": "Stop the process of each SERVER once its calls have ended. The next call wakes it again.",
    "refresh": "Read the lists of each SERVER again and show what changed.",
    "enable": "Switch each SERVER on that was switched off with `disable`.",
    "disable": "Switch each SERVER off until `enable`. No call starts it, and its tools are hidden.",
}
_EXIT = "If there is no server of one of the names, nothing is done. Exit 1 if any of them did not do it."


def _command(order: str) -> click.Command:
    @click.command(order, help=f"{HELP[order]}\n\n{_EXIT}")
    @click.argument("servers", metavar="SERVER...", nargs=-1, required=True, shell_complete=complete_server)
    @timeout_option(60.0, 0.1, "How long to wait; what is not done by then goes on.")
    @daemon_options
    def command(*, servers: tuple[str, ...], deadline_s: float, as_json: bool, url: str) -> None:
        answers = ask(url, lambda daemon: _give(daemon, order, list(dict.fromkeys(servers)), deadline_s))
        if as_json:
            print_json(answers)
        else:
            _show(answers)
        if any("error" in answer for answer in answers):
            sys.exit(EXIT_FAILED)

    return command


async def _give(daemon: DaemonClient, order: str, servers: list[str], deadline_s: float) -> Answers:
    """Give the order to all servers at once; return the answers in their order. Raises `RequestRefused`."""
    if len(servers) > 1:
        await _check(daemon, servers)
    answers: dict[str, dict[str, Any]] = {}
    failures: list[DaemonUnreachable] = []

    async def one(server: str) -> None:
        try:
            answers[server] = await daemon.perform(
                operations.ORDER_SERVER,
                {"deadline_s": deadline_s},
                timeout_s=deadline_s + operations.ORDER_SERVER.timeout_s,
                server=server,
                order=order,
            )
        except RequestRefused as error:
            answers[server] = {
                "server": server,
                "order": order,
                "error": {"code": error.code, "message": error.message, "data": error.data},
            }
        except DaemonUnreachable as error:  # raised below, where the nursery does not wrap it
            failures.append(error)

    async with trio.open_nursery() as nursery:
        for server in servers:
            nursery.start_soon(one, server)
    if failures:
        raise failures[0]
    return [answers[server] for server in servers]


async def _check(daemon: DaemonClient, servers: list[str]) -> None:
    """Raise `RequestRefused` if a name means no server: it may be a part of one with a blank."""
    unknown: list[str] = []
    for server in servers:
        try:
            await daemon.perform(operations.SERVER, server=server)
        except RequestRefused as error:
            unknown.append(error.message)
    if unknown:
        raise RequestRefused(404, "\n".join([*unknown, "no server was ordered anything"]))


def _show(answers: Answers) -> None:
    for answer in answers:
        error = answer.get("error")
        if error is None:
            click.echo(plain(answer["message"]).plain)
            continue
        say(f"Error: {plain(error['message']).plain}")


restart, wake, sleep, refresh, enable, disable = map(_command, HELP)

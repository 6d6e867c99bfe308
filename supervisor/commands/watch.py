"""`watch`: what happens in the daemon, as it happens, over the WebSocket `/api/events`.

Once connected it stays: when the daemon goes away it tries again, after 0.5 s at first and after 10 s at most, and goes
on where it has left off.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import click
import trio
from rich.text import Text

from supervisor.client import DaemonUnreachable, RequestRefused
from supervisor.client_sockets import open_socket
from supervisor.commands.common import console, daemon_options, json_text, plain, run, say, state_text

EVENTS = "/api/events"
BACKOFF_INITIAL_S = 0.5
BACKOFF_MAX_S = 10.0

Event = dict[str, Any]


@click.command()
@daemon_options
def watch(*, as_json: bool, url: str) -> None:
    """Show changes of tools and states as they happen, until Ctrl-C."""
    out, last = console(), ""

    def show(event: Event) -> None:
        nonlocal last
        last = event.get("id", last)
        if as_json:
            click.echo(json_text(event))
        else:
            out.print(line(event))

    run(lambda: follow(url, lambda: f"{EVENTS}?after={quote(last)}" if last else EVENTS, show))


async def follow(url: str, path: Callable[[], str], show: Callable[[Event], None]) -> None:
    """Show every message of a WebSocket for ever; `path` is asked for before each connection.

    Raises `DaemonUnreachable` and `RequestRefused` if the first connection fails; later ones are retried, unless who we
    are is what they are refused for.
    """
    connected = False
    backoff_s = BACKOFF_INITIAL_S
    while True:
        try:
            async with open_socket(url, path()) as socket:
                if connected:
                    say("connected again")
                connected = True
                while True:
                    show(await socket.receive())
                    backoff_s = BACKOFF_INITIAL_S
        except (DaemonUnreachable, RequestRefused) as error:
            if not connected or (isinstance(error, RequestRefused) and error.code < 500):
                raise
            say(f"{error}; trying again in {backoff_s:g} s")
        await trio.sleep(backoff_s)
        backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)


def line(event: Event) -> Text:
    at = time.strftime("%H:%M:%S", time.localtime(event["time"])) if "time" in event else "        "
    server = plain(event.get("server") or "")
    return Text(" ").join(part for part in (Text(at, style="dim"), server, *_details(event)) if part)


def _details(event: Event) -> list[Text]:
    data = event.get("data") or {}
    match event.get("type"):
        case "hello":
            return [plain(f"connected, catalogue revision {event.get('revision', 0)}")]
        case "reset":
            return [plain("the daemon was started anew: what happened meanwhile is not known")]
        case "server_away" | "server_back" as kind:
            return [
                plain(kind.replace("_", " ")),
                plain(f"{data.get('tools', 0)} tools"),
                plain(data.get("reason", "")),
            ]
        case "tools_counted":
            return [plain(f"{data.get('tools', 0)} tools counted")]
        case "missed":
            return [plain(f"{event.get('count')} events were missed")]
        case "server_state":
            reason = plain(data.get("reason", ""))
            return [plain(data.get("previous", "")), Text("->"), state_text(data.get("state")), reason]
        case "discovery_completed":
            return [plain(f"discovered, {data.get('tools', 0)} tools"), plain("; ".join(data.get("problems") or []))]
        case "elicitation_asked" | "elicitation_ended" as kind:
            about = f"{data.get('about', '')}: a {data.get('kind', '')}, by its {data.get('asked', '')}"
            return [plain(kind.replace("_", " ")), plain(about), plain(data.get("action", ""))]
        case kind:
            return [plain(str(kind).replace("_", " ")), *_changes(data)]


def _changes(data: dict[str, Any]) -> list[Text]:
    """Return names that came, went or changed: `+added`, `-removed`, `~changed`, `old->new`."""
    renamed: dict[str, str] = data.get("renamed") or {}
    moved = {*renamed, *renamed.values()}
    changes: list[Text] = []
    for sign, member, style in (("+", "added", "green"), ("-", "removed", "red"), ("~", "changed", "yellow")):
        names = (name for name in data.get(member) or () if member == "changed" or name not in moved)
        changes += [Text(f"{sign}{plain(name)}", style=style) for name in names]
    return [*changes, *(Text(f"{plain(old)}->{plain(new)}", style="yellow") for old, new in renamed.items())]

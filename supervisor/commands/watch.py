"""`watch`: what happens in the daemon, as it happens, over the WebSocket `/api/events`.

Once connected it stays: when the daemon goes away it tries again, after 0.5 s at first and after 10 s at most, and goes
on where it has left off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import click
import trio
from rich.text import Text

from supervisor.commands.common import console, daemon_options, json_text, plain, run, say, state_text
from supervisor.daemon_client.client import DaemonUnreachable, RequestRefused
from supervisor.daemon_client.sockets import open_socket

EVENTS = "/api/events"
BACKOFF_INITIAL_S = 0.5
BACKOFF_MAX_S = 10.0
MAX_NAMES: Final = 20
"""In each list of names; of the others the number is shown."""
CALL: Final = "mcp.tool.executed"
_QUESTION: Final = ("{tool_name}", "plugin {plugin}", "a {kind}, by its {asked}", "/questions/{question_id}")
DETAILS: Final[Mapping[str, tuple[str, ...]]] = {
    "hello": ("version {version}", "catalogue revision {revision}"),
    "reset": ("some events are missing: a daemon was started or has ended, or they were too many",),
    "mcp.server.registered": (),
    "mcp.server.unregistered": (),
    "mcp.server.updated": (),
    "mcp.server.status_changed": ("{status_message}",),
    "mcp.server.instance_changed": ("instance {instance}", "{state}", "{status_message}"),
    "mcp.server.started": ("in {spawn_duration_ms:.0f} ms", "{tool_count} tools"),
    "mcp.server.restarted": ("in {spawn_duration_ms:.0f} ms", "{restart_reason}"),
    "mcp.server.respawned": ("in {respawn_duration_ms:.0f} ms", "slept {dormant_duration_seconds:.0f} s"),
    "mcp.server.dormant": ("unused for {idle_duration_seconds:.0f} s",),
    "mcp.server.crashed": ("{reason}", "crashes until now: {crash_count}"),
    "mcp.server.permanently_failed": ("{last_error}",),
    "mcp.server.away": ("{tool_count} tools", "{reason}"),
    "mcp.server.back": ("{tool_count} tools", "after {away_duration_seconds:.0f} s"),
    "mcp.breaker.opened": ("{breaker}", "{tool}", "for {seconds:.0f} s", "{reason}"),
    "mcp.breaker.closed": ("{breaker}", "{tool}"),
    "mcp.discovery.completed": ("{tool_count} tools",),
    "mcp.discovery.failed": ("{reason}",),
    "mcp.tools.discovered": ("{tool_count} tools", "{total_tokens} tokens"),
    "mcp.tools.updated": (),
    "mcp.tools.waiting": ("{waiting}",),
    "mcp.resources.updated": (),
    "mcp.prompts.updated": (),
    CALL: ("{tool_name}", "{outcome}", "{error_type}", "{response_time_ms:.0f} ms", "{user_id}", "{client_name}"),
    "mcp.elicitation.asked": _QUESTION,
    "mcp.elicitation.ended": (*_QUESTION[:3], "{action}"),
    "config.refreshed": ("{server_count} servers",),
    "config.error": ("{error_message}",),
    "plugin.disabled": ("{plugin}", "{hook}", "{reason}"),
    "plugin.recovered": ("{plugin}", "{hook}"),
    "security.auth.failed": ("{reason}", "{count} times", "{target}", "{user_id}", "{ip_address}"),
    "resource.limit.exceeded": ("{resource}", "{reason}"),
}
"""What is shown of each kind, out of its fields. A part whose field is not known is left out."""
_WORDS: Final = {"hello": "connected", "reset": "reset", CALL: "called"}
"""Those of a kind that are not its name."""
_SIGNS: Final = (("+", "added", "green"), ("-", "removed", "red"), ("~", "changed", "yellow"))

Event = dict[str, Any]


@click.command()
@daemon_options
@click.option("--calls", is_flag=True, help="Show each call of a tool, too.")
def watch(*, as_json: bool, url: str, calls: bool) -> None:
    """Show what happens to servers, tools, questions and the configuration, until Ctrl-C."""
    out, last = console(), ""

    def show(event: Event) -> None:
        nonlocal last
        last = event.get("id", last)
        if event.get("type") == CALL and not calls:
            return
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
    """Return an event as one line: the time, the server, what it is, and behind a colon what its kind says."""
    kind, data = str(event.get("type", "")), event.get("data") or event
    places = (plain(event.get("node") or ""), plain(data.get("server_slug") or ""))
    head = (_time(event), *places, *_words(kind, data))
    told = (*(plain(_fill(part, data)) for part in DETAILS.get(kind, ())), _changes(data), _problems(data))
    parts = (Text(" ").join(filter(None, head)), Text(", ").join(filter(None, told)))
    return Text(": ").join(filter(None, parts))


def _time(event: Event) -> Text:
    try:
        at = datetime.fromisoformat(event["timestamp"]).astimezone().strftime("%H:%M:%S")
    except (KeyError, TypeError, ValueError, OverflowError):
        at = " " * len("00:00:00")
    return Text(at, style="dim")


def _words(kind: str, data: Event) -> list[Text]:
    if kind == "mcp.server.status_changed":
        before, after = data.get("previous_status", ""), data.get("status", "")
        same = [state_text(after)] if before == after else [plain(before), Text("->"), state_text(after)]
        states = dict.fromkeys(filter(None, (data.get("previous_state"), data.get("state"))))
        return [*same, *([plain(f"({' -> '.join(map(str, states))})")] if states else [])]
    words = kind.removeprefix("mcp.").removeprefix("server.").replace(".", " ").replace("_", " ")
    return [plain(_WORDS.get(kind, words))]


def _fill(part: str, data: Event) -> str:
    try:
        return part.format_map(data)
    except (KeyError, TypeError, ValueError):
        return ""


def _problems(data: Event) -> Text:
    return plain("; ".join(data.get("problems") or ()))


def _changes(data: Event) -> Text:
    """Return names that came, went or changed: `+added`, `-removed`, `~changed`, `old->new`."""
    renamed: dict[str, str] = data.get("renamed_tools") or {}
    moved = {*renamed, *renamed.values()}
    names = [
        (f"{sign}{name}", style)
        for sign, member, style in _SIGNS
        for name in data.get(f"{member}_tools") or data.get(member) or ()
        if member == "changed" or name not in moved
    ]
    names += [(f"{old}->{new}", "yellow") for old, new in renamed.items()]
    names += [(name, "") for name in data.get("settings") or ()]
    names += [(f"{name} (when the daemon is started again)", "") for name in data.get("restart") or ()]
    names += [(name, "yellow") for name in data.get("tools") or () if isinstance(name, str)]
    more = [Text(f"and {len(names) - MAX_NAMES} more")] if len(names) > MAX_NAMES else []
    return Text(" ").join([*(Text(plain(name).plain, style=style) for name, style in names[:MAX_NAMES]), *more])

"""What the commands that ask a daemon share: its address, output for people and for pipes.

- Text of servers is shown without control characters, and never read as markup.
- Without a terminal there are no colours, and nothing is wrapped or cut; `NO_COLOR` is honoured by rich.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click
import trio
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from supervisor.bridge.address import DEFAULT_URL as DEFAULT_URL
from supervisor.bridge.address import read_address
from supervisor.commands.completion import complete_server
from supervisor.commands.outcomes import CommandFailed, NoDaemon
from supervisor.daemon_client.client import DaemonClient, DaemonUnreachable, RequestRefused, base_url, connect
from supervisor.metatools.texts import clean, escape
from supervisor.operations import NODES, Operation

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

PIPE_WIDTH = 10_000
_SPAN = re.compile(r"([1-9][0-9]{0,5})([mhdy])")
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "y": 365 * 86_400}


def _address(_: click.Context, __: click.Parameter, url: str | None) -> str | None:
    """Return the address as it was given. Raises `BadParameter` for what is none."""
    try:
        if url is not None:
            read_address(url)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return url


url_option = click.option(
    "--url",
    envvar="MCPVISOR_URL",
    default=DEFAULT_URL,
    metavar="URL",
    callback=_address,
    help="Address of the daemon, with or without /mcp; also MCPVISOR_URL.",
)
url_besides_option = click.option(
    "--url",
    envvar="MCPVISOR_URL",
    metavar="URL",
    callback=_address,
    help="Address of the daemon, if not that of the configuration; also MCPVISOR_URL.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


NODE = f"{__name__}.node"
"""Where the context of a command has the node that is to answer `ask`."""


def node_option(command: Command) -> Command:
    def keep(context: click.Context, _: click.Parameter, node: str) -> None:
        context.meta[NODE] = node

    told = "The node of a fleet that is asked, whichever is at the address; see mcpvisor nodes."
    option = click.option("--node", metavar="NAME", default="", expose_value=False, callback=keep, help=told)
    return option(command)


def daemon_options(command: Command) -> Command:
    return json_option(url_option(command))


servers_option = click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="SERVER",
    help="Belongs to this server; of several, to any.",
    shell_complete=complete_server,
)
server_argument = click.argument("server", metavar="SERVER", shell_complete=complete_server)


profile_option = click.option(
    "--profile", metavar="NAME", default="", show_default=False, help="See what a client of this profile sees."
)


def limit_option(what: str, default: int, most: int) -> Callable[[Command], Command]:
    return click.option(
        "--limit", type=click.IntRange(1, most), metavar="N", default=default, help=f"Most {what} to show."
    )


def timeout_option(default_s: float, least_s: float, help_text: str) -> Callable[[Command], Command]:
    seconds = click.FloatRange(least_s, 3600)
    return click.option("--timeout", "deadline_s", type=seconds, default=default_s, metavar="SECONDS", help=help_text)


STATE_STYLES = {
    "online": "green",
    "permanently_failed": "bold red",
    "error": "bold red",
    "offline": "red",
    "disabled": "dim",
    "per_user": "dim",
}


def run(question: Callable[[], Awaitable[T]]) -> T:
    """Run an async function to its end.

    Raises `NoDaemon`, `CommandFailed` if the daemon refuses, and `UsageError` for bytes that no request can have.
    """
    try:
        return trio.run(question)
    except DaemonUnreachable as error:
        raise NoDaemon(
            f"{error}\nStart one with: mcpvisor run --config FILE\n"
            "If it listens elsewhere, say where with --url or MCPVISOR_URL."
        ) from None
    except RequestRefused as error:
        raise CommandFailed(error.message) from None
    except UnicodeEncodeError:
        raise click.UsageError("an argument is not UTF-8") from None


def ask(
    url: str,
    question: Callable[[DaemonClient], Awaitable[T]],
    explain: Callable[[RequestRefused], str] = lambda error: error.message,
    *,
    warns: bool = True,
) -> T:
    """Return what a daemon answers. Raises `NoDaemon`, and `CommandFailed` if it refuses.

    Says on stderr that the daemon refuses its configuration, if it does and `warns`; that may be why it refuses.
    """

    context = click.get_current_context(silent=True)
    node = "" if context is None else context.meta.get(NODE, "")

    async def ask_daemon() -> T | RequestRefused:
        answer: T | RequestRefused
        async with connect(url, node) as daemon:
            try:
                if node and (await daemon.perform(NODES))["node"] != node:
                    raise RequestRefused(404, f"this daemon is alone: it is in no fleet that has a node {node!r}")
                answer = await question(daemon)
            except RequestRefused as error:
                answer = error
            if warns and (fault := await daemon.fault()):
                say(plain(f"note: the daemon's configuration is refused, all runs as before: {fault}").plain)
        return answer

    try:
        answer = run(ask_daemon)
        if isinstance(answer, RequestRefused):
            raise CommandFailed(explain(answer))
    except CommandFailed as error:
        if path := urlsplit(base_url(url)).path:
            advice = f"The address of a daemon is scheme, host and port; --url has {plain(path).plain} behind that."
            raise type(error)(f"{error.message}\n{advice}") from None
        raise
    return answer


def perform(
    url: str,
    operation: Operation,
    query: Mapping[str, Any] | None = None,
    *,
    body: Mapping[str, Any] | None = None,
    timeout_s: float = 0.0,
    warns: bool = True,
    **arguments: str,
) -> dict[str, Any]:
    """Return what a daemon answers to an operation. Raises, and `warns`, as `ask` does."""
    return ask(
        url,
        lambda daemon: daemon.perform(operation, query, body=body, timeout_s=timeout_s, **arguments),
        warns=warns,
    )


def say(text: str) -> None:
    click.echo(text, err=True)


def console(*, stderr: bool = False) -> Console:
    out = Console(stderr=stderr, highlight=False, emoji=False)
    if not out.is_terminal:
        out.width = PIPE_WIDTH  # a pipe has no edge: nothing is wrapped or cut
    return out


def print_table(out: Console, rows: RenderableType) -> None:
    """Print a table whose last column has texts, in a pipe without blanks that fill each line up to the longest."""
    if out.is_terminal:
        out.print(rows)
        return
    with out.capture() as captured:
        out.print(rows)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def below(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 4), expand=False)


def plain(text: object) -> Text:
    """Return text of a server as it may be shown on one line."""
    return Text(" ".join(clean(str(text)).split()))


def plain_line(text: object) -> Text:
    """Return a line of a server as it may be shown, with its indentation and what stands below each other."""
    return Text(clean(str(text)).replace("\n", " ").expandtabs().rstrip())


def state_text(state: object) -> Text:
    return Text(plain(state).plain, style=STATE_STYLES.get(str(state), "yellow"))


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return an empty table without lines, so that it can be read by eye and by `awk`."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        rows.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return rows


def print_json(value: Any) -> None:
    click.echo(json_text(value, indent=2))


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON in which everything can be seen: what a terminal might obey is escaped (RFC 8259, 7)."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return "\n".join(map(escape, text.split("\n")))


def duration(seconds: float) -> str:
    """Return a time in seconds in words such as `5s`, `3m`, `2h`, `4d`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def span_seconds(span: str) -> float | None:
    """Return how many seconds a span has that somebody wrote, such as `12h` or `90d`; None for what is none."""
    match = _SPAN.fullmatch(span)
    return float(int(match[1]) * _SECONDS[match[2]]) if match is not None else None


def moment_of(since: str) -> float | None:
    """Return a moment that somebody wrote in unix seconds, None for an empty text. Raises `UsageError`."""
    if not since:
        return None
    seconds = span_seconds(since)
    if seconds is not None:
        return max(0.0, time.time() - seconds)
    try:
        return max(0.0, datetime.fromisoformat(since).timestamp())
    except (ValueError, OverflowError, OSError):
        text = "--since takes a number with m, h, d or y behind it, such as 2h, or a date such as 2026-11-01"
        raise click.UsageError(text) from None


def readable(result: dict[str, Any]) -> str:
    """Return the text of a result; what is no text is named by type."""
    blocks = result.get("content")
    if not isinstance(blocks, list) or not blocks:
        return json_text(result, indent=2)
    return "\n".join(_block(block) for block in blocks if isinstance(block, dict))


def number(value: object) -> str:
    return "-" if value is None else f"{value}"


def size_text(count: float | None) -> str:
    """Return bytes in at most five characters: `812K`, `83M`, `1.2G`."""
    if count is None:
        return "-"
    if count < 1000:
        return f"{count:.0f}B"
    for unit in "KM":
        count /= 1024
        if count < 1000:
            return _in_unit(count, unit)
    return _in_unit(count / 1024, "G")


def _in_unit(count: float, unit: str) -> str:
    return f"{count:.0f}{unit}" if count >= 9.95 else f"{count:.1f}{unit}"


def _block(block: dict[str, Any]) -> str:
    if isinstance(block.get("text"), str):
        return clean(block["text"])
    name = block.get("uri") or block.get("mimeType") or ""
    return clean(f"[{block.get('type', 'unknown')} {name}]".replace(" ]", "]"))

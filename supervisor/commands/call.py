"""`call`: call one tool, as a model does with `execute_mcp_tool`."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

from supervisor.client import RequestRefused, connect
from supervisor.commands.common import ask, json_option, print_json, readable, url_option
from supervisor.commands.outcomes import EXIT_FAILED, CommandFailed
from supervisor.metatools.definitions import EXECUTE
from supervisor.metatools.texts import clean

MAX_ARGUMENT_CHARS = 4 * 1024 * 1024


@click.command()
@click.argument("tool", metavar="SERVER:TOOL")
@click.argument("arguments", metavar="[JSON]", required=False)
@json_option
@url_option
def call(*, tool: str, arguments: str | None, as_json: bool, url: str) -> None:
    """Call SERVER:TOOL with a JSON object of arguments, given or on stdin; exit 1 if it answers with an error."""
    given = _object(arguments if arguments is not None else _stdin())

    async def question() -> dict[str, Any]:
        async with connect(url) as daemon:
            return await daemon.call(EXECUTE, {"tool_path": tool, "arguments": given})

    try:
        result = ask(question)
    except RequestRefused as error:
        raise CommandFailed(_explained(error)) from None
    if as_json:
        print_json(result)
    else:
        click.echo(readable(result), err=bool(result.get("isError")))
    if result.get("isError"):
        sys.exit(EXIT_FAILED)


def _stdin() -> str:
    """Return what a pipe has; a terminal is not waited for."""
    return "" if sys.stdin.isatty() else sys.stdin.read(MAX_ARGUMENT_CHARS)


def _object(text: str) -> dict[str, msgspec.Raw]:
    """Return the members of the arguments, as they were written. Raises `click.UsageError`."""
    try:
        return msgspec.json.decode(text.strip() or "{}", type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise click.UsageError(f'the arguments are no JSON object such as \'{{"path": "/tmp"}}\': {error}') from None


def _explained(error: RequestRefused) -> str:
    """Return message and data of a JSON-RPC error for people."""
    lines = [f"{clean(error.message)} ({error.code})"]
    if error.data is not None:
        lines.append(clean(msgspec.json.format(msgspec.json.encode(error.data), indent=2).decode()))
    return "\n".join(lines)

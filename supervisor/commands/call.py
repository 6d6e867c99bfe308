"""`call`: call one tool, as a model does with `execute_mcp_tool`."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click
import msgspec

from actors.errors import InvalidArguments
from actors.protocol.asking.input_required import KIND, RESPONSES, STATE
from actors.protocol.wire import json
from actors.protocol.wire.repeated_keys import check_keys
from supervisor.commands import questions
from supervisor.commands.common import ask, daemon_options, json_text, print_json, profile_option, readable
from supervisor.commands.outcomes import EXIT_FAILED, CommandFailed
from supervisor.daemon_client.client import DaemonClient, RequestRefused
from supervisor.metatools.definitions import DISCOVER, EXECUTE
from supervisor.metatools.texts import clean

COMMANDS = {DISCOVER: "search", EXECUTE: "call"}
"""What people type in place of a tool that models have."""
OURS = frozenset({"invalid", "not_found", "ambiguous"})
"""Errors whose text tells what to search for; those of servers pass as they are."""
MAX_ARGUMENT_CHARS = 4 * 1024 * 1024


@click.command()
@click.argument("tool", metavar="SERVER:TOOL")
@click.argument("arguments", metavar="[JSON]", required=False)
@profile_option
@daemon_options
def call(*, tool: str, arguments: str | None, profile: str, as_json: bool, url: str) -> None:
    """Call SERVER:TOOL with an object of arguments in JSON.

    The arguments are the second word, or come on stdin. What needs an answer before the tool runs or goes on, a yes or
    a form, is asked on the terminal. The default of a yes or no is no, and Ctrl-D cancels.

    \b
    mcpvisor call time:get_current_time '{"timezone": "Asia/Tokyo"}'

    Exit 1 if the answer is an error, or if something was asked without a terminal.
    """
    _check(tool)
    wanted = {"tool_path": tool, "arguments": _object(arguments if arguments is not None else _stdin())}
    asked = questions.CAPABILITIES if questions.is_terminal() else None

    def result_of(retry: dict[str, Any] | None = None) -> dict[str, Any]:
        called = partial(DaemonClient.call, name=EXECUTE, arguments=wanted, asked=asked, retry=retry, profile=profile)
        return ask(url, called, _describe)

    result = result_of()
    while result.get("resultType") == KIND:
        given = questions.answers(result.get("inputRequests") or {})
        state = {STATE: result[STATE]} if STATE in result else {}  # what a server did not say, it is not told
        result = result_of({RESPONSES: given, **state})
    result.pop("resultType", None)
    if (waiting := _unanswered_questions(result)) is not None:
        raise CommandFailed(_refusal(tool, waiting))
    if as_json:
        print_json(result)
    else:
        click.echo(for_people(result), err=bool(result.get("isError")))
    if result.get("isError"):
        sys.exit(EXIT_FAILED)


def _check(tool: str) -> None:
    """Raise `click.UsageError` for what names no tool of a server."""
    if not tool.strip():
        raise click.UsageError("name the tool as SERVER:TOOL; mcpvisor search finds it")
    if tool.strip() in COMMANDS:
        raise click.UsageError(f"{tool.strip()} is for models; use mcpvisor {COMMANDS[tool.strip()]}")


def for_people(result: dict[str, Any]) -> str:
    """Return the text of a result; an error of ours tells its reader of a command, not of the tool that models have."""
    told = result.get("structuredContent")
    error = told.get("error") if result.get("isError") and isinstance(told, dict) else None
    if isinstance(error, dict) and error.get("type") in OURS:
        return readable(result).replace(DISCOVER, f"mcpvisor {COMMANDS[DISCOVER]}")
    return readable(result)


def _unanswered_questions(result: dict[str, Any]) -> dict[str, Any] | None:
    """Return the questions that a model would be told of by a result; None if it is one of the tool."""
    told = result.get("structuredContent")
    if not isinstance(told, dict) or told.get("status") != KIND:
        return None
    asks, state = told.get("questions"), told.get("continuation")
    # Imported here: a call without questions starts sooner without the catalogue.
    from supervisor.metatools.execution import PREFIX

    return asks if isinstance(asks, dict) and isinstance(state, str) and state.startswith(PREFIX) else None


def _refusal(tool: str, waiting: dict[str, Any]) -> str:
    messages = (clean(str(asks.get("message", ""))) for asks in waiting.values() if isinstance(asks, dict))
    asked = "\n".join(f"  {message}" for message in messages)
    return (
        f"{tool} needs an answer first, and there is no terminal here to ask on:\n{asked}\n"
        "Nobody has answered, so do not take it for done. Run this command in a terminal, with the arguments on the "
        "command line."
    )


def _stdin() -> str:
    """Return what a pipe has; a terminal is not waited for."""
    return "" if sys.stdin.isatty() else sys.stdin.read(MAX_ARGUMENT_CHARS)


def _object(text: str) -> dict[str, msgspec.Raw]:
    """Return the members of the arguments, as they were written. Raises `click.UsageError`."""
    try:
        check_keys(text.encode(errors="surrogatepass"))
    except InvalidArguments as error:
        raise click.UsageError(error.message) from None
    try:
        return json.read(json.MEMBERS, text.strip() or "{}")
    except json.UnreadableJson as error:
        raise click.UsageError(f'the arguments are no JSON object such as \'{{"path": "/tmp"}}\': {error}') from None


def _describe(error: RequestRefused) -> str:
    lines = [f"{clean(error.message)} ({error.code})"]
    if error.data is not None:
        lines.append(json_text(error.data, indent=2))
    return "\n".join(lines)

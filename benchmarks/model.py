"""A model that always does the same: it asks once for tools, reads what it is shown, and calls one tool for each need.

Which of the first rows is the right one it is told: how well it would choose is not what is measured. All the rest it
has from the text of the answers alone. Where a call is refused for its arguments it reads the schema in the error, or
asks for the tool by its path where there is none, and calls once more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from benchmarks.arguments import from_row, from_schema
from benchmarks.client import Tool as Call
from benchmarks.search import Query, ToolPath
from benchmarks.strict_server import RAN, REFUSED
from supervisor.metatools.definitions import DISCOVER, EXECUTE
from supervisor.metatools.servers import FITS

ROWS_LOOKED_AT = 5
SCHEMA = "inputSchema: "

Source = Literal["schema", "types", "names"]
"""What arguments were made from: a schema, a signature with types, one with names alone."""
Row = dict[str, Any]


class Said(msgspec.Struct, frozen=True):
    """What a model is shown of an answer, and whether the call failed."""

    text: str
    failed: bool = False

    @property
    def refused(self) -> bool:
        """Whether it is the arguments that were wrong."""
        return self.failed and (self.text.startswith(REFUSED) or "inputSchema" in self.text)

    def ran(self, path: str) -> bool:
        """Return whether a call ran this tool."""
        return not self.failed and self.text == f"{RAN}{path}"


class Need(msgspec.Struct, kw_only=True):
    """One need of a query and what became of it.

    `place` is the row of the right tool, 0 if there is none; `fits` whether that row says that it fits; `calls` those
    of the tool; `met` the call that was right, 0 if none was. `why` says why the first call was not.
    """

    paths: list[ToolPath]
    place: int = 0
    fits: bool = False
    source: Source | None = None
    calls: int = 0
    met: int = 0
    why: str = ""


class Outcome(msgspec.Struct, kw_only=True):
    """What became of a query: its needs, all calls through the gateway, and the tokens that the model read.

    `nothing`: no row of the answer says that it fits.
    """

    kind: str
    needs: list[Need]
    calls: int
    tokens: int
    nothing: bool
    log: list[str]


def said(answer: Any) -> Said:
    """Return what a model is shown of a JSON-RPC answer: the texts of a result, or the message of an error."""
    if "result" not in answer:
        return Said(str(answer.get("error", {}).get("message", "")), failed=True)
    blocks = answer["result"].get("content", [])
    return Said("\n".join(block.get("text", "") for block in blocks), failed=bool(answer["result"].get("isError")))


def rows_of(text: str) -> list[Row]:
    """Return the rows of tools in the text of a discover; none if it is no such answer."""
    try:
        return [row for row in json.loads(text)["tools"] if "tool_path" in row]
    except (ValueError, KeyError, TypeError):
        return []


def schema_in(text: str) -> dict[str, Any] | None:
    """Return the schema that an error's text shows; None if it shows none, or only its beginning."""
    schema = text.partition(SCHEMA)[2]
    try:
        value, _ = json.JSONDecoder().raw_decode(schema)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class Model:
    """Meets the needs of queries one after another. `send` calls a tool of the gateway, `count` counts tokens."""

    def __init__(self, send: Callable[[Call], Any], count: Callable[[str], int], limit: int = 10) -> None:
        self._send = send
        self._count = count
        self._limit = limit
        self._calls = self._tokens = 0
        self._log: list[str] = []

    def try_to_meet(self, query: Query) -> Outcome:
        """Ask for tools once, and call one for each need."""
        self._calls = self._tokens = 0
        self._log = [f"== {query.id} ({query.kind})"]
        rows = rows_of(self._ask(DISCOVER, {"query": query.query, "limit": self._limit}).text)
        needs = [self._try(Need(paths=list(group)), rows) for group in query.groups]
        nothing = not any(_fits(row) for row in rows)
        if not needs:
            self._log.append(f"-- no tool does this; {'nothing is' if nothing else 'something is'} said to fit")
        return Outcome(
            kind=query.kind, needs=needs, calls=self._calls, tokens=self._tokens, nothing=nothing, log=self._log
        )

    def _ask(self, name: str, arguments: dict[str, Any]) -> Said:
        self._log.append(f"> {name} {json.dumps(arguments, ensure_ascii=False)}")
        answer = said(self._send((name, arguments)))
        self._log.append(f"< {'(failed) ' if answer.failed else ''}{answer.text}")
        self._calls += 1
        self._tokens += self._count(answer.text)
        return answer

    def _try(self, need: Need, rows: Sequence[Row]) -> Need:
        """Call the first right tool of those that are looked at, at most twice."""
        wanted = {f"{server}:{name}" for server, name in need.paths}
        need.place = next((place for place, row in enumerate(rows, start=1) if row["tool_path"] in wanted), 0)
        if need.place:
            need.fits = _fits(rows[need.place - 1])
        if 0 < need.place <= ROWS_LOOKED_AT:
            self._call(need, rows[need.place - 1])
        else:
            need.why = "the tool is shown after the fifth row" if need.place else "the tool is not shown"
        self._log.append(f"-- {' or '.join(sorted(wanted))}: {f'met by call {need.met}' if need.met else need.why}")
        return need

    def _call(self, need: Need, row: Row) -> None:
        path: str = row["tool_path"]
        arguments, need.source = _arguments(row)
        answer = self._execute(need, path, arguments)
        if answer.ran(path):
            return
        need.why = _reason(answer, need.source)
        if answer.refused:
            schema = schema_in(answer.text) or (need.source != "schema" and self._asked_for(path)) or None
            better = from_schema(schema) if schema is not None else arguments
            if better != arguments:
                self._execute(need, path, better)

    def _execute(self, need: Need, path: str, arguments: dict[str, Any]) -> Said:
        answer = self._ask(EXECUTE, {"tool_path": path, "arguments": arguments})
        need.calls += 1
        if answer.ran(path):
            need.met = need.calls
        return answer

    def _asked_for(self, path: str) -> dict[str, Any] | None:
        """Return the schema of a tool that is asked for by its path."""
        rows = rows_of(self._ask(DISCOVER, {"query": path, "limit": 1}).text)
        return next((row.get("inputSchema") for row in rows if row["tool_path"] == path), None)


def _arguments(row: Row) -> tuple[dict[str, Any], Source]:
    """Return arguments by what a row shows, and what that was."""
    if "inputSchema" in row:
        return from_schema(row["inputSchema"]), "schema"
    arguments, typed = from_row(row)
    return arguments, "types" if typed else "names"


def _fits(row: Row) -> bool:
    """Say whether a row says that it fits; one after the first whose distance is not told does."""
    return bool(row.get("relevance_score", 0.0) < FITS)


def _reason(answer: Said, source: Source) -> str:
    """Say why a call did not do what it should."""
    shown = {"schema": "its schema", "types": "names and types only", "names": "names only"}[source]
    if answer.refused:
        return f"refused, the row shows {shown}"
    return "the call failed otherwise" if answer.failed else "another tool ran"

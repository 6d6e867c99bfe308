"""What a model reads of an answer of `discover_mcp_tools`: no more of it than a model uses. Pure.

A program gets the whole answer as structured content, and a client whose model gets that in place of the text gets none
(`discover_structured`). The text leaves out what a model does not need to choose a tool and to call it: server and
transport, as the path says whose a tool is; how many were found, in which time, by which query and in which revision of
the catalogue; hints that say that a tool destroys nothing. The distance is told of the first row, of each need, and
of those that hardly fit: between them the order says it. Where an id comes from is told once for each server and name.
Where a row has a signature, the description ends before a list of parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from supervisor.metatools.servers import FITS

_OF_PAGES: Final = frozenset({"total_found", "search_time_ms", "query", "catalog_revision"})
_OF_PATHS: Final = frozenset({"server_name", "transport"})
MODEL_READS_STRUCTURED: Final = frozenset(
    {"claude-code", "codex-mcp-client", "Visual Studio Code", "Visual Studio Code - Insiders"}
)
"""Clients, by the names they give, that show a model structured content where a result has any, and no text of it."""
_NEEDS: Final = "queries"
"""What a row has that is the first for another need."""
_SOURCES: Final = "ids_from"
_PARAMETERS: Final = re.compile(r"\n\s*(?:Args|Arguments|Parameters|Params):")
_SCORE: Final = "relevance_score"
_HINTS: Final = "annotations"


def lean(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer as a model reads it."""
    told = set[tuple[str, str]]()
    rows = [_row(row, told, first=not place or _NEEDS in row) for place, row in enumerate(answer["tools"])]
    return {**{name: value for name, value in answer.items() if name not in _OF_PAGES}, "tools": rows}


def _row(row: Mapping[str, Any], told: set[tuple[str, str]], *, first: bool) -> dict[str, Any]:
    """Return a row; `told` are the servers and ids of which a row above it says where they come from."""
    path = row.get("tool_path") or row.get("uri")
    made = {name: value for name, value in row.items() if path is None or name not in _OF_PATHS}
    score = made.pop(_SCORE, 0)
    if score >= FITS or (first and score):
        made[_SCORE] = score
    if "description" in row:
        text = _PARAMETERS.split(row["description"], 1)[0] if "signature" in row else ""
        made["description"] = " ".join((text or row["description"]).split())
    if "signature" in row:
        made["signature"] = _without_name(row["signature"], row["tool_path"])
    if _SOURCES in row:
        given = {name: tool for name, tool in row[_SOURCES].items() if (row["server_name"], name) not in told}
        told.update((row["server_name"], name) for name in given)
        made.pop(_SOURCES)
        if given:
            made[_SOURCES] = given
    if _HINTS in row:
        hints = row[_HINTS]
        del made[_HINTS]
        if hints.get("destructiveHint") and not hints.get("readOnlyHint"):
            made[_HINTS] = {"destructiveHint": True}
    return made


def _without_name(signature: str, path: str) -> str:
    """Return the parameters alone, if what stands before them is the name in the path."""
    name, _, _ = signature.partition("(")
    return signature.removeprefix(name) if path.endswith(f":{name}") else signature

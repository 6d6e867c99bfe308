"""Tools for the benchmarks' servers: made up with schemas as real servers have them, or read from files.

The made-up ones depend on nothing but their number. In size (a median of about 1.2 kB of JSON) they follow what a walk
over 70 published servers found.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec

VERBS = (
    "create",
    "list",
    "get",
    "update",
    "delete",
    "search",
    "send",
    "move",
    "copy",
    "archive",
    "export",
    "import",
    "merge",
    "assign",
    "schedule",
)
NOUNS = (
    "issue",
    "pull_request",
    "branch",
    "file",
    "message",
    "channel",
    "calendar_event",
    "contact",
    "invoice",
    "payment",
    "customer",
    "order",
    "product",
    "database_row",
    "table",
    "page",
    "block",
    "dashboard",
    "alert",
    "metric",
    "log_entry",
    "container",
    "image",
    "volume",
    "secret",
    "bucket",
    "object",
    "queue",
    "topic",
    "user",
    "group",
    "role",
    "policy",
    "deployment",
    "pipeline",
    "build",
    "test_run",
    "release",
    "note",
    "reminder",
    "task",
    "project",
    "board",
    "card",
)
DOMAINS = (
    "repository",
    "workspace",
    "account",
    "cluster",
    "project",
    "tenant",
    "organisation",
    "region",
)
TYPES: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "integer", "minimum": 0, "maximum": 1000},
    {"type": "boolean", "default": False},
    {"type": "array", "items": {"type": "string"}},
    {"type": "string", "enum": ["asc", "desc"]},
    {"type": "object", "properties": {"field": {"type": "string"}, "value": {"type": "string"}}, "required": ["field"]},
)
FIELDS = (
    "owner",
    "name",
    "id",
    "title",
    "body",
    "state",
    "labels",
    "cursor",
    "limit",
    "sort",
    "filter",
    "since",
    "until",
    "format",
    "path",
    "tags",
)


def made_up(servers: int, tools: int) -> dict[str, list[dict[str, Any]]]:
    """Return `tools` tools of distinct paths, spread evenly over `servers` servers."""
    by_server: dict[str, list[dict[str, Any]]] = {f"server{number:03}": [] for number in range(servers)}
    names = list(by_server)
    for number in range(tools):
        listed = by_server[names[number % servers]]
        listed.append(_tool(random.Random(number), len(listed)))
    return by_server


def _tool(chance: random.Random, place: int) -> dict[str, Any]:
    verb, noun, domain = chance.choice(VERBS), chance.choice(NOUNS), chance.choice(DOMAINS)
    thing = noun.replace("_", " ")
    fields = chance.sample(FIELDS, chance.randint(3, 10))
    text = f"{verb.capitalize()} a {thing} in the {domain}. Use it when the user wants to {verb} a {thing}"
    return {
        "name": f"{verb}_{noun}_{place}",
        "title": f"{verb.capitalize()} {thing}",
        "description": f"{text} by {fields[0]}. Returns the {thing} with its {', '.join(fields[1:4])}.",
        "inputSchema": {
            "type": "object",
            "properties": {
                field: {**chance.choice(TYPES), "description": f"The {field} of the {thing} within the {domain}"}
                for field in fields
            },
            "required": fields[:2],
            "additionalProperties": False,
        },
    }


def queries(count: int) -> list[str]:
    """Return what a model would ask for, the same ones each time."""
    chance = random.Random(7)
    shapes = ("{v} a {n}", "{v} {n}", "how do I {v} the {n} of a {d}", "{n}s in my {d}", "{v} {n} by title and state")
    return [
        chance.choice(shapes).format(
            v=chance.choice(VERBS), n=chance.choice(NOUNS).replace("_", " "), d=chance.choice(DOMAINS)
        )
        for _ in range(count)
    ]


def read(directory: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the tools of each `*.json` file: an array of tools, or an object with it as `tools`."""
    by_server: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(directory.glob("*.json")):
        content = msgspec.json.decode(path.read_bytes())
        by_server[path.stem] = content if isinstance(content, list) else content.get("tools", [])
    return by_server

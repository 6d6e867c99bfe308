"""The reference of all keys; `python -m supervisor.reference.configuration` prints a JSON Schema of them.

Everything comes from the fields of the structs, with what is written below them, and from the tables in `keys.py`.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, cast

import msgspec

from actors.catalogue.profiles import ViewProfile
from actors.catalogue.tool_rules import ToolRules
from actors.transport.stdio.command import INHERITED
from supervisor.config.entries.entry import ServerConfig
from supervisor.config.entries.oauth import OAuthConfig
from supervisor.config.structs import Settings
from supervisor.config.syntax.environment import VARIABLES, WITHOUT_EFFECT
from supervisor.config.syntax.keys import FOREIGN, TOP_LEVEL
from supervisor.config.syntax.values import keys_of


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head)]
    lines += [["---"] * len(lines[0]), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def descriptions(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return what is written below each field: Python forgets it, so it is read from the source."""
    (definition,) = ast.parse(inspect.getsource(struct)).body
    texts: dict[str, str] = {}
    for field, text in pairwise(cast("ast.ClassDef", definition).body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(written))):
                texts[name] = " ".join(written.split())
    return texts


def _settings_table(struct: type[msgspec.Struct]) -> str:
    keys, texts = keys_of(struct).values(), descriptions(struct)
    rows = ((f"`{key.name}`", key.expects, f"`{_default(key.default)}`", texts[key.name]) for key in keys)
    return table(("key", "takes", "default", "meaning"), rows)


def _default(value: object) -> str:
    """Return a default as the file would have it: `180`, not `180.0`; an object of defaults is empty."""
    if isinstance(value, msgspec.Struct):
        return "{}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return msgspec.json.encode(value).decode()


def blocks() -> dict[str, str]:
    """Return the generated tables by the name in their markers."""
    top = ((f"`{name}`", text) for name, text in TOP_LEVEL.items())
    foreign = ((f"`{key.name}`", key.written_by, key.treatment, key.effect) for key in FOREIGN.values())
    return {
        "top-level": table(("key", "meaning"), top),
        "supervisor": _settings_table(Settings),
        "server": _settings_table(ServerConfig),
        "oauth": _settings_table(OAuthConfig),
        "tools": _settings_table(ToolRules),
        "profiles": _settings_table(ViewProfile),
        "inherited": ", ".join(f"`{name}`" for name in INHERITED) + ".",
        "environment": table(("variable", "takes", "sets"), _variables()),
        "foreign": table(("key", "written by", "is", "effect"), foreign),
    }


def _variables() -> Iterator[tuple[str, str, str]]:
    deadlines = "`call_timeout_s` of `supervisor` and `discovery_timeout_s` of each server"
    yield "`MCP_TOOL_TIMEOUT`", "milliseconds; less than 5000 counts as 5000", deadlines
    for variable in VARIABLES:
        whose = "each server" if variable.of_servers else "`supervisor`"
        yield f"`{variable.name}`", variable.takes, f"`{variable.key}` of {whose}"
    yield "`PORT`, `HOST`", "a port, and the host before it", "`listen` of `supervisor`; `HOST` alone sets nothing"
    yield from ((f"`{name}`", "", f"nothing: {why}") for name, why in WITHOUT_EFFECT.items())


def schema() -> dict[str, Any]:
    settings, server = _members(Settings), _members(ServerConfig)
    settings["properties"]["profiles"] |= {"additionalProperties": _members(ViewProfile)}
    server["properties"]["oauth"] = {**_members(OAuthConfig), "additionalProperties": True}
    rules = server["properties"]["tools"]
    as_list = {"type": "array", "items": {"type": "string"}}
    server["properties"]["tools"] = {"anyOf": [_members(ToolRules), as_list], "description": rules["description"]}
    server["properties"] |= {key.name: {"description": key.effect} for key in FOREIGN.values()}
    entries = {"type": "object", "additionalProperties": server}
    known: dict[str, Any] = {"mcpServers": entries, "servers": entries, "supervisor": settings}
    properties = {name: {"description": text, **known.get(name, {})} for name, text in TOP_LEVEL.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mcpvisor configuration",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _members(struct: type[msgspec.Struct]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([struct])
    properties, texts = components[struct.__name__]["properties"], descriptions(struct)
    # `_comment` and `//` are how people comment JSON; a misspelt key is still underlined.
    return {
        "type": "object",
        "properties": {name: {**properties[name], "description": texts[name]} for name in keys_of(struct)},
        "patternProperties": {"^(_|//|#)": {}},
        "additionalProperties": False,
    }


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n")

"""What the index must know of a server: a document for each thing that it offers, with the sentences of people. Pure.

A tool is known to whoever has sentences by a digest, and by the names of its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, Literal

import msgspec

from actors.catalogue.metadata import is_superseded
from actors.catalogue.names import resource_path, tool_path
from actors.catalogue.offer import Item, Offer, Prompt, Skill, Tool
from actors.protocol.wire import json
from actors.search.document import Document, Kind

Source = Literal["", "file", "book", "model", "sampling"]
"""Where sentences come from: a file of the operator's, the phrase book, a model of the operator's, that of a client;
empty if there are none."""


class Said(msgspec.Struct, frozen=True, gc=False):
    """The sentences by which people ask for a tool, all of one source."""

    sentences: tuple[str, ...] = ()
    source: Source = ""


NOTHING_SAID: Final = Said()
Phrases = Callable[[str, Tool], Said]
"""Returns the sentences by which people ask for a tool of a server, as the server itself declares it."""

MAX_PARAMETERS = 60
_OF_SKILL = "#skill"
"""The end of the key of a skill: the first of its files may be listed as a resource, too."""
_MAX_NAME = 256


def no_phrases(server: str, tool: Tool) -> Said:
    """Know no sentence."""
    return NOTHING_SAID


def documents(server: str, offer: Offer, described: str = "", phrases: Phrases = no_phrases) -> list[Document]:
    """Return what the index must know of a server. `described`: what its operator says that it is for."""
    told = f"{described}\n{offer.instructions}" if described else offer.instructions
    others: tuple[Item, ...] = (*offer.resources, *offer.templates, *offer.prompts, *offer.skills)
    names = frozenset(tool.name for tool in offer.tools)
    tools = [
        document_of(
            server,
            tool,
            told,
            deprecated=is_superseded(tool, names),
            said=phrases(server, tool.own or tool).sentences,
        )
        for tool in offer.tools
    ]
    return tools + [document_of(server, item) for item in others]


def document_of(
    server: str, item: Item, instructions: str = "", *, deprecated: bool = False, said: tuple[str, ...] = ()
) -> Document:
    key, kind, name = _names(server, item)
    return Document(
        key=key,
        kind=kind,
        server=server,
        name=name,
        title=item.title,
        described=item.described if isinstance(item, Tool) else item.description,
        parameters=parameters_of(item) if isinstance(item, Tool) else (),
        instructions=instructions,
        said=said,
        deprecated=deprecated,
    )


def _names(server: str, item: Item) -> tuple[str, Kind, str]:
    match item:
        case Tool(name=name):
            return tool_path(server, name), "tool", name
        case Prompt(name=name):
            return f"{tool_path(server, name)}#prompt", "prompt", name
        case Skill(uri=uri, name=name):
            return f"{resource_path(server, uri)}{_OF_SKILL}", "skill", name
    return resource_path(server, item.uri), "template" if item.template else "resource", item.name or item.uri


def uri_of(document: Document) -> str:
    """Return what a document is read by, as `server|uri`: its key, but for a skill."""
    return document.key.removesuffix(_OF_SKILL) if document.kind == "skill" else document.key


def parameters_of(tool: Tool) -> tuple[tuple[str, str], ...]:
    """Return the parameters of a tool with their descriptions, those of nested objects one level deep.

    Read of the schema when an index is made: kept, they would be most of its text once more.
    """
    schema = json.read_or(json.VALUE, tool.input_schema, None)
    parts = _alternatives(schema) if isinstance(schema, dict) else ()
    return tuple(islice((each for part in parts for each in _parameters(part, 0)), MAX_PARAMETERS))


def _parameters(schema: dict[str, Any], depth: int) -> Iterable[tuple[str, str]]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, value in properties.items():
        declared = value if isinstance(value, dict) else {}
        described = declared.get("description")
        yield name[:_MAX_NAME], described[:1000] if isinstance(described, str) else ""
        for inner in (declared, declared.get("items")) if depth < 1 else ():
            if isinstance(inner, dict) and "properties" in inner:
                yield from _parameters(inner, depth + 1)


def _alternatives(schema: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield a schema, and those that it is a choice between or demands besides."""
    yield schema
    for keyword in ("anyOf", "oneOf", "allOf"):
        yield from (part for part in schema.get(keyword, ()) if isinstance(part, dict))


def digest_of(tool: Tool) -> bytes:
    """Return 16 bytes that stand for a tool's name, description and parameters: what tells which sentences fit it."""
    told = msgspec.json.encode([tool.name, tool.description, sorted(parameter_names(tool))])
    return blake2b(told, digest_size=16).digest()


def parameter_names(tool: Tool) -> frozenset[str]:
    """Return the names of a tool's parameters, those of nested objects included one level deep."""
    return frozenset(name for name, _ in parameters_of(tool))

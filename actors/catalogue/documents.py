"""What the index must know of a server: a document for each thing that it offers. Pure."""

from __future__ import annotations

from actors.catalogue.metadata import is_superseded
from actors.catalogue.names.naming import resource_path, tool_path
from actors.catalogue.offer import Item, Offer, Prompt, Tool
from actors.search.document import Document, Kind


def documents(server: str, offer: Offer, described: str = "") -> list[Document]:
    """Return what the index must know of a server. `described`: what its operator says that it is for."""
    told = f"{described}\n{offer.instructions}" if described else offer.instructions
    others: tuple[Item, ...] = (*offer.resources, *offer.templates, *offer.prompts)
    names = frozenset(tool.name for tool in offer.tools)
    tools = [document_of(server, tool, told, deprecated=is_superseded(tool, names)) for tool in offer.tools]
    return tools + [document_of(server, item) for item in others]


def document_of(server: str, item: Item, instructions: str = "", *, deprecated: bool = False) -> Document:
    key, kind, name = _names(server, item)
    return Document(
        key=key,
        kind=kind,
        server=server,
        name=name,
        title=item.title,
        description=item.description,
        parameters=item.parameters if isinstance(item, Tool) else (),
        instructions=instructions,
        deprecated=deprecated,
    )


def _names(server: str, item: Item) -> tuple[str, Kind, str]:
    match item:
        case Tool(name=name):
            return tool_path(server, name), "tool", name
        case Prompt(name=name):
            return f"{tool_path(server, name)}#prompt", "prompt", name
    return resource_path(server, item.uri), "template" if item.template else "resource", item.name or item.uri

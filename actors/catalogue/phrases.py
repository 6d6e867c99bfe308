"""What a tool is known by to whoever has sentences with which people ask for it. Pure."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from actors.catalogue.documents import parameters_of
from actors.catalogue.offer import Tool


def digest_of(tool: Tool) -> bytes:
    """Return 16 bytes that stand for a tool's name, description and parameters: what tells which sentences fit it."""
    told = msgspec.json.encode([tool.name, tool.description, sorted(parameter_names(tool))])
    return blake2b(told, digest_size=16).digest()


def parameter_names(tool: Tool) -> frozenset[str]:
    """Return the names of a tool's parameters, those of nested objects included one level deep."""
    return frozenset(name for name, _ in parameters_of(tool))

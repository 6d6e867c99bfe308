"""What changed between two discoveries of one server, by name and by field."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from actors.catalogue.names.renames import find_renames
from actors.catalogue.offer import Offer, Prompt, Resource, Tool

FIELDS = ("title", "description", "input_schema", "annotations", "meta", "uri", "mime_type")


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Names that came, went or stayed with another definition; `fields` says what differs in those.

    `renamed` has the new names of tools by their old ones; they are among those that came and went, too.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    fields: dict[str, tuple[str, ...]] = {}
    renamed: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class OfferChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change of each list of a server."""

    tools: Change = Change()
    resources: Change = Change()
    prompts: Change = Change()

    def __bool__(self) -> bool:
        return bool(self.tools or self.resources or self.prompts)


def compare(before: Offer, after: Offer) -> OfferChange:
    """Return what differs. Token counts and problems do not count as differences."""
    tools = _compare(_by_name(before.tools), _by_name(after.tools))
    return OfferChange(
        tools=replace(tools, renamed=find_renames(before.tools, after.tools)),
        resources=_compare(
            _by_uri((*before.resources, *before.templates)), _by_uri((*after.resources, *after.templates))
        ),
        prompts=_compare(_by_name(before.prompts), _by_name(after.prompts)),
    )


def _by_name(entries: tuple[Tool, ...] | tuple[Prompt, ...]) -> dict[str, Tool | Prompt | Resource]:
    return {entry.name: entry for entry in entries}


def _by_uri(entries: tuple[Resource, ...]) -> dict[str, Tool | Prompt | Resource]:
    return {entry.uri: entry for entry in entries}


def _compare(before: Mapping[str, Tool | Prompt | Resource], after: Mapping[str, Tool | Prompt | Resource]) -> Change:
    differing = {
        name: _fields(before[name], entry)
        for name, entry in after.items()
        if name in before and bytes(before[name].definition) != bytes(entry.definition)
    }
    return Change(
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        changed=tuple(sorted(differing)),
        fields=differing,
    )


def _fields(before: Tool | Prompt | Resource, after: Tool | Prompt | Resource) -> tuple[str, ...]:
    changed = [
        field
        for field in FIELDS
        if hasattr(after, field) and _plain(getattr(before, field)) != _plain(getattr(after, field))
    ]
    return tuple(changed) or ("definition",)


def _plain(value: str | msgspec.Raw) -> str | bytes:
    return bytes(value) if isinstance(value, msgspec.Raw) else value

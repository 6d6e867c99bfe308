"""What changed between two discoveries of one server, by name and by field."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from actors.catalogue.names.renames import find_renames
from actors.catalogue.offer import Item, Offer, key_of

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


class Revisions(msgspec.Struct, frozen=True):
    """Numbers that grow when a list changes, as a client can see it."""

    tools: int = 0
    resources: int = 0
    prompts: int = 0


def compare(before: Offer, after: Offer) -> OfferChange:
    """Return what differs. Token counts and problems do not count as differences."""
    tools = _compare(before.tools, after.tools)
    return OfferChange(
        tools=replace(tools, renamed=find_renames(before.tools, after.tools)),
        resources=_compare((*before.resources, *before.templates), (*after.resources, *after.templates)),
        prompts=_compare(before.prompts, after.prompts),
    )


def _compare(before: Sequence[Item], after: Sequence[Item]) -> Change:
    old, new = {key_of(entry): entry for entry in before}, {key_of(entry): entry for entry in after}
    differing = {
        name: _fields(old[name], entry)
        for name, entry in new.items()
        if name in old and old[name].definition != entry.definition
    }
    return Change(
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(sorted(differing)),
        fields=differing,
    )


def _fields(before: Item, after: Item) -> tuple[str, ...]:
    changed = [field for field in FIELDS if hasattr(after, field) and getattr(before, field) != getattr(after, field)]
    return tuple(changed) or ("definition",)

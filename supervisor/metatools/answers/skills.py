"""Skills as clients are shown them: under names of ours, with how the tools are that they name. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from actors.catalogue.documents import uri_of
from actors.catalogue.names.naming import split_resource, tool_path
from actors.catalogue.names.resolution import Resolution, Resolved, Unknown
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue
from actors.protocol.wire import json
from actors.search.document import Document
from supervisor.metatools.texts import clean

USABLE: Final = "usable"
NOT_NOW: Final = "not usable now"
MISSING: Final = "missing"
MAX_NAME_CHARS: Final = 100
_OF_CLIENT: Final = re.compile(r"[A-Z][A-Za-z]*")
"""`Bash` and `Read` are tools of whoever loads the skill: there is nothing to say of them."""


def tools_of(
    seen: Catalogue, document: Document, availability: Callable[[str, str], Mapping[str, Any]]
) -> dict[str, str]:
    """Return how the tools are that a skill names, by path, or as it writes them where there are none.

    A name is first one of the skill's own server. `availability` is what says why one cannot be called now.
    """
    entry = seen.entries[document.server]
    uri = (split_resource(uri_of(document)) or ("", ""))[1]
    skill = next((skill for skill in entry.skills_with(uri) if skill.uri == uri), None)
    told: dict[str, str] = {}
    for written in skill.tools if skill is not None else ():
        own = entry.tools.get(written) or entry.by_own_name.get(written)
        meaning: Resolution = Resolved(entry.server, own.name) if own is not None else seen.tool(written)
        if isinstance(meaning, Resolved):
            tool: Tool = seen.entries[meaning.server].tools[meaning.name]
            away = meaning.server not in seen.visible or availability(meaning.server, (tool.own or tool).name)
            told[clean(tool_path(meaning.server, meaning.name))] = NOT_NOW if away else USABLE
        elif not (isinstance(meaning, Unknown) and _OF_CLIENT.fullmatch(written)):
            told[clean(written[:MAX_NAME_CHARS])] = MISSING
    return told


def rename_skill(entry: Mapping[str, Any], name: Callable[[str], str]) -> dict[str, Any]:
    """Return the members of an entry of `skills/list` that have URIs, with these under other names."""
    files = json.read_or(json.ELEMENTS, entry["resources"], None)
    named: dict[str, Any] = {"uri": name(json.text_at(entry["uri"]))}
    if files is not None:
        named["resources"] = [_renamed(json.members(file), name) for file in files]
    return named


def _renamed(file: Mapping[str, msgspec.Raw], name: Callable[[str], str]) -> dict[str, Any]:
    return {**file, "uri": name(json.text_at(file.get("uri")))}

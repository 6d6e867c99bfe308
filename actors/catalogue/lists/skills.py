"""Entries of `skills/list` and `skills/get`: a skill and its files (SEP-2640, "Skill Entries"). Pure.

An entry that is not as the extension has it is refused whole: what a client loads by it would not be what was listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from actors.catalogue.offer import Skill
from actors.protocol.definitions import Skill as Entry
from actors.protocol.definitions import SkillResource
from actors.protocol.wire import json

MANIFEST: Final = "SKILL.md"
MAX_FILES: Final = 512
MAX_BYTES: Final = 16 * 1024 * 1024
"""Of all files of one skill together; both limits are those of the extension."""
MAX_URI_CHARS: Final = 8192
MAX_TOOLS: Final = 16
MAX_TOOL_CHARS: Final = 256

_entry: Final = msgspec.json.Decoder(Entry)
_LEADS_OUT: Final = re.compile(r"/\.{0,2}(?:/|$)|\\")
"""A backslash leads out where the host of a skill keeps it as files, and that is what stands between directories."""
_TOOL: Final = re.compile(r"([^\s,()]+)(?:\([^()]*\))?")
"""`Bash(git:*)` among `allowed-tools` is the tool `Bash`."""


class UnusableSkill(ValueError):
    """Why an entry is none; the text is for operators."""


def read_skill(definition: msgspec.Raw) -> Skill:
    """Return the skill of an entry that fits the schema. Raises `UnusableSkill`."""
    entry = json.read(_entry, definition)
    root = root_of(entry.uri)
    _check_uri(entry.uri)
    if root is None or root.rpartition("/")[2] != entry.frontmatter.name:
        raise UnusableSkill(f"its URI does not end with its name and {MANIFEST!r}")
    if entry.resources != "dynamic":
        _check_files(entry.uri, root, entry.resources)
    said = json.members(json.at(definition, "frontmatter")).get("allowed-tools")
    return Skill(
        uri=entry.uri,
        name=entry.frontmatter.name,
        description=entry.frontmatter.description,
        tools=tuple(dict.fromkeys(islice(_tools(said), MAX_TOOLS))),
        definition=definition,
    )


def root_of(uri: str) -> str | None:
    """Return the directory of a skill by the URI of its `SKILL.md`; None if it is none."""
    root, sign, name = uri.rpartition("/")
    return root if sign and name == MANIFEST else None


def files_of(skill: Skill) -> Mapping[str, SkillResource] | None:
    """Return the files of a skill by their URIs, none of them percent-encoded; None if they are made when read."""
    resources = json.read(_entry, skill.definition).resources
    return None if resources == "dynamic" else {unquote(file.uri): file for file in resources}


def _check_files(uri: str, root: str, files: list[SkillResource]) -> None:
    if len(files) > MAX_FILES or sum(file.size for file in files) > MAX_BYTES:
        raise UnusableSkill(f"it has more than {MAX_FILES} files, or {MAX_BYTES} bytes")
    named = {file.uri for file in files}
    if len({*map(unquote, named)}) < len(files) or uri not in named:
        raise UnusableSkill(f"its files are not each there once, or its {MANIFEST!r} is not among them")
    for each in named:
        _check_uri(each)
        if not each.startswith(f"{root}/") or _LEADS_OUT.search(unquote(each[len(root) :])):
            raise UnusableSkill(f"{each[:80]!r} is not in its directory")


def _check_uri(uri: str) -> None:
    if len(uri) > MAX_URI_CHARS or not unquote(uri).isprintable():
        raise UnusableSkill(f"a URI is over {MAX_URI_CHARS} characters or not printable")


def _tools(said: msgspec.Raw | None) -> Iterator[str]:
    """Yield the names of tools of `allowed-tools`, which is a text, or a list of texts."""
    value: Any = json.read_or(json.VALUE, said, None) if said is not None else None
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str):
            yield from (match[1] for match in _TOOL.finditer(text) if len(match[1]) <= MAX_TOOL_CHARS)

"""The reference of all keys; `python -m supervisor.reference.configuration` prints a JSON Schema of them.

Everything comes from the fields of the structs, with what is written above and below them, and from the tables in
`keys.py` and `settings_reader.py`.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Collection, Iterator
from itertools import groupby
from textwrap import fill, indent
from typing import Any, Final

import msgspec

from actors.catalogue.tool_rules import ToolRules
from actors.catalogue.views import ViewProfile
from actors.kit.documented import descriptions
from actors.transport.stdio.command import INHERITED
from supervisor.config.entry import OAuthConfig, SandboxConfig, ServerConfig
from supervisor.config.keys import FOREIGN, TOP_LEVEL, ForeignKey
from supervisor.config.sections import DescribeSettings, EventSink, FleetSettings, MemorySettings
from supervisor.config.settings import Settings
from supervisor.config.settings_reader import VARIABLES, WITHOUT_EFFECT
from supervisor.config.value_rules import ValueRule
from supervisor.config.values import MIB, Count, Key, PositiveSeconds, SandboxKind, Seconds, Size, expectation, keys_of
from supervisor.identity.people import Introspection, Issuer, People, Team, User
from supervisor.servers.reloading.difference import LIVE

WIDTH: Final = 130
SHORT: Final = {
    "seconds, 0 or more": (Seconds, " of seconds"),
    "seconds above 0": (PositiveSeconds, " of seconds"),
    "a size in bytes": (Size, " of bytes"),
    "a count": (Count, ""),
}
"""What the pages call a type that many keys have, with its unit."""
_TREATMENTS: Final = {
    "used": "Keys that have an effect",
    "renamed": "Other names of keys",
    "noted": "Keys without effect that are noted",
    "ignored": "Keys without effect",
}
"""The headings of keys that other programs write."""


def paragraph(text: str) -> str:
    """Return a text in lines that are not too long, also in an item of a list."""
    return fill(text, WIDTH - len("- "), break_long_words=False, break_on_hyphens=False)


def bullet(text: str) -> str:
    """Return an item of a list, in lines that are not too long."""
    return f"- {indent(paragraph(text), '  ').lstrip()}"


def headings(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the headings of a struct by the field that each stands above."""
    above = re.findall(r"^    # (.+)\n    (\w+): ", inspect.getsource(struct), re.MULTILINE)
    return {field: title for title, field in above}


def _settings(struct: type[msgspec.Struct], live: Collection[str] = ()) -> str:
    """Return an item for each key, below the headings of the struct; those in `live` are marked."""
    texts, titles = descriptions(struct), headings(struct)
    lines: list[str] = []
    for key in keys_of(struct).values():
        if key.name in titles:
            lines += [f"\n### {titles[key.name]}\n"]
        marks = ", ".join([_takes(key), f"default {_default(key)}", *(["live"] if key.name in live else [])])
        lines += [bullet(f"**`{key.name}`** ({marks}): {with_links(texts[key.name])}")]
    return "\n".join(lines).lstrip("\n")


def _takes(key: Key) -> str:
    words = key.expects
    for short, (type_, unit) in SHORT.items():
        words = words.replace(_in_full(type_, unit), short)
    return words


def _in_full(type_: Any, unit: str) -> str:
    return expectation(msgspec.inspect.type_info(type_), unit)


def with_links(text: str) -> str:
    """Return a text for a page in `docs/reference`, where names of pages are links."""
    return re.sub(r"`docs/(\w+)/([\w-]+)\.md`", lambda page: f"[{page[2]}]({_path(page)})", text)


def _path(page: re.Match[str]) -> str:
    return f"{page[2]}.md" if page[1] == "reference" else f"../{page[1]}/{page[2]}.md"


def _default(key: Key) -> str:
    """Return a default as the file would have it: `180`, not `180.0`; an object of defaults is empty."""
    value = key.default
    if isinstance(value, msgspec.Struct):
        return "`{}`"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    mebibytes = f" ({value // MIB} MiB)" if key.name.endswith("_bytes") and value and value % MIB == 0 else ""
    return f"`{msgspec.json.encode(value).decode()}`{mebibytes}"


def blocks() -> dict[str, str]:
    """Return the generated lists by the name in their markers."""
    return {
        "units": "\n".join(bullet(f"*{short}*: {_in_full(*full)}.") for short, full in SHORT.items()),
        "top-level": "\n".join(bullet(f"**`{name}`**: {text}") for name, text in TOP_LEVEL.items()),
        "supervisor": _settings(Settings, LIVE),
        "server": _settings(ServerConfig),
        "oauth": _settings(OAuthConfig),
        "sandbox": _settings(SandboxConfig),
        "tools": _settings(ToolRules),
        "identity": _settings(People),
        "user": _settings(User),
        "team": _settings(Team),
        "value": _settings(ValueRule),
        "issuer": _settings(Issuer),
        "introspection": _settings(Introspection),
        "profiles": _settings(ViewProfile),
        "sink": _settings(EventSink),
        "memory": _settings(MemorySettings),
        "describe": _settings(DescribeSettings),
        "fleet": _settings(FleetSettings),
        "inherited": paragraph(", ".join(f"`{name}`" for name in INHERITED) + "."),
        "environment": "\n".join(_variables()),
        "foreign": "\n".join(_foreign()).lstrip("\n"),
    }


def _variables() -> Iterator[str]:
    deadlines = "`call_timeout_s` of `supervisor` and `discovery_timeout_s` of each server"
    yield bullet(f"**`MCP_TOOL_TIMEOUT`** (milliseconds; less than 5000 counts as 5000) sets {deadlines}.")
    for variable in VARIABLES:
        whose = "each server" if variable.of_servers else "`supervisor`"
        yield bullet(f"**`{variable.name}`** ({variable.takes}) sets `{variable.key}` of {whose}.")
    yield bullet(
        "**`PORT`** (a port) sets `listen` of `supervisor`, with the host that **`HOST`** names, if that is set. "
        "`HOST` alone sets nothing."
    )
    for why, names in groupby(WITHOUT_EFFECT.items(), lambda each: each[1]):
        named = ", ".join(f"**`{name}`**" for name, _ in names)
        yield bullet(f"{named}: nothing; {why}.")


def _foreign() -> Iterator[str]:
    """Yield the keys by what becomes of them; those with the same effect are one item."""
    for treatment, title in _TREATMENTS.items():
        yield f"\n### {title}\n"
        same: dict[str, list[ForeignKey]] = {}
        for key in FOREIGN.values():
            if key.treatment == treatment:
                same.setdefault(key.effect, []).append(key)
        for effect, keys in same.items():
            yield bullet(f"{', '.join(f'**`{key.name}`** ({key.written_by})' for key in keys)}: {effect}")


def schema() -> dict[str, Any]:
    settings, server = _members(Settings), _members(ServerConfig)
    settings["properties"]["identity"] = _identity() | {"description": descriptions(Settings)["identity"]}
    settings["properties"]["profiles"] |= {"additionalProperties": _members(ViewProfile)}
    settings["properties"]["plugins"] |= {"additionalProperties": {"type": "object"}}
    settings["properties"]["fleet"] = _members(FleetSettings) | {"description": descriptions(Settings)["fleet"]}
    settings["properties"]["memory"] = _members(MemorySettings) | {"description": descriptions(Settings)["memory"]}
    settings["properties"]["describe"] = _members(DescribeSettings)
    settings["properties"]["describe"] |= {"description": descriptions(Settings)["describe"]}
    settings["properties"]["event_sinks"] |= {"items": _members(EventSink)}
    server["properties"]["oauth"] = {**_members(OAuthConfig), "additionalProperties": True}
    sandbox = server["properties"]["sandbox"]
    words = msgspec.json.schema(SandboxKind)
    server["properties"]["sandbox"] = {"anyOf": [_members(SandboxConfig), words], "description": sandbox["description"]}
    server["properties"]["values"] |= {"additionalProperties": _members(ValueRule)}
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


def _identity() -> dict[str, Any]:
    identity, provider, texts = _members(People), _members(Issuer), descriptions(Issuer)
    provider["properties"]["introspection"] = _members(Introspection) | {"description": texts["introspection"]}
    identity["properties"]["users"] |= {"additionalProperties": _members(User)}
    identity["properties"]["teams"] |= {"additionalProperties": _members(Team)}
    identity["properties"]["issuers"] |= {"items": provider}
    return identity


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

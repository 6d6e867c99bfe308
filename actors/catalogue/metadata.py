"""What is known of a tool beyond its definition: category, effects, safety, and what is wrong with it.

Rules:
- What a server declares wins over what its words suggest; `inferred` names what is only suggested.
- NEVER TRUSTED: declarations and words both come from the server, and a hostile one writes what it likes. This metadata
  is for showing, sorting and searching. What may be called is the operator's decision, not this module's.
- A declaration cannot make a tool look safer than its words do: `delete_all`, declared read-only, is `moderate`, needs
  confirmation, and has a finding.
- What an operator's plugin declares stands in the place of what the server does: its tags and category select, its
  hints judge. Words are the server's own, and so are the findings: they say what is wrong with what the server has.
- Nothing here raises, whatever a server sends.
Sources: MCP 2025-11-25, schema, `ToolAnnotations`; the inference rules are in `inference.py`, the findings' in
`findings.py`, both in docs/reference/metadata.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from actors.catalogue import inference, suspicions
from actors.catalogue.findings import (
    MAX_SCHEMA_BYTES,
    Finding,
    description_findings,
    duplicates,
    found,
    name_findings,
    quote,
    schema_findings,
    text_findings,
    texts,
)
from actors.catalogue.inference import Complexity, Effects
from actors.catalogue.lookalikes import Double
from actors.catalogue.marks import TWICE
from actors.catalogue.offer import Tool
from actors.protocol.definitions import Unfit, fit
from actors.protocol.wire import json
from actors.search.text import words

Safety = Literal["safe", "moderate", "dangerous"]

SAFETY: tuple[Safety, ...] = ("safe", "moderate", "dangerous")
"""From harmless to harmful."""
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_COMPLEXITIES: Mapping[str, Complexity] = {
    "simple": "simple",
    "moderate": "moderate",
    "medium": "moderate",
    "complex": "complex",
}
"""What a server may declare as `complexity`, and what it means here."""
_FROM_META = frozenset({"category", "complexity", "deprecated", "requiresConfirmation", "tags"})
MAX_TAGS = 16
_MAX_TAG_CHARS = 64
_MAX_TITLE_CHARS = 256


class Hints(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The effective hints, in JSON by MCP's names. None: neither declared nor suggested; MCP's default then applies."""

    title: str = ""
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one tool. `inferred` has the names of the fields and hints that the server did not declare."""

    category: str = inference.GENERAL
    complexity: Complexity = "simple"
    requires_auth: bool = False
    deprecated: bool = False
    safety: Safety = "moderate"
    requires_confirmation: bool = False
    annotations: Hints = Hints()
    inferred: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def judgement(self) -> Judgement:
        return Judgement(self.safety, self.requires_confirmation)

    @property
    def warnings(self) -> int:
        return sum(finding.severity == "warning" for finding in self.findings)


class _Definition(msgspec.Struct):
    input_schema: msgspec.Raw = msgspec.field(name="inputSchema", default=msgspec.Raw(b""))


class _Deprecation(msgspec.Struct):
    deprecated: Any = False


_definition = msgspec.json.Decoder(_Definition)
_NAMES = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_deprecation = msgspec.json.Decoder(_Deprecation)
_Declared = dict[str, Any]


def describe(server: str, tool: Tool) -> Metadata:
    """Return what is known of one tool by itself. Raises nothing."""
    declared, tool = _declarations(tool), tool.own or tool
    suggested = inference.effects(tool.name, tool.description)
    hints, inferred = _hints(tool, declared, suggested)
    large = memoryview(tool.input_schema).nbytes > MAX_SCHEMA_BYTES
    schema = {} if large else _schema(tool)
    found_category, found_complexity = _category(server, tool, declared), _complexity(tool, declared, schema)
    deprecated = declared.get("deprecated") is True or (isinstance(schema, dict) and schema.get("deprecated") is True)
    made = Metadata(
        category=found_category[0],
        complexity=found_complexity[0],
        requires_auth=inference.requires_auth(tool.name, tool.description),
        deprecated=deprecated or inference.deprecated(tool.name, tool.title, tool.description),
        safety=_safety(hints, suggested),
        requires_confirmation=_confirmation(hints, suggested, declared),
        annotations=hints,
        inferred=(*inferred, *found_category[1], *found_complexity[1]),
        findings=tuple(_findings(tool, _declarations(tool), suggested, schema, large=large)),
    )
    return replace(made, tags=_tags(made, declared))


class Judgement(NamedTuple):
    """How safe a tool seems, and whether its words or its server ask for a yes. The default: nothing is known of it."""

    safety: Safety = "dangerous"
    requires_confirmation: bool = True

    def reaches(self, level: Safety) -> bool:
        """Say whether a tool is of this level or a more harmful one."""
        return SAFETY.index(self.safety) >= SAFETY.index(level)


def judge(tool: Tool) -> Judgement:
    """Return what `describe` says of the safety of a tool, without the rest. Raises nothing."""
    declared, tool = _declarations(tool), tool.own or tool
    suggested = inference.effects(tool.name, tool.description)
    hints, _ = _hints(tool, declared, suggested)
    return Judgement(_safety(hints, suggested), _confirmation(hints, suggested, declared))


class Traits(NamedTuple):
    """What a tool is for, and how safe it seems. The default: nothing is known of it."""

    category: str = inference.GENERAL
    safety: Safety = "dangerous"


def traits(server: str, tool: Tool) -> Traits:
    """Return what `describe` says of these two, without the rest. Raises nothing."""
    return Traits(_category(server, tool.own or tool, _declarations(tool))[0], judge(tool).safety)


class Reading(NamedTuple):
    """What says of a tool that it only reads: its server, or a plugin of the operator, and its own words."""

    declared: bool = False
    worded: bool = False


def reading(tool: Tool) -> Reading:
    """Return who says that a tool only reads. Raises nothing."""
    declared, tool = _declarations(tool), tool.own or tool
    suggested = inference.effects(tool.name, tool.description)
    return Reading(declared.get("readOnlyHint") is True, suggested.read_only is True)


def describe_all(
    server: str, tools: Collection[Tool], lookalikes: Mapping[str, Sequence[Double]] = {}
) -> dict[str, Metadata]:
    """Return what is known of each tool of a server by name, with what it can be mistaken for, here and elsewhere."""
    known = {tool.name: describe(server, tool) for tool in tools}
    for tool in (tool for tool in tools if (tool.own or tool).name in lookalikes):
        finding = found("name-lookalike", quote(lookalikes[(tool.own or tool).name][0].path))
        known[tool.name] = replace(known[tool.name], findings=(*known[tool.name].findings, finding))
    for name, others in duplicates(known).items():
        finding = found("name-duplicate", ", ".join(quote(other) for other in others))
        known[name] = replace(known[name], findings=(*known[name].findings, finding))
    return known


def is_idempotent(tool: Tool) -> bool:
    """Say whether a tool declares that it changes nothing, or nothing more when it is called again."""
    said = _object(tool.annotations)
    return said.get("readOnlyHint") is True or said.get("idempotentHint") is True


def seems_to_read(tool: Tool) -> bool:
    """Say whether a tool only reads, by what it declares, else by its words."""
    own = tool.own or tool
    declared = _object(own.annotations).get("readOnlyHint")
    return declared if isinstance(declared, bool) else inference.effects(own.name, own.description).read_only is True


def is_superseded(tool: Tool, names: Collection[str]) -> bool:
    """Say whether a tool is not to be used any more for another one: its server declares it deprecated, or the
    description says so and names another tool of the server, which has tools of these `names`.

    One that only says it may speak of its whole server, and there is nothing to be used instead.
    """
    if b"deprecated" not in bytes(tool.definition).lower():
        return False
    if json.read_or(_deprecation, tool.input_schema, _Deprecation()).deprecated is True:
        return True
    if _declarations(tool).get("deprecated") is True:
        return True
    return inference.says_deprecated(tool.description) and bool(_named(tool, names))


def successors(tool: Tool, names: Collection[str]) -> frozenset[str]:
    """Return which other tools of its server a deprecated tool's description names; none if it is not deprecated.

    The server has tools of these `names`.
    """
    if b"deprecated" not in bytes(tool.definition).lower():
        return frozenset()
    is_deprecated = inference.deprecated(tool.name, tool.title, tool.description) or is_superseded(tool, names)
    return _named(tool, names) if is_deprecated else frozenset()


def _named(tool: Tool, names: Collection[str]) -> frozenset[str]:
    return frozenset(name for name in _NAMES.findall(tool.description) if name in names and name != tool.name)


def _declarations(tool: Tool) -> _Declared:
    """Return what the server declares: its annotations, and of `_meta` only what MCP has no annotation for."""
    meta = {key: value for key, value in _object(tool.meta).items() if key in _FROM_META}
    return {**meta, **_object(tool.annotations)}


def _object(raw: msgspec.Raw) -> _Declared:
    value = _decode(raw)
    return value if isinstance(value, dict) else {}


def _decode(raw: msgspec.Raw) -> Any:
    return json.read_or(json.VALUE, raw, None) if 0 < memoryview(raw).nbytes <= MAX_SCHEMA_BYTES else None


def _schema(tool: Tool) -> Any:
    """Return the input schema as the server wrote it: ours has a `type` even where the server forgot it."""
    declared = json.read_or(_definition, tool.definition, _Definition(tool.input_schema)).input_schema
    if bytes(declared) or bytes(tool.definition) not in (b"", b"{}"):
        return _decode(declared)
    return _decode(tool.input_schema)


def _hints(tool: Tool, declared: _Declared, suggested: Effects) -> tuple[Hints, tuple[str, ...]]:
    said = {name: declared[name] for name in HINTS if isinstance(declared.get(name), bool)}
    guessed: dict[str, bool | None] = {
        "readOnlyHint": suggested.read_only,
        "destructiveHint": suggested.destructive,
        "idempotentHint": suggested.idempotent,
    }
    if said.get("readOnlyHint"):  # MCP: the other two mean something only for tools that are not read-only
        guessed.update(destructiveHint=False, idempotentHint=None)
    elif said.get("destructiveHint"):
        guessed.update(readOnlyHint=False)
    title, own = _title(tool, declared)
    effective = {**guessed, **said}
    inferred = [name for name in HINTS if name not in said and effective.get(name) is not None]
    hints = Hints(
        title=title,
        read_only_hint=effective["readOnlyHint"],
        destructive_hint=effective["destructiveHint"],
        idempotent_hint=effective["idempotentHint"],
        open_world_hint=effective.get("openWorldHint"),
    )
    return hints, tuple(inferred if own else ["title", *inferred])


def _title(tool: Tool, declared: _Declared) -> tuple[str, bool]:
    """Return the title to show and whether the server gave it; else it is made of the name's words."""
    given = tool.title or _text(declared.get("title"), _MAX_TITLE_CHARS)
    return (given, True) if given else (" ".join(words(tool.name)).capitalize(), False)


def _text(value: object, limit: int) -> str:
    return value.strip() if isinstance(value, str) and value.isprintable() and len(value) <= limit else ""


def _category(server: str, tool: Tool, declared: _Declared) -> tuple[str, tuple[str, ...]]:
    given = _text(declared.get("category"), _MAX_TAG_CHARS).lower()
    if given:
        return given, ()
    return inference.category(server, tool.name, tool.description), ("category",)


def _complexity(tool: Tool, declared: _Declared, schema: Any) -> tuple[Complexity, tuple[str, ...]]:
    given = declared.get("complexity")
    if isinstance(given, str) and given in _COMPLEXITIES:
        return _COMPLEXITIES[given], ()
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return inference.complexity(tool.name, len(properties) if isinstance(properties, dict) else 0), ("complexity",)


def _safety(hints: Hints, suggested: Effects) -> Safety:
    if hints.destructive_hint:
        return "dangerous"
    return "safe" if hints.read_only_hint and not suggested.destructive else "moderate"


def _confirmation(hints: Hints, suggested: Effects, declared: _Declared) -> bool:
    asked = declared.get("requiresConfirmation") is True
    return asked or bool(hints.destructive_hint) or bool(suggested.destructive)


def _tags(made: Metadata, declared: _Declared) -> tuple[str, ...]:
    """Return the declared tags and those that follow from the rest, in order, each once."""
    given = declared.get("tags")
    own = [_text(tag, _MAX_TAG_CHARS).lower() for tag in given] if isinstance(given, list) else []
    hints = made.annotations
    derived = (
        (made.category, made.category != inference.GENERAL),
        ("read-only", hints.read_only_hint),
        ("destructive", hints.destructive_hint),
        ("idempotent", hints.idempotent_hint),
        ("open-world", hints.open_world_hint),
        ("requires-auth", made.requires_auth),
        ("deprecated", made.deprecated),
    )
    return tuple(sorted({*[tag for tag in own if tag][:MAX_TAGS], *[tag for tag, holds in derived if holds]}))


def _findings(tool: Tool, declared: _Declared, suggested: Effects, schema: Any, *, large: bool) -> Iterator[Finding]:
    yield from name_findings(tool.name)
    yield from description_findings(tool.description)
    yield from (found("schema-size", f"{memoryview(tool.input_schema).nbytes}"),) if large else schema_findings(schema)
    yield from () if large else _form_findings(tool)
    yield from _hint_findings(tool, declared, suggested)
    parts = [("the name", tool.name), ("the title", tool.title), ("the description", tool.description)]
    title = declared.get("title")
    parts += [("the annotated title", title)] if isinstance(title, str) else []
    told = [*text_findings([*parts, *(("the input schema", text) for text in texts(schema))])]
    yield from told
    known = {"name-confusable", *(finding.code for finding in told)}  # that one is told of the name above
    yield from (finding for finding in suspicions.findings_of(_whole(tool)) if finding.code not in known)
    if TWICE in tool.alarms:
        yield found(TWICE)


def _whole(tool: Tool) -> dict[str, Any]:
    """Return the definition as its server wrote it; what is known of the tool, where nobody wrote one."""
    written = json.read_or(json.VALUE, tool.definition, None)
    if isinstance(written, dict) and written:
        return written
    schema = json.read_or(json.VALUE, tool.input_schema, None)
    return {"name": tool.name, "title": tool.title, "description": tool.description, "inputSchema": schema}


def _form_findings(tool: Tool) -> Iterator[Finding]:
    with suppress(Unfit):  # nobody wrote it
        if faults := fit(tool.definition, "tools", "modern").faults:
            yield found("definition-form", "; ".join(faults))


def _hint_findings(tool: Tool, declared: _Declared, suggested: Effects) -> Iterator[Finding]:
    read_only, destructive = declared.get("readOnlyHint"), declared.get("destructiveHint")
    if read_only is True and destructive is True:
        yield found("hints-contradict")
    elif suggested.destructive and (read_only is True or destructive is False):
        yield found("hints-doubtful", quote(suggested.why))

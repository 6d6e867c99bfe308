"""Entries of lists held against the protocol's schema: one that fits stays as it was written, byte for byte. Pure.

Clients check what they are given, the official TypeScript SDK a list as a whole: one wrong member of one entry takes
all others from it. So what does not fit is put right where there is no doubt what was meant, and left out otherwise:

- `null` is what is not there, and an empty array an empty object (some languages know no other);
- `"true"` and `"12"` are what they spell, as the official Python SDK reads them; a word in other letters is that word;
- one value where several may stand is a list of it, and of several where one must stand it is the one that fits;
- the name of a type where a schema must stand is a schema of that type; a property of any other value may be anything;
- a required member that can only be one thing is that, whatever stands there: arguments are an object in any case.

What is made of a schema allows more than was written, never less: the server has the last word. So a list of schemas
that does not fit is left out as a whole, as it would allow less with an alternative less, and so is a `required` that
is a text. So are the files of a skill, which are all of them. What must be there and cannot be made leaves nothing of
its object. An entry of which nothing is left is `Unfit`.

The schema is `schema.ts` of the specification, 2025-11-25 and 2026-07-28, one struct an interface, under its names;
revisions before have fewer members, and pass over those that they do not know. A member that is not named here may be
anything. An optional one may be absent, never `null`. The schemas inside are those of JSON Schema: the metaschemas of
2020-12, with what draft 7 writes otherwise and servers still send (`items` as a list, `definitions`, `dependencies`).
Where a revision leaves more open than an official SDK does, the SDK is followed: `lastModified` is a time in RFC 3339
(TypeScript SDK 1.x and 2.x), and an `enum` has a value (Ajv, which that SDK compiles schemas of results with).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin
from urllib.parse import unquote

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from actors.protocol.agreement.versions import Era
from actors.protocol.listing import Kind
from actors.protocol.wire import json
from actors.protocol.wire.json import Members
from actors.protocol.wire.jsonrpc import encode

SimpleType = Literal["string", "number", "integer", "boolean", "object", "array", "null"]
Count = Annotated[float, Meta(ge=0)]
_TIME: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$"
MAX_PATTERN_CHARS: Final = 2000
_REFERENCES: Final = ("$ref", "$dynamicRef")
_LIMITS: Final = ("formatMinimum", "formatMaximum", "formatExclusiveMinimum", "formatExclusiveMaximum")
_BY_PATTERN: Final = ("patternProperties", "additionalProperties", "unevaluatedProperties")
_SUSPECT: Final = re.compile(
    rb'"(?:\$ref|\$dynamicRef|pattern|patternProperties|id|nullable|format(?:Exclusive)?M(?:in|ax)imum)"'
)
_PIECE: Final = re.compile(
    r"""\\(?:[dDwWsSbBnrtfv0^$\\.*+?()\[\]{}|/]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[pP]\{\w+(?:=\w+)?\})
    |\((?:\?(?::|=|!|<=|<!|<[A-Za-z]\w*>))?(?![*+?{])
    |\[\^?(?:\\(?:[dDwWsSbnrtfv0^$\\.*+?()\[\]{}|/\-]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[pP]\{\w+(?:=\w+)?\})|[^\\\]])*\]
    |(?:[*+?]|\{\d+(?:,\d*)?\})\??(?![*+?{])
    |[^\\\[\]{}()*+?]|\)""",
    re.VERBOSE,
)
_CLASS_OF_PROPERTY: Final = re.compile(r"\\[pP]\{[^}]*\}")
MAX_LEVELS: Final = 32
"""What does not fit deeper than that is left out: to find it, each level is read once more."""
MAX_FAULTS: Final = 4
MAX_SHOWN: Final = 40
_TEXTS: Final = msgspec.json.Decoder(list[str])
_EMPTY: Final = msgspec.Raw(b"{}")
_BOOLEANS: Final = {b"true": _EMPTY, b"false": msgspec.Raw(b'{"not":{}}')}
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_TYPES: Final = {
    word: kind
    for kind, words in {
        "integer": ("int", "int32", "int64", "long"),
        "number": ("float", "double", "decimal"),
        "string": ("str", "text"),
        "boolean": ("bool",),
        "array": ("list", "tuple"),
        "object": ("dict", "map"),
        "null": ("none",),
    }.items()
    for word in words
}
"""What languages call the types of JSON."""


class Anything(Struct, gc=False):
    """An object of any members."""


class Keywords(Struct, kw_only=True, gc=False):
    """The keywords of a schema whose values have a form, but for `properties`."""

    type: SimpleType | Annotated[list[SimpleType], Meta(min_length=1)] | UnsetType = UNSET
    required: list[str] | UnsetType = UNSET
    description: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    enum: Annotated[list[msgspec.Raw], Meta(min_length=1)] | UnsetType = UNSET
    items: Schema | Annotated[list[Schema], Meta(min_length=1)] | UnsetType = UNSET
    format: str | UnsetType = UNSET
    pattern: str | UnsetType = UNSET
    schema: str | UnsetType = field(name="$schema", default=UNSET)
    id: str | UnsetType = field(name="$id", default=UNSET)
    ref: str | UnsetType = field(name="$ref", default=UNSET)
    anchor: str | UnsetType = field(name="$anchor", default=UNSET)
    dynamic_ref: str | UnsetType = field(name="$dynamicRef", default=UNSET)
    dynamic_anchor: str | UnsetType = field(name="$dynamicAnchor", default=UNSET)
    comment: str | UnsetType = field(name="$comment", default=UNSET)
    defs: dict[str, Schema] | UnsetType = field(name="$defs", default=UNSET)
    definitions: dict[str, Schema] | UnsetType = UNSET
    allOf: Annotated[list[Schema], Meta(min_length=1)] | UnsetType = UNSET
    anyOf: Annotated[list[Schema], Meta(min_length=1)] | UnsetType = UNSET
    oneOf: Annotated[list[Schema], Meta(min_length=1)] | UnsetType = UNSET
    not_: Schema | UnsetType = field(name="not", default=UNSET)
    if_: Schema | UnsetType = field(name="if", default=UNSET)
    then: Schema | UnsetType = UNSET
    else_: Schema | UnsetType = field(name="else", default=UNSET)
    dependentSchemas: dict[str, Schema] | UnsetType = UNSET
    dependentRequired: dict[str, list[str]] | UnsetType = UNSET
    dependencies: dict[str, Schema | list[str]] | UnsetType = UNSET
    prefixItems: Annotated[list[Schema], Meta(min_length=1)] | UnsetType = UNSET
    contains: Schema | UnsetType = UNSET
    additionalItems: Schema | UnsetType = UNSET
    unevaluatedItems: Schema | UnsetType = UNSET
    patternProperties: dict[str, Schema] | UnsetType = UNSET
    additionalProperties: Schema | UnsetType = UNSET
    unevaluatedProperties: Schema | UnsetType = UNSET
    propertyNames: Schema | UnsetType = UNSET
    multipleOf: Annotated[float, Meta(gt=0)] | UnsetType = UNSET
    minimum: float | UnsetType = UNSET
    maximum: float | UnsetType = UNSET
    exclusiveMinimum: float | UnsetType = UNSET
    exclusiveMaximum: float | UnsetType = UNSET
    minLength: Count | UnsetType = UNSET
    maxLength: Count | UnsetType = UNSET
    minItems: Count | UnsetType = UNSET
    maxItems: Count | UnsetType = UNSET
    minContains: Count | UnsetType = UNSET
    maxContains: Count | UnsetType = UNSET
    minProperties: Count | UnsetType = UNSET
    maxProperties: Count | UnsetType = UNSET
    uniqueItems: bool | UnsetType = UNSET
    deprecated: bool | UnsetType = UNSET
    readOnly: bool | UnsetType = UNSET
    writeOnly: bool | UnsetType = UNSET
    examples: list[msgspec.Raw] | UnsetType = UNSET
    contentEncoding: str | UnsetType = UNSET
    contentMediaType: str | UnsetType = UNSET
    contentSchema: Schema | UnsetType = UNSET


class JsonSchema(Keywords, kw_only=True, gc=False):
    """A schema that is an object."""

    properties: dict[str, Schema] | UnsetType = UNSET


Schema = JsonSchema | bool


def _holding(*, named: bool) -> frozenset[str]:
    """Return the keywords whose value is schemas: under names of an author's, or one or a list of them."""
    fields = msgspec.structs.fields(JsonSchema)
    return frozenset(
        field.encode_name
        for field in fields
        if is_of_schemas(field.type) and any(get_origin(kind) is dict for kind in get_args(field.type)) is named
    )


def is_of_schemas(kind: object) -> bool:
    """Say whether a type is that of a schema, or has one somewhere inside."""
    return (isinstance(kind, type) and issubclass(kind, JsonSchema)) or any(map(is_of_schemas, get_args(kind)))


BY_NAME: Final = _holding(named=True)
HOLDING: Final = _holding(named=False)
"""Keywords that hold schemas: by names that an author chose, and one or a list of them."""


class ArgumentsSchema(JsonSchema, kw_only=True, gc=False):
    """`inputSchema`: a tool takes its arguments as an object, always."""

    type: Literal["object"]


class PlainObjectSchema(Keywords, kw_only=True, gc=False):
    """Revisions before 2026-07-28 have objects alone for arguments and results, and for their properties."""

    type: Literal["object"]
    properties: dict[str, JsonSchema] | UnsetType = UNSET


class Icon(Struct, kw_only=True, gc=False):
    """An icon, by its address."""

    src: str
    mimeType: str | UnsetType = UNSET
    sizes: list[str] | UnsetType = UNSET
    theme: Literal["light", "dark"] | UnsetType = UNSET


class Annotations(Struct, kw_only=True, gc=False):
    """What a resource is to its readers."""

    audience: list[Literal["user", "assistant"]] | UnsetType = UNSET
    priority: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    lastModified: Annotated[str, Meta(pattern=_TIME)] | UnsetType = UNSET


class ToolAnnotations(Struct, kw_only=True, gc=False):
    """What a tool says of its effects."""

    title: str | UnsetType = UNSET
    readOnlyHint: bool | UnsetType = UNSET
    destructiveHint: bool | UnsetType = UNSET
    idempotentHint: bool | UnsetType = UNSET
    openWorldHint: bool | UnsetType = UNSET


class ToolExecution(Struct, kw_only=True, gc=False):
    """How a tool can be called."""

    taskSupport: Literal["required", "optional", "forbidden"] | UnsetType = UNSET


class PromptArgument(Struct, kw_only=True, gc=False):
    """What a prompt is filled in with."""

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET


class _Entry(Struct, kw_only=True, gc=False):
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: Anything | UnsetType = field(name="_meta", default=UNSET)


class _Tool(_Entry, kw_only=True, gc=False):
    annotations: ToolAnnotations | UnsetType = UNSET
    execution: ToolExecution | UnsetType = UNSET


class Tool(_Tool, kw_only=True, gc=False):
    """`Tool`, since 2026-07-28; `execution` is of 2025-11-25 alone."""

    inputSchema: ArgumentsSchema
    outputSchema: JsonSchema | UnsetType = UNSET


class LegacyTool(_Tool, kw_only=True, gc=False):
    """`Tool` of earlier revisions."""

    inputSchema: PlainObjectSchema
    outputSchema: PlainObjectSchema | UnsetType = UNSET


class Resource(_Entry, kw_only=True, gc=False):
    """`Resource`."""

    uri: str
    mimeType: str | UnsetType = UNSET
    size: float | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET


class ResourceTemplate(_Entry, kw_only=True, gc=False):
    """`ResourceTemplate`."""

    uriTemplate: str
    mimeType: str | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET


class Prompt(_Entry, kw_only=True, gc=False):
    """`Prompt`."""

    arguments: list[PromptArgument] | UnsetType = UNSET


class SkillFrontmatter(Struct, kw_only=True, gc=False):
    """What a `SKILL.md` begins with; its author may have written more."""

    name: str
    description: str


class SkillResource(Struct, kw_only=True, gc=False):
    """`SkillResource`: one file of a skill, with its digest and its length in bytes."""

    uri: str
    digest: Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$")]
    size: Annotated[int, Meta(ge=0)]


class Skill(Struct, kw_only=True, gc=False):
    """`Skill` of the extension (SEP-2640), the same in all revisions. `resources` are all of its files, or none."""

    uri: str
    frontmatter: SkillFrontmatter
    resources: Literal["dynamic"] | list[SkillResource]


class EventType(Struct, kw_only=True, gc=False):
    """An entry of `events/list` (SEP-3415), the same in all revisions. Arguments and data are objects."""

    name: str
    description: str | UnsetType = UNSET
    delivery: Annotated[list[str], Meta(min_length=1)]
    inputSchema: ArgumentsSchema
    payloadSchema: ArgumentsSchema
    meta: Anything | UnsetType = field(name="_meta", default=UNSET)


class ListPage(Struct, kw_only=True, gc=False):
    """The result of a list, without its entries."""

    nextCursor: str | UnsetType = UNSET
    meta: Anything | UnsetType = field(name="_meta", default=UNSET)


ENTRIES: Final[dict[Era, dict[Kind, type[Struct]]]] = {
    "legacy": {
        "tools": LegacyTool,
        "resources": Resource,
        "templates": ResourceTemplate,
        "prompts": Prompt,
        "skills": Skill,
        "events": EventType,
    },
    "modern": {
        "tools": Tool,
        "resources": Resource,
        "templates": ResourceTemplate,
        "prompts": Prompt,
        "skills": Skill,
        "events": EventType,
    },
}


# Schemas of results as clients compile them ---------------------------------------------------------------------------


def compilable(schema: msgspec.Raw, faults: list[str]) -> msgspec.Raw:
    """Return a well-formed schema of results without what Ajv does not compile, the same object if there is nothing.

    What is left out is noted. The official TypeScript SDK 1.x compiles the schemas of all results when it reads a list,
    with Ajv: one that cannot be compiled takes the whole list from it (`cacheToolMetadata` of its client). Beyond its
    form a schema must then have references that lead somewhere inside of it, and patterns that are regular expressions
    of ECMAScript with the flag `u`; and neither `id` of draft 4 nor `nullable` of OpenAPI without a type. A keyword
    that breaks this is left out: the client checks less, and the server is the one to check its results.
    """
    if not _SUSPECT.search(bytes(schema)):
        return schema
    try:
        root = json.read(json.VALUE, schema)
        gone = [f"outputSchema: {keyword} left out" for keyword in _clean(root)]
    except (json.UnreadableJson, RecursionError):
        return schema
    faults += gone
    return msgspec.Raw(encode(root)) if gone else schema


def _clean(root: Any) -> Iterator[str]:
    """Leave out of a decoded schema what is not compiled; yield the keywords."""
    schemas = list(_schemas_in(root))
    bases = [root, *(schema for schema in schemas if "$id" in schema)]
    places = {
        *_texts(schemas, "$id"),
        *(f"#{name}" for name in (*_texts(schemas, "$anchor"), *_texts(schemas, "$dynamicAnchor"))),
    }
    for schema in schemas:
        gone: list[str] = [
            keyword for keyword in _REFERENCES if keyword in schema and not _leads(schema[keyword], bases, places)
        ]
        gone += ["pattern"] if "pattern" in schema and not is_ecmascript(schema["pattern"]) else []
        gone += ["id"] if "id" in schema else []
        gone += ["nullable"] if "nullable" in schema and "type" not in schema else []
        gone += [limit for limit in _LIMITS if limit in schema and "format" not in schema]
        if not all(map(is_ecmascript, schema.get("patternProperties", ()))):
            # What only those names allowed is allowed by none now, so nothing else may be refused.
            gone += [keyword for keyword in _BY_PATTERN if keyword in schema]
        for keyword in gone:
            del schema[keyword]
        yield from gone


def _schemas_in(root: Any) -> Iterator[dict[str, Any]]:
    """Yield each schema that is an object, outer ones first."""
    waiting = [root]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, list):
            waiting += schema
        if not isinstance(schema, dict):
            continue
        yield schema
        waiting += [schema[keyword] for keyword in HOLDING & schema.keys()]
        waiting += [each for keyword in BY_NAME & schema.keys() for each in schema[keyword].values()]


def _texts(schemas: list[dict[str, Any]], keyword: str) -> list[str]:
    return [schema[keyword] for schema in schemas if keyword in schema]


def _leads(reference: str, bases: list[Any], places: set[str]) -> bool:
    """Say whether a reference leads to a place in the schema: by a name, or by a pointer (RFC 6901) from a base."""
    base, _, fragment = reference.partition("#")
    if reference in places or reference in ("", "#"):
        return True
    if base and base not in places:
        return False
    parts = [part.replace("~1", "/").replace("~0", "~") for part in unquote(fragment).split("/")]
    return fragment[:1] in ("", "/") and any(_reaches(each, parts[1:]) for each in bases)


def _reaches(node: Any, parts: list[str]) -> bool:
    for part in parts:
        if isinstance(node, list) and part.isascii() and part.isdigit() and len(part) < 6 and int(part) < len(node):
            node = node[int(part)]
        elif isinstance(node, dict) and part in node:
            node = node[part]
        else:
            return False
    return isinstance(node, dict | bool)


def is_ecmascript(pattern: str) -> bool:
    """Say whether a regular expression surely is one of ECMAScript with the flag `u`; False where that is not clear."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return False
    at = 0
    while at < len(pattern):
        if (piece := _PIECE.match(pattern, at)) is None:
            return False
        at = piece.end()
    try:  # for brackets that do not match, ranges the wrong way round, and groups that are named twice
        re.compile(
            _CLASS_OF_PROPERTY.sub("a", pattern)
            .replace("(?<", "(?P<")
            .replace("(?P<=", "(?<=")
            .replace("(?P<!", "(?<!")
        )
    except (re.error, OverflowError, RecursionError):
        return False
    return True


_WHOLE: Final = (SimpleType, SkillResource)
"""Of these a list is left out as a whole: with one less it says something else."""
_NAMED_BY: Final[dict[type, tuple[str, ...]]] = {Resource: ("title", "uri"), ResourceTemplate: ("title", "uriTemplate")}
"""What stands for the name of what has none: it is told from others by its URI."""


class Unfit(ValueError):
    """Why nothing can be made of an entry; the text is for operators."""


class Fitted(msgspec.Struct, frozen=True):
    """What became of an entry. `faults` say what was put right or left out, but for `null` and what was just absent."""

    definition: msgspec.Raw
    faults: tuple[str, ...] = ()


def fit(definition: msgspec.Raw, kind: Kind, era: Era) -> Fitted:
    """Return an entry as clients of an era can take it, the same object if it is right. Raises `Unfit`."""
    faults: list[str] = []
    fitted = _Fitter(faults).make(ENTRIES[era][kind], definition, "", 0)
    if fitted is None:
        raise Unfit(faults[-1] if faults else f"it is {_shown(definition)}, no object")
    if kind == "tools" and b'"outputSchema"' in bytes(fitted):
        fitted = _with_compilable_results(fitted, faults)
    more = [f"and {len(faults) - MAX_FAULTS} more"] if len(faults) > MAX_FAULTS else []
    return Fitted(fitted, (*faults[:MAX_FAULTS], *more))


def fit_page(page: bytes) -> bytes:
    """Return the result of a list with members that are as the protocol has them, but for its entries; see `fit`."""
    written = msgspec.Raw(page)
    fitted = _Fitter([]).make(ListPage, written, "", 0)
    return page if fitted is None or fitted is written else bytes(fitted)


def _with_compilable_results(definition: msgspec.Raw, faults: list[str]) -> msgspec.Raw:
    members = json.read(json.MEMBERS, definition)
    schema = members.get("outputSchema")
    if schema is None or (made := compilable(schema, faults)) is schema:
        return definition
    return msgspec.Raw(encode({**members, "outputSchema": made}))


class _Fitter:
    """Fits one entry. `make` returns what is written if it fits, the same object; None if nothing can be made of it."""

    def __init__(self, faults: list[str]) -> None:
        self._faults = faults

    def make(self, kind: Any, raw: msgspec.Raw, path: str, level: int) -> msgspec.Raw | None:
        if json.read_or(_decoder(kind), raw, None) is not None:
            return raw
        if level > MAX_LEVELS:
            return None
        origin, of = get_origin(kind), get_args(kind)
        if origin is Annotated:
            made = self.make(of[0], raw, path, level)
            return made if made is not None and json.read_or(_decoder(kind), made, None) is not None else None
        if origin in (Union, UnionType):
            return self._one_of(of, raw, path, level)
        if origin is list:
            return self._list(of[0], raw, path, level)
        if origin is dict:
            return self._named(of[1], raw, path, level)
        if origin is Literal:
            return _word(of, raw)
        return self._object(kind, raw, path, level) if _is_struct(kind) else _spelled(kind, raw)

    def _noted(self, kind: Any, raw: msgspec.Raw, path: str, level: int) -> msgspec.Raw | None:
        """Make what stands at a path, and note if that is another value than is written."""
        known = len(self._faults)
        made = self.make(kind, raw, path, level + 1)
        if made is None or _sign(made) != _sign(raw) or _sign(raw) not in "{[":
            del self._faults[known:]
            if made is not raw:
                self._faults.append(f"{path}: {_shown(raw)} {'left out' if made is None else 'put right'}")
        return made

    def _one_of(self, kinds: tuple[Any, ...], raw: msgspec.Raw, path: str, level: int) -> msgspec.Raw | None:
        lists = [kind for kind in kinds if _is_list(kind)]
        others = [kind for kind in kinds if kind is not msgspec.UnsetType and not _is_list(kind)]
        for kind in lists if lists and _sign(raw) == "[" else (*others, *lists):
            if (made := self.make(kind, raw, path, level)) is not None:
                return made
        return None

    def _list(self, kind: Any, raw: msgspec.Raw, path: str, level: int) -> msgspec.Raw | None:
        elements = json.read_or(json.ELEMENTS, raw, None) if _sign(raw) == "[" else None
        if elements is None:
            one = None if _sign(raw) == "{" else self.make(kind, raw, path, level)
            return None if one is None else msgspec.Raw(encode([one]))
        made = [self._noted(kind, element, f"{path}[{at}]", level) for at, element in enumerate(elements)]
        if None in made and (kind in _WHOLE or is_of_schemas(kind)):
            return None
        return msgspec.Raw(encode([one for one in made if one is not None]))

    def _named(self, kind: Any, raw: msgspec.Raw, path: str, level: int) -> msgspec.Raw | None:
        members = json.read_or(json.MEMBERS, _object_for(raw), None)
        if members is None:
            return None
        made = {name: self._noted(kind, value, _below(path, name), level) for name, value in members.items()}
        otherwise = _EMPTY if is_of_schemas(kind) else None
        kept = {name: otherwise if value is None else value for name, value in made.items()}
        return msgspec.Raw(encode({name: value for name, value in kept.items() if value is not None}))

    def _object(self, kind: Any, raw: msgspec.Raw, path: str, level: int) -> msgspec.Raw | None:
        if _sign(raw) in "-0123456789n":
            return None
        is_schema = issubclass(kind, Keywords)
        members = json.read_or(json.MEMBERS, _schema_for(raw) if is_schema else _object_for(raw), None)
        if members is None:
            return None
        written = _without_draft_4(members) if is_schema else members
        known, needed = _fields(kind)
        made: Members = {}
        for name, value in written.items():
            if name not in known:
                made[name] = value
            elif _sign(value) == "n":
                self._faults += [f"{_below(path, name)}: null left out"] if is_schema and name not in needed else []
            elif is_schema and _sign(value) != "[" and _can_only_be_list(known[name]):
                self._faults.append(f"{_below(path, name)}: {_shown(value)} left out")
            elif (fitted := self._noted(known[name], value, _below(path, name), level)) is not None:
                made[name] = fitted
        for name in needed:
            if name in made:
                continue
            absent = name not in written or _sign(written[name]) == "n"
            other = _only(known[name]) if absent or get_origin(known[name]) is Literal else None
            if name == "name":
                other = next((made[other] for other in _NAMED_BY.get(kind, ()) if other in made), None)
            if other is None:
                self._faults.append(
                    f"{_below(path, name)} is {_shown(written[name]) if name in written else 'missing'}"
                )
                return None
            made[name] = other
        return msgspec.Raw(encode(made))


@cache
def _only(kind: Any) -> msgspec.Raw | None:
    """Return the one value that there is of a kind where nothing is written; None if there are others, or none."""
    of = get_args(kind)
    if get_origin(kind) is Literal and len(of) == 1:
        return msgspec.Raw(encode(of[0]))
    return _Fitter([]).make(kind, _EMPTY, "", 0) if _is_struct(kind) else None


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


# Lists are read in threads, and two that make msgspec look into the same struct for the first time end the process (a
# segmentation fault, msgspec 0.22): it is complete as soon as one has. So that is here, where there is one.
for _kind in (ListPage, *(kind for entries in ENTRIES.values() for kind in entries.values())):
    _decoder(_kind)


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the types of the members of an object, by the names that they have in JSON, and which must be there."""
    fields = msgspec.structs.fields(kind)
    needed = tuple(field.encode_name for field in fields if field.required)
    return {field.encode_name: field.type for field in fields}, needed


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _is_list(kind: Any) -> bool:
    of = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return get_origin(of) is list


@cache
def _can_only_be_list(kind: Any) -> bool:
    return all(_is_list(each) for each in get_args(kind) if each is not msgspec.UnsetType)


def _word(words: tuple[str, ...], raw: msgspec.Raw) -> msgspec.Raw | None:
    """Return the word that is meant: in other letters, as other languages name a type, or the one of several."""
    several = json.read_or(_TEXTS, raw, None) if _sign(raw) == "[" else None
    if several is not None:
        known = [word for word in several if word in words]
        return msgspec.Raw(encode(known[0])) if len(known) == 1 else None
    written = json.read_or(json.STRING, raw, "")[:MAX_SHOWN].strip().lower()
    meant = written if written in words else _TYPES.get(written)
    return msgspec.Raw(encode(meant)) if meant in words else None


def _spelled(kind: type, raw: msgspec.Raw) -> msgspec.Raw | None:
    text = json.read_or(json.STRING, raw, "").strip() if _sign(raw) == '"' else ""
    if kind is bool and text.lower() in ("true", "false"):
        return msgspec.Raw(text.lower().encode())
    return msgspec.Raw(text.encode()) if kind is float and _NUMBER.fullmatch(text) else None


def _sign(raw: msgspec.Raw) -> str:
    """Return the first character of a value, which says what it is; without a copy of it, as it may be long."""
    return chr(memoryview(raw)[0]) if len(raw) else "\0"


def _object_for(raw: msgspec.Raw) -> msgspec.Raw:
    return _EMPTY if _sign(raw) == "[" and json.read_or(json.ELEMENTS, raw, None) == [] else raw


def _schema_for(raw: msgspec.Raw) -> msgspec.Raw:
    if _sign(raw) in "tf":
        return _BOOLEANS[bytes(raw)]
    named = _word(get_args(SimpleType), raw) if _sign(raw) == '"' else None
    return _object_for(raw) if named is None else msgspec.Raw(encode({"type": named}))


def _without_draft_4(members: Members) -> Members:
    """Return a schema with limits as they are since draft 6: before, `true` said that a limit itself is left out."""
    made = dict(members)
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if (written := bytes(members.get(exclusive, b""))) not in _BOOLEANS:
            continue
        del made[exclusive]
        if written == b"true" and limit in made:
            made[exclusive] = made.pop(limit)
    if made != members and b"draft-0" in bytes(made.get("$schema", b"")):
        del made["$schema"]
    return made


def _below(path: str, name: str) -> str:
    shown = ascii(name[:MAX_SHOWN])[1:-1]
    return f"{path}.{shown}" if path else shown


def _shown(raw: msgspec.Raw) -> str:
    """Return the beginning of what is written, in printable ASCII."""
    shown = ascii(bytes(raw)[: MAX_SHOWN + 1].decode(errors="replace"))[1:-1]
    return shown if len(shown) <= MAX_SHOWN else f"{shown[: MAX_SHOWN - 3]}..."

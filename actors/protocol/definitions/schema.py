"""The protocol's own schema of the entries of lists, as types: what a strict client takes. Pure.

`schema.ts` of the specification, 2025-11-25 and 2026-07-28, one struct an interface, under its names; revisions before
have fewer members, and pass over those that they do not know. A member that is not named here may be anything. An
optional one may be absent, never `null`. The schemas inside are those of JSON Schema: the metaschemas of 2020-12, with
what draft 7 writes otherwise and servers still send (`items` as a list, `definitions`, `dependencies`).

Where a revision leaves more open than an official SDK does, the SDK is followed: `lastModified` is a time in RFC 3339
(TypeScript SDK 1.x and 2.x), and an `enum` has a value (Ajv, which that SDK compiles schemas of results with).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from actors.protocol.agreement.versions import Era
from actors.protocol.listing import Kind

SimpleType = Literal["string", "number", "integer", "boolean", "object", "array", "null"]
Count = Annotated[float, Meta(ge=0)]
_TIME: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$"


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

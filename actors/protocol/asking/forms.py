"""Forms of servers, read to be filled in by a person: their fields, what may be in them, and what is wrong. Pure.

(MCP 2025-11-25, client/elicitation "Requested Schema": an object of primitive properties, without nesting.) A file is a
string whose `contentEncoding` is base64 (JSON Schema 2020-12, 8.3). Anything else is taken as JSON.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from actors.protocol.agreement.capabilities import URL, mode_of
from actors.protocol.wire import json

FieldKind = Literal["text", "file", "number", "integer", "boolean", "select", "multiselect", "json"]
FormKind = Literal["confirmation", "text", "secret", "file", "number", "select", "multiselect", "form", "url"]

MAX_MESSAGE_CHARS: Final = 4000
MAX_FIELDS: Final = 200
MAX_CHOICES: Final = 1000
"""Of all fields together."""
MAX_TITLE_CHARS: Final = 500
MAX_DEFAULT_BYTES: Final = 8192
"""A larger one is left out: whoever answers fills it in."""
_SECRETS: Final = (
    *("passw", "passphrase", "pwd", "secret", "token", "apikey", "credential", "privatekey", "onetime"),
    *("securitycode", "verificationcode", "accesscode", "recoverycode"),
)
"""In small letters, however their words are put together. To search for one is many times as fast as for a pattern."""
_SHORT_SECRETS: Final = ("pin", "otp", "cvv", "cvc")
_SHORT_SECRET = re.compile(r"(?<![a-z])(?:pin|otp|cv[vc])(?:code|number)?(?![a-z])")
"""Words of their own."""
_NAMED: Final[dict[FieldKind, FormKind]] = {
    "boolean": "confirmation",
    "text": "text",
    "file": "file",
    "number": "number",
    "integer": "number",
    "select": "select",
    "multiselect": "multiselect",
}
"""What a form is called that has one field of this kind."""


class Choice(msgspec.Struct, frozen=True):
    """One of several values, and what a person is shown of it; the value itself where that is empty."""

    const: str
    title: str = ""


class _Items(msgspec.Struct):
    enum: list[str] = []
    any_of: list[Choice] = msgspec.field(name="anyOf", default_factory=list)


_Count = Annotated[int, msgspec.Meta(le=2**53)]
"""Nothing that a person fills in has more."""


class _Property(msgspec.Struct):
    type: Any = ""
    title: str = ""
    description: str = ""
    format: str = ""
    default: msgspec.Raw = msgspec.Raw(b"null")
    enum: list[str] = []
    enum_names: list[str] = msgspec.field(name="enumNames", default_factory=list)
    one_of: list[Choice] = msgspec.field(name="oneOf", default_factory=list)
    items: _Items = msgspec.field(default_factory=_Items)
    write_only: bool = msgspec.field(name="writeOnly", default=False)
    encoding: str = msgspec.field(name="contentEncoding", default="")
    min_length: _Count = msgspec.field(name="minLength", default=0)
    max_length: _Count | None = msgspec.field(name="maxLength", default=None)
    minimum: float | None = None
    maximum: float | None = None
    min_items: _Count = msgspec.field(name="minItems", default=0)
    max_items: _Count | None = msgspec.field(name="maxItems", default=None)


class _Schema(msgspec.Struct):
    properties: dict[str, msgspec.Raw] = {}
    required: list[str] = []


class _Params(msgspec.Struct):
    message: str = ""
    url: str = ""
    schema: _Schema = msgspec.field(name="requestedSchema", default_factory=_Schema)


_params = msgspec.json.Decoder(_Params)
_property = msgspec.json.Decoder(_Property)


class FormField(msgspec.Struct, frozen=True):
    """One field. `format` is JSON Schema's; bounds are of characters, of a number, or of how many are chosen.

    `secret`: only its server may see what is filled in.
    """

    name: str
    kind: FieldKind
    secret: bool = False
    title: str = ""
    description: str = ""
    format: str = ""
    required: bool = False
    default: Any = None
    choices: tuple[Choice, ...] = ()
    least: float | None = None
    most: float | None = None


class Form(msgspec.Struct, frozen=True):
    """What a person is asked: fields to fill in, or an address to open."""

    message: str
    fields: tuple[FormField, ...] = ()
    url: str = ""

    @property
    def kind(self) -> FormKind:
        if self.url:
            return "url"
        if len(self.fields) == 1 and self.fields[0].secret:
            return "secret"
        return _NAMED.get(self.fields[0].kind, "form") if len(self.fields) == 1 else "form"

    @property
    def wants_a_yes(self) -> bool:
        """Whether it is a question of yes or no; nothing else has to be said beside it."""
        return (
            bool(self.fields)
            and self.fields[0].kind == "boolean"
            and not any(each.required for each in self.fields[1:])
        )

    @property
    def is_secret(self) -> bool:
        """Whether any field is for the server's eyes only: a password, a key."""
        return any(field.secret for field in self.fields)


def read(params: msgspec.Raw) -> Form | None:
    """Return the form of an elicitation; None if it cannot be read, or is too large to be shown."""
    try:
        given = json.read(_params, params)
        properties = given.schema.properties
        if len(properties) > MAX_FIELDS:
            return None
        required = frozenset(given.schema.required)
        fields = tuple(_field(name, raw, name in required) for name, raw in properties.items())
    except json.UnreadableJson:
        return None
    if sum(len(field.choices) for field in fields) > MAX_CHOICES:
        return None
    url = given.url if mode_of(params) == URL else ""
    return Form(given.message[:MAX_MESSAGE_CHARS], () if url else fields, url)


def is_secret(params: msgspec.Raw) -> bool:
    """Say whether a form asks for something that only the server may see. What cannot be read is taken to be that."""
    form = read(params)
    return form is None or form.is_secret


def _field(name: str, raw: msgspec.Raw, required: bool) -> FormField:
    if (given := json.read_or(_property, raw, None)) is None:  # who knows what it is
        return FormField(name, "json", secret=True, required=required)
    kind = _kind(given)
    least: float | None = given.minimum
    most: float | None = given.maximum
    if kind == "multiselect":
        least, most = given.min_items, given.max_items
    elif kind == "text":
        least, most = given.min_length, given.max_length
    return FormField(
        name=name,
        kind=kind,
        secret=kind != "boolean" and _is_secret(name, given),
        title=given.title[:MAX_TITLE_CHARS],
        description=given.description[:MAX_MESSAGE_CHARS],
        format=given.format,
        required=required,
        default=json.read(json.VALUE, given.default) if len(given.default) <= MAX_DEFAULT_BYTES else None,
        choices=_choices(given),
        least=least,
        most=most,
    )


def _is_secret(name: str, given: _Property) -> bool:
    if given.write_only or given.format == "password" or len(name) > MAX_TITLE_CHARS:
        return True
    return is_secret_name(f"{name} {given.title[:MAX_TITLE_CHARS]} {given.description[:MAX_MESSAGE_CHARS]}")


def is_secret_name(name: str) -> bool:
    """Say whether a name, or the words beside it, say that a value is a secret."""
    shown = name.lower()
    joined = shown.replace(" ", "").replace("_", "").replace("-", "")
    if any(word in joined for word in _SECRETS):
        return True
    return any(word in shown for word in _SHORT_SECRETS) and _SHORT_SECRET.search(shown) is not None


def _kind(given: _Property) -> FieldKind:
    match given.type:
        case "string" if given.enum or given.one_of:
            return "select"
        case "string":
            return "file" if given.encoding == "base64" else "text"
        case "boolean":
            return "boolean"
        case "integer":
            return "integer"
        case "number":
            return "number"
        case "array" if given.items.enum or given.items.any_of:
            return "multiselect"
    return "json"


def _choices(given: _Property) -> tuple[Choice, ...]:
    titled = given.one_of or given.items.any_of
    if max(len(titled), len(given.enum), len(given.items.enum)) > MAX_CHOICES:
        raise json.UnreadableJson("too many choices")
    if titled:
        return tuple(titled)
    names = dict(zip(given.enum, given.enum_names, strict=False))
    return tuple(Choice(value, names.get(value, "")) for value in given.enum or given.items.enum)


def defaults(params: msgspec.Raw) -> dict[str, Any] | None:
    """Return the content of a form that nobody fills in; None if a field has to be filled in, or is a yes or no."""
    form = read(params)
    if form is None or form.url or any(field.kind == "boolean" for field in form.fields):
        return None
    content = {field.name: field.default for field in form.fields if field.default is not None}
    return None if wrong(form, content) else content


def wrong(form: Form, content: Mapping[str, Any]) -> dict[str, str]:
    """Return what is wrong with a content, by the names of the fields; empty if nothing is."""
    known = {field.name: field for field in form.fields}
    problems = dict.fromkeys(content.keys() - known.keys(), "there is no such field")
    for name, field in known.items():
        if name not in content:
            if field.required:
                problems[name] = "has to be filled in"
        elif why := _wrong(field, content[name]):
            problems[name] = why
    return problems


def _wrong(field: FormField, value: Any) -> str:
    match field.kind:
        case "text":
            return "must be a text" if not isinstance(value, str) else _out_of(field, len(value), "characters")
        case "file":
            return "" if _is_base64(value) else "must be a text in base64"
        case "boolean":
            return "" if isinstance(value, bool) else "must be yes or no"
        case "integer" if isinstance(value, bool) or not isinstance(value, int):
            return "must be a whole number"
        case "number" if isinstance(value, bool) or not isinstance(value, int | float):
            return "must be a number"
        case "integer" | "number":
            return _out_of(field, value, "")
        case "select":
            return "" if _among(field, [value]) else "must be one of the choices"
        case "multiselect":
            known = isinstance(value, list) and _among(field, value) and len(set(value)) == len(value)
            return _out_of(field, len(value), "choices") if known else "must be some of the choices"
        case _:
            return ""


def _among(field: FormField, values: list[Any]) -> bool:
    known = {choice.const for choice in field.choices}
    return all(isinstance(value, str) and value in known for value in values)


def _out_of(field: FormField, number: float, unit: str) -> str:
    if field.least is not None and number < field.least:
        return f"must be at least {field.least:g} {unit}".rstrip()
    if field.most is not None and number > field.most:
        return f"must be at most {field.most:g} {unit}".rstrip()
    return ""


def _is_base64(value: Any) -> bool:
    try:
        return isinstance(value, str) and base64.b64decode(value, validate=True) is not None
    except (binascii.Error, ValueError):
        return False

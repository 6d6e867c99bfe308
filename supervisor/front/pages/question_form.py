"""The form of a question as inputs of a page, and what was filled in as JSON of its schema. Pure.

What was typed is shown again only if something in the form was wrong, and never a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from actors.protocol.asking.forms import Form, FormField
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.texts import clean

PREFIX: Final = "field."
"""Of the names of inputs, so that none is that of a button."""
_FORMATS: Final = {"email": "email", "uri": "url", "date": "date"}
"""The type of an input for a format of JSON Schema. There is none for `date-time`: a `datetime-local` has no zone."""
_LINE_END: Final = re.compile(r"\r\n?|\n")


class InputChoice(msgspec.Struct, frozen=True):
    """One of several values, what a person is shown of it, and whether it is chosen."""

    const: str
    shown: str
    chosen: bool


class PageInput(msgspec.Struct, frozen=True, kw_only=True):
    """An input of a page: `field` with what is in it. `wrong` says what is wrong with that; empty if nothing is."""

    name: str
    type: str
    field: FormField
    label: str
    description: str
    text: str
    choices: list[InputChoice]
    wrong: str


def inputs(form: Form, content: Mapping[str, Any], wrong: Mapping[str, str], prefix: str = PREFIX) -> list[PageInput]:
    """Return an input for each field, with what is in `content`, or else the field's default."""
    return [
        _input(field, content.get(field.name, field.default), wrong.get(field.name, ""), prefix)
        for field in form.fields
    ]


def content_of(
    form: Form, typed: Mapping[str, list[str]], files: Mapping[str, str], prefix: str = PREFIX
) -> dict[str, Any]:
    """Return what was filled in by the fields' names; what is empty was left out. `files` are in base64."""
    content: dict[str, Any] = {}
    for field in form.fields:
        name = prefix + _as_sent(field.name)
        if field.kind == "file":
            if files.get(name):
                content[field.name] = files[name]
        elif values := [value for value in typed.get(name, ()) if value]:
            content[field.name] = values if field.kind == "multiselect" else _value(field, values[0])
    return content


def host_of(url: str) -> str:
    """Return where an address leads, in letters that cannot be taken for others."""
    host = urlsplit(url).hostname or ""
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return quote(host)


def _input(field: FormField, value: Any, wrong: str, prefix: str) -> PageInput:
    several = value if isinstance(value, list) else []
    chosen = several if field.kind == "multiselect" else [_text(value)]
    shown = [("true", "yes"), ("false", "no")] if field.kind == "boolean" else []
    shown = shown or [(choice.const, clean(choice.title or choice.const)) for choice in field.choices]
    return PageInput(
        name=prefix + field.name,
        type="number" if field.kind in ("number", "integer") else _FORMATS.get(field.format, "text"),
        field=field,
        label=clean(field.title or field.name),
        description=clean(field.description),
        text="" if field.secret else _text(value),
        choices=[InputChoice(const, name, const in chosen) for const, name in shown],
        wrong=wrong,
    )


def _as_sent(name: str) -> str:
    """Return the name of an input as it arrives (WHATWG HTML, "Multipart form data"; werkzeug)."""
    return _LINE_END.sub("%0D%0A", name).replace("%22", '"')


def _value(field: FormField, text: str) -> Any:
    """Return what was typed into a field as JSON has it; the text itself if it is none."""
    if field.kind in ("text", "select"):
        return text
    return json.read_or(json.VALUE, text, text)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()

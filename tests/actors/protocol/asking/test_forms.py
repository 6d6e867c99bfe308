"""Forms of servers: what a person is asked, what may be in them, and what only their server may see."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.protocol.asking.forms import (
    MAX_CHOICES,
    MAX_DEFAULT_BYTES,
    MAX_FIELDS,
    MAX_MESSAGE_CHARS,
    MAX_TITLE_CHARS,
    defaults,
    is_secret,
    read,
    wrong,
)

TITLED = [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]


def form(required: Any = None, **properties: Any) -> msgspec.Raw:
    schema = {"type": "object", "properties": properties, "required": required or []}
    return msgspec.Raw(json.dumps({"message": "m", "requestedSchema": schema}).encode())


@pytest.mark.parametrize(
    ("schema", "kind", "named"),
    [
        ({"type": "string"}, "text", "text"),
        ({"type": "string", "format": "email"}, "text", "text"),
        ({"type": "string", "enum": ["a", "b"]}, "select", "select"),
        ({"type": "string", "oneOf": TITLED}, "select", "select"),
        ({"type": "string", "contentEncoding": "base64"}, "file", "file"),
        ({"type": "boolean"}, "boolean", "confirmation"),
        ({"type": "integer"}, "integer", "number"),
        ({"type": "number"}, "number", "number"),
        ({"type": "array", "items": {"enum": ["a"]}}, "multiselect", "multiselect"),
        ({"type": "array", "items": {"anyOf": TITLED}}, "multiselect", "multiselect"),
        ({"type": "array", "items": {"type": "string"}}, "json", "form"),
        ({"type": ["string", "null"]}, "json", "form"),
        ({}, "json", "form"),
        ({"type": "string", "format": "password"}, "text", "secret"),
        ({"type": "string", "writeOnly": True}, "text", "secret"),
        ({"type": "integer", "title": "Your PIN"}, "integer", "secret"),
        ({"type": "boolean", "title": "Keep the token?"}, "boolean", "confirmation"),
        ({"enum": 7}, "json", "secret"),
    ],
)
def test_every_kind_of_question_is_known_by_its_schema(schema: Any, kind: str, named: str) -> None:
    asked = read(form(a=schema))
    assert asked is not None
    (field,) = asked.fields
    assert (field.kind, asked.kind) == (kind, named)
    assert is_secret(form(a=schema)) is (named == "secret")


def test_a_form_of_many_fields_and_an_address_are_what_they_are() -> None:
    asked = read(form(a={"type": "string"}, b={"type": "boolean"}))
    assert asked is not None
    assert asked.kind == "form"
    visit = read(msgspec.Raw(b'{"mode":"url","url":"https://pay.example","message":"Pay"}'))
    assert visit is not None
    assert (visit.kind, visit.url, visit.fields) == ("url", "https://pay.example", ())


@pytest.mark.parametrize(
    "params",
    [
        msgspec.Raw(b"[]"),
        msgspec.Raw(b'{"requestedSchema":7}'),
        form(**{f"a{number}": {} for number in range(MAX_FIELDS + 1)}),
        form(a={"type": "array", "items": {"enum": [""] * (MAX_CHOICES + 1)}}),
        form(**{f"a{n}": {"type": "string", "enum": [str(i) for i in range(MAX_CHOICES // 2 + 1)]} for n in range(2)}),
    ],
)
def test_what_cannot_be_read_or_is_too_much_is_no_form_and_taken_for_a_secret(params: msgspec.Raw) -> None:
    assert read(params) is None
    assert is_secret(params)
    assert defaults(params) is None


def test_what_is_shown_of_a_field_is_bounded_and_what_is_not_shown_is_not_looked_at() -> None:
    asked = read(form(a={"type": "string", "title": "t" * 9000, "description": "d" * 9000, "default": "v" * 9000}))
    assert asked is not None
    (field,) = asked.fields
    assert (len(field.title), len(field.description), field.default) == (MAX_TITLE_CHARS, MAX_MESSAGE_CHARS, None)
    kept = read(form(a={"type": "string", "default": "v" * (MAX_DEFAULT_BYTES - 2)}))
    assert kept is not None
    assert len(kept.fields[0].default) == MAX_DEFAULT_BYTES - 2


FILLED: list[tuple[dict[str, Any], Any, str]] = [
    ({"type": "string", "minLength": 2, "maxLength": 3}, "ab", ""),
    ({"type": "string", "minLength": 2}, "a", "must be at least 2 characters"),
    ({"type": "string", "maxLength": 3}, "abcd", "must be at most 3 characters"),
    ({"type": "string"}, 7, "must be a text"),
    ({"type": "string", "enum": ["a"]}, "a", ""),
    ({"type": "string", "enum": ["a"], "enumNames": ["A"]}, "A", "must be one of the choices"),
    ({"type": "string", "enum": ["a"]}, ["a"], "must be one of the choices"),
    ({"type": "string", "contentEncoding": "base64"}, "aGk=", ""),
    ({"type": "string", "contentEncoding": "base64"}, "hi", "must be a text in base64"),
    ({"type": "string", "contentEncoding": "base64"}, "ü", "must be a text in base64"),
    ({"type": "string", "contentEncoding": "base64"}, 7, "must be a text in base64"),
    ({"type": "boolean"}, False, ""),
    ({"type": "boolean"}, "true", "must be yes or no"),
    ({"type": "integer", "minimum": 1}, 1, ""),
    ({"type": "integer", "minimum": 1}, 0, "must be at least 1"),
    ({"type": "integer"}, 1.5, "must be a whole number"),
    ({"type": "integer"}, True, "must be a whole number"),
    ({"type": "number", "maximum": 2.5}, 2.5, ""),
    ({"type": "number", "maximum": 2.5}, 3, "must be at most 2.5"),
    ({"type": "number"}, "3", "must be a number"),
    ({"type": "number"}, True, "must be a number"),
    ({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 1}, ["b"], ""),
    ({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}, ["a", "b"], "must be at most 1 choices"),
    ({"type": "array", "items": {"enum": ["a", "b"]}}, ["c"], "must be some of the choices"),
    ({"type": "array", "items": {"enum": ["a", "b"]}}, ["a", "a"], "must be some of the choices"),
    ({"type": "array", "items": {"enum": ["a", "b"]}}, "a", "must be some of the choices"),
    ({"type": "object"}, {"any": "thing"}, ""),
]


@pytest.mark.parametrize(("schema", "value", "why"), FILLED)
def test_what_is_filled_in_is_held_against_the_schema(schema: Any, value: Any, why: str) -> None:
    asked = read(form(a=schema))
    assert asked is not None
    assert wrong(asked, {"a": value}) == ({"a": why} if why else {})


def test_a_field_may_be_missing_and_none_may_be_made_up() -> None:
    asked = read(form(["a"], a={"type": "string"}, b={"type": "string"}))
    assert asked is not None
    assert wrong(asked, {"a": ""}) == {}
    assert wrong(asked, {"c": 1}) == {"a": "has to be filled in", "c": "there is no such field"}


def test_defaults_are_an_answer_only_where_nobody_has_to_say_anything() -> None:
    named = {"type": "string", "default": "x"}
    assert defaults(form(["a"], a=named, b={"type": "integer"})) == {"a": "x"}
    assert defaults(form(["b"], a=named, b={"type": "integer"})) is None
    assert defaults(form(a={"type": "string", "default": 7})) is None
    assert defaults(form(a={"type": "boolean", "default": True})) is None
    assert defaults(msgspec.Raw(b'{"mode":"url","url":"https://pay.example","message":"Pay"}')) is None


@pytest.mark.parametrize("bound", [{"minLength": 10**400}, {"maxLength": 2**53 + 1}])
def test_a_bound_that_nobody_can_reach_costs_its_field_alone(bound: dict[str, int]) -> None:
    asked = read(form(a={"type": "string", "default": "x", **bound}, b={"type": "string"}))
    assert asked is not None
    assert [field.kind for field in asked.fields] == ["json", "text"]
    assert defaults(form(a={"type": "string", "default": "x", **bound})) == {}


@pytest.mark.case("X09")
@pytest.mark.parametrize(
    ("params", "secret"),
    [
        (form(name={"type": "string"}), False),
        (form(pinboard={"type": "string"}, tokens_used={"type": "integer"}), True),
        (form(pinboard={"type": "string"}), False),
        (form(password={"type": "string"}), True),
        (form(a={"type": "string", "title": "Your API key"}), True),
        (form(a={"type": "string", "title": "PIN"}), True),
        (form(user_pin={"type": "string"}), True),
        (form(value={"type": "string", "description": "The API-Key of your account"}), True),
        (form(shopping={"type": "string", "description": "Spin, opt out"}), False),
        (form(a={"type": "string", "title": "x" * MAX_TITLE_CHARS + " password"}), False),
        (form(**{"x" * MAX_TITLE_CHARS + "y": {"type": "string"}}), True),
        (msgspec.Raw(b'{"message":"m"}'), False),
        (msgspec.Raw(b'{"mode":"url","url":"https://example.com/password"}'), False),
    ],
)
def test_what_only_the_server_may_see_is_known_by_its_names(params: msgspec.Raw, secret: bool) -> None:
    assert is_secret(params) is secret

"""Arguments under a wrong name: which are mended, and what is said of the others."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.catalogue.offer import NO_RAW, Tool
from supervisor.metatools.lenient_json import EMPTY, Object, read
from supervisor.metatools.slips import OTHER, Slip, likeness, slip_of, takes_no_others

TEXT = {"type": "string"}


ARRAY = {"type": "array"}
READS = msgspec.Raw(b'{"readOnlyHint":true}')


def slip(
    properties: dict[str, Any],
    given: dict[str, Any],
    *required: str,
    tool: str = "t",
    annotations: msgspec.Raw = NO_RAW,
) -> Slip:
    schema = msgspec.json.encode({"type": "object", "properties": properties, "required": required})
    made = Tool(name=tool, input_schema=msgspec.Raw(schema), required=required, annotations=annotations)
    arguments = read(msgspec.Raw(msgspec.json.encode(given)))
    return slip_of(made, arguments, [name for name in required if name not in given])


def mended(found: Slip) -> Any:
    return None if found.mended is None else json.loads(bytes(found.mended))


@pytest.mark.parametrize(
    ("properties", "given", "right"),
    [
        ({"path": TEXT, "encoding": TEXT}, {"file_path": "x"}, {"path": "x"}),
        ({"file_path": TEXT}, {"path": "x"}, {"file_path": "x"}),
        ({"repo": TEXT}, {"repository": "x"}, {"repo": "x"}),
        ({"repo": TEXT, "owner": TEXT}, {"repoName": "x"}, {"repo": "x"}),
        ({"query": TEXT}, {"q": "x"}, {"query": "x"}),
        ({"source": TEXT, "from_": TEXT}, {"sources": "x"}, {"source": "x"}),
        ({"title": TEXT, "body": TEXT}, {"tilte": "x"}, {"title": "x"}),
        ({"issueNumber": {"type": "integer"}}, {"issue_number": 5}, {"issueNumber": 5}),
        ({"dir": TEXT}, {"directory": "x"}, {"dir": "x"}),
    ],
)
def test_another_spelling_of_the_only_missing_argument_is_given_its_right_name(
    properties: dict[str, Any], given: dict[str, Any], right: dict[str, Any]
) -> None:
    assert mended(slip(properties, given, next(iter(properties)))) == right


@pytest.mark.parametrize(
    ("properties", "given", "required"),
    [
        ({"path": TEXT, "content": TEXT}, {"path": "w.txt", "mode": "append"}, ("path", "content")),
        ({"path": TEXT, "content": TEXT}, {"path": "w.txt", "encoding": "utf-8"}, ("path", "content")),
        ({"path": TEXT, "content": TEXT}, {"path": "w.txt", "context": "x"}, ("path", "content")),
        ({"source": TEXT, "destination": TEXT}, {"source": "n3.txt", "policy": "keep"}, ("source", "destination")),
        ({"key": TEXT}, {"pattern": "*"}, ("key",)),
        ({"path": TEXT}, {"exclude_path": "x"}, ("path",)),
        ({"model": TEXT}, {"mode": "x"}, ("model",)),
        ({"path": TEXT, "limit": {"type": "integer"}}, {"text": "x"}, ("path",)),
        ({"level": {"enum": ["low", "high"]}}, {"severity": "low"}, ("level",)),
    ],
)
@pytest.mark.parametrize("annotations", [NO_RAW, READS])
def test_a_value_is_never_sent_under_a_name_that_is_not_alike(
    properties: dict[str, Any], given: dict[str, Any], required: tuple[str, ...], annotations: msgspec.Raw
) -> None:
    found = slip(properties, given, *required, annotations=annotations)
    assert (found.mended, dict(found.meant)) == (None, {})
    assert found.sentence == f"missing {required[-1]}; unknown: {list(given)[-1]}"


@pytest.mark.parametrize(
    ("properties", "given", "right"),
    [
        ({"query": TEXT}, {"sql": "x"}, {"query": "x"}),
        ({"rows": ARRAY}, {"values": [1]}, {"rows": [1]}),
        ({"content": TEXT}, {"text": "x"}, {"content": "x"}),
        ({"url": TEXT}, {"link": "x"}, {"url": "x"}),
    ],
)
def test_a_synonym_is_enough_where_a_tool_is_declared_to_change_nothing(
    properties: dict[str, Any], given: dict[str, Any], right: dict[str, Any]
) -> None:
    (needed,), (wrong,) = properties, given
    assert mended(slip(properties, given, needed, annotations=READS)) == right
    for other in (NO_RAW, msgspec.Raw(b'{"readOnlyHint":false}'), msgspec.Raw(b'{"readOnlyHint":"true"}')):
        found = slip(properties, given, needed, annotations=other)
        assert (found.mended, found.sentence) == (None, f"missing {needed}; unknown: {wrong} (did you mean {needed}?)")


def test_nothing_is_renamed_where_another_free_name_is_as_likely() -> None:
    assert slip({"path": TEXT, "filename": TEXT}, {"file": "x"}, "path", annotations=READS).mended is None
    found = slip({"text": TEXT, "body": TEXT}, {"message": "x"}, "text", annotations=READS)
    assert (found.mended, found.sentence) == (None, "missing text; unknown: message (did you mean text?)")


def test_words_of_the_tools_name_add_nothing_to_the_name_of_an_argument() -> None:
    given, properties = {"issue_title": "x"}, {"title": TEXT, "body": TEXT}
    assert mended(slip(properties, given, "title", tool="create_issue")) == {"title": "x"}
    assert mended(slip(properties, given, "title", tool="create_page")) is None


@pytest.mark.parametrize(
    ("properties", "given", "told"),
    [
        ({"rows": ARRAY}, {"values": "x"}, "missing rows; unknown: values"),
        ({"rows": {"type": ["array", "null"]}}, {"values": [1]}, "missing rows; unknown: values (did you mean rows?)"),
        ({"title": TEXT, "body": TEXT}, {"comment": "x"}, "missing title; unknown: comment"),
        ({"count": {"type": "integer"}}, {"counts": 5.5}, "missing count; unknown: counts"),
        ({"level": {"enum": ["low"]}}, {"levels": "none"}, "missing level; unknown: levels"),
        (
            {"path": TEXT},
            {"file_path": "x", "force": True},
            "missing path; unknown: file_path (did you mean path?), force",
        ),
        ({"title": TEXT, "query": TEXT}, {"q": "x"}, "missing title; unknown: q (did you mean query?)"),
        ({"path": TEXT}, {"new_path": "x"}, "missing path; unknown: new_path (did you mean path?)"),
        ({"key": TEXT}, {"key_value": "x"}, "missing key; unknown: key_value"),
        ({"path": TEXT}, {}, "missing path"),
    ],
)
def test_what_is_not_certain_is_said_and_not_done(properties: dict[str, Any], given: dict[str, Any], told: str) -> None:
    found = slip(properties, given, next(iter(properties)))
    assert (found.mended, found.sentence) == (None, told)


def test_what_is_guessed_fits_the_value_and_is_alike() -> None:
    sheet = {"sheet": TEXT, "at": TEXT, "rows": ARRAY}
    found = slip(sheet, {"sheet_name": "a", "start_cell": "A1", "data": [[1]]}, "sheet", "at", "rows")
    assert dict(found.meant) == {"sheet_name": "sheet", "data": "rows"}
    found = slip({"source": TEXT, "destination": TEXT}, {"from": "a", "to": "b"}, "source", "destination")
    assert dict(found.meant) == {"from": "source", "to": "destination"}


def test_names_are_clean_and_few() -> None:
    given = {f"\x1b[31mk{number}": 0 for number in range(900)}
    found = slip({f"p{number}": TEXT for number in range(100)}, given, *(f"p{number}" for number in range(100)))
    assert (len(found.missing), len(found.unknown)) == (20, 20)
    assert "\x1b" not in found.sentence


def test_a_schema_without_properties_and_an_object_of_thousands_are_only_said_to_lack_something() -> None:
    assert slip({}, {"a": 1}, "b").sentence == "missing b"
    assert slip({"b": TEXT}, {f"k{number}": 0 for number in range(5000)}, "b").sentence == "missing b"


def test_of_an_object_that_is_not_taken_apart_only_what_it_lacks_is_said() -> None:
    made = Tool(name="t", input_schema=msgspec.Raw(b'{"properties":{"b":{}}}'), required=("b",))
    large = Object(EMPTY, None)
    assert slip_of(made, large, ["b"]) == Slip(missing=("b",))
    assert slip_of(made, large) == Slip(missing=())


def test_a_schema_that_cannot_be_read_does_not_exclude_anything() -> None:
    assert takes_no_others(Tool(name="t", input_schema=msgspec.Raw(b"7"))) is False


def test_among_too_many_properties_none_is_guessed() -> None:
    many = {f"p{number}": TEXT for number in range(200)}
    assert slip({"path": TEXT, **many}, {"file_path": "x"}, "path").sentence == "missing path; unknown: file_path"


@pytest.mark.parametrize("schema", [True, {}, {"type": "null"}, {"const": "x", "type": "string"}])
def test_a_property_that_does_not_say_what_it_takes_is_meant_and_not_mended(schema: Any) -> None:
    found = slip({"path": schema}, {"file_path": "x"}, "path")
    assert (found.mended, dict(found.meant)) == (None, {"file_path": "path"})


@pytest.mark.parametrize("name", ["", "__", "-"])
def test_a_name_without_a_letter_is_like_no_other(name: str) -> None:
    assert likeness(name, name) == likeness(name, "path") == OTHER

"""The documentation of the metadata has every rule, as the code has it, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec.structs
import pytest

from actors.catalogue.criteria import MAX_LIMIT, Criteria
from actors.catalogue.findings import RULES
from actors.catalogue.inference import (
    AUTH_DESCRIPTION,
    AUTH_NAME,
    CATEGORIES,
    MODERATE_PROPERTIES,
    SIMPLE_PROPERTIES,
    WORDS,
)
from actors.catalogue.metadata import SAFETY
from supervisor.front.pages.tools import MAX_TOKEN_ROWS, TokenQuery

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "metadata.md").read_text(encoding="utf-8")


def table(section: str) -> list[list[str]]:
    """Return the cells of the rows of a section's only table."""
    (body,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    lines = [line for line in body.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def items(section: str) -> list[re.Match[str]]:
    """Return the items of a section's list: its `name`, what is `about` it, and its `rest`."""
    (body,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    lines = re.sub(r"\n  +", " ", body).splitlines()
    found = (re.fullmatch(r"- \*\*`(?P<name>\w+)`\*\*,? ?(?P<about>[^:]*): (?P<rest>.*)", line) for line in lines)
    return [item for item in found if item is not None]


def code(words: tuple[str, ...]) -> str:
    return " ".join(f"`{word}`" for word in words)


def test_the_words_are_those_of_the_code() -> None:
    assert [(item["name"], item["rest"]) for item in items("Effects")] == [
        (name, code(words)) for name, words in WORDS.items()
    ]


def test_the_categories_are_those_of_the_code() -> None:
    assert table("Category") == [[f"`{name}`", code(nouns)] for name, nouns in CATEGORIES]


def test_the_findings_are_those_of_the_code() -> None:
    assert table("Findings") == [[f"`{name}`", severity, meaning] for name, (severity, meaning) in RULES.items()]


def test_the_safety_levels_are_those_of_the_code() -> None:
    assert {row[0].strip("`") for row in table("Safety")} == set(SAFETY)


def test_the_numbers_and_words_in_the_text_are_those_of_the_code() -> None:
    prose = " ".join(TEXT.split())
    assert f"at most {SIMPLE_PROPERTIES} `simple`, at most {MODERATE_PROPERTIES} `moderate`" in prose
    assert f"name has one of {code(AUTH_NAME)}, or the description one of {code(AUTH_DESCRIPTION)}," in prose
    assert f"`limit` (1 to {MAX_TOKEN_ROWS})" in prose


def test_the_parameters_are_the_fields_of_the_criteria() -> None:
    rows = {item["name"]: item["about"] for item in items("Selecting tools")}
    fields = {field.name: field for field in msgspec.structs.fields(Criteria)}
    assert list(rows) == list(fields)
    for name, field in fields.items():
        _, _, shown = rows[name].strip("()").partition("; default ")
        assert shown.strip("`") == ("" if field.default in (None, "", ()) else json.dumps(field.default).strip('"')), (
            name
        )
    assert rows["limit"].startswith(f"(1 to {MAX_LIMIT};")


@pytest.mark.parametrize("name", TokenQuery.__struct_fields__)
def test_the_parameters_of_the_token_page_are_named(name: str) -> None:
    assert f"`{name}`" in TEXT[TEXT.index("GET /api/tokens") :]

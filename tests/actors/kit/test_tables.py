"""Data that stand beside modules: read as the form says that the module gives, and part of what is installed."""

from __future__ import annotations

import tomllib

import msgspec
import pytest

from actors.kit.tables import table_of
from tests.sources import ROOT


class Fewer(msgspec.Struct, forbid_unknown_fields=True):
    row: tuple[dict[str, object], ...] = ()


class More(msgspec.Struct):
    row: tuple[dict[str, object], ...]
    also: str


class Other(msgspec.Struct):
    row: str


class Row(msgspec.Struct):
    names: tuple[str, ...]


class Rows(msgspec.Struct):
    row: tuple[Row, ...]


def test_a_table_is_what_its_file_says() -> None:
    written = (ROOT / "supervisor/servers/stateful.toml").read_text()
    names = [name for row in table_of("supervisor.servers", "stateful", Rows).row for name in row.names]
    assert names
    assert [name for name in names if f'"{name}"' not in written] == []


@pytest.mark.parametrize("form", [More, Other])
def test_a_file_of_another_form_is_found_when_its_module_is_imported(form: type[object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        table_of("supervisor.servers", "stateful", form)


def test_a_key_that_a_form_does_not_have_is_found_where_the_form_says_so() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        table_of("actors.catalogue", "suspicions", Fewer)


@pytest.mark.parametrize("package", ["actors", "supervisor"])
def test_all_data_are_part_of_what_is_installed(package: str) -> None:
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"][package]
    top = ROOT / package
    there = {path for path in top.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert [path.name for path in there - {each for pattern in packed for each in top.glob(pattern)}] == []

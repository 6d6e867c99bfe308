"""The cases, the tests that try them, and what became of these: from `catalogue.txt`, the tests, `results.json`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

HERE: Final = Path(__file__).parent
TESTS: Final = HERE.parent
MARK: Final = "case"


class Case(msgspec.Struct, frozen=True):
    """`what` is done to the daemon, or what must hold; `why_not`: why no test tries it, empty if one does."""

    id: str
    what: str
    why_not: str = ""


class Group(msgspec.Struct, frozen=True):
    """Cases of one letter."""

    letter: str
    title: str
    cases: tuple[Case, ...]


class Results(msgspec.Struct, frozen=True):
    """What became of each marked test when they were run last, by its name: "passed", "failed" or "skipped"."""

    on: str = ""
    machine: str = ""
    outcomes: dict[str, str] = {}


def groups() -> tuple[Group, ...]:
    """Read the catalogue. Raises `ValueError` with the line that is no case."""
    found: list[tuple[str, Case]] = []
    titles: dict[str, str] = {}
    for line in (HERE / "catalogue.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            letter, _, title = line[2:].partition(": ")
            titles[letter] = title
        elif line:
            id_, _, rest = line.partition(" ")
            if id_[:1] not in titles or not id_[1:].isdigit() or not rest:
                raise ValueError(f"no case, or none of a letter above it: {line}")
            what, _, why_not = rest.partition(" -- ")
            found.append((id_[0], Case(id_, what, why_not)))
    grouped = groupby(found, key=lambda each: each[0])
    return tuple(Group(letter, titles[letter], tuple(case for _, case in cases)) for letter, cases in grouped)


@cache
def tests_of() -> dict[str, list[str]]:
    """Return the tests that try each case, as `FILE::NAME` with the file below `tests/`; files in their order."""
    found: dict[str, list[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if f"mark.{MARK}(" not in text:
            continue
        for name, case in _marks(ast.parse(text)):
            found.setdefault(case, []).append(f"{file.relative_to(TESTS)}::{name}")
    return {case: list(dict.fromkeys(names)) for case, names in found.items()}


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for call in (call for each in node.decorator_list for call in ast.walk(each)):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == MARK:
                    yield from ((node.name, str(ast.literal_eval(argument))) for argument in call.args)


def results() -> Results:
    """Return what is known of the last runs, nothing where there was none."""
    file = HERE / "results.json"
    return msgspec.json.decode(file.read_bytes(), type=Results) if file.exists() else Results()


def keep(now: Results) -> None:
    """Write what is known from now on."""
    outcomes = dict(sorted(now.outcomes.items()))
    text = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(now, outcomes=outcomes)), indent=1)
    (HERE / "results.json").write_bytes(text + b"\n")

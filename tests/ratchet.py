"""`python -m tests.ratchet`: figures of the code that may fall and never rise, beside those in `tests/ratchet.toml`.

`--write` writes them, those that rose only with `--reason WHY`, which stays in the file until they are down again. A
test fails where a figure is higher than in the file, or so much lower that the file allows too much.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeGuard

from benchmarks.frames import CALLS, Way, least, ways
from tests.sources import ROOT, imports, is_marker, is_pure, modules, nodes_of, tree

FILE: Final = ROOT / "tests" / "ratchet.toml"
SLACK: Final = 0.02
"""The share of a figure that it may be below the one in the file."""
WIDE: Final = 25
"""More fields are too many for what is no data."""
WRITE: Final = "python -m tests.ratchet --write"

Figures = Mapping[str, float]


def is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def is_set(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def lines(*patterns: str) -> int:
    files = {file for pattern in patterns for file in ROOT.glob(pattern)}
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


@cache
def shown() -> dict[tuple[str, str], tuple[str, str]]:
    """What the names are that an `__init__.py` shows: the module that each is from, and its name there."""
    return {
        (marker, alias.asname or alias.name): (node.module or "", alias.name)
        for marker in filter(is_marker, modules())
        for node in tree(marker).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@cache
def taken() -> dict[tuple[str, str], set[str]]:
    """Who imports each name of ours: (module, name) to the modules."""
    takers: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name in modules():
        for node in nodes_of(name) if not is_marker(name) else ():
            if isinstance(node, ast.ImportFrom) and node.module in modules():
                for alias in node.names:
                    if f"{node.module}.{alias.name}" not in modules():
                        takers[shown().get((node.module, alias.name), (node.module, alias.name))].add(name)
    return takers


def single_importers() -> float:
    """Percent of the modules that exactly one other imports."""
    importers: dict[str, set[str]] = defaultdict(set)
    for (module, _), takers in taken().items():
        importers[module] |= takers
    for name in modules():
        for other in imports(name) if not is_marker(name) else ():
            if other in modules() and not is_marker(other):
                importers[other].add(name)
    own = [name for name in modules() if not is_marker(name)]
    return round(100 * sum(len(importers[name]) == 1 for name in own) / len(own), 1)


def names_within_a_folder() -> int:
    """Names that another module imports, and none outside of their folder."""
    return sum(
        all(taker.startswith(f"{module.rpartition('.')[0]}.") for taker in takers)
        for (module, _), takers in taken().items()
    )


def import_lines() -> int:
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for name in modules()
        for node in nodes_of(name)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def fields(node: ast.ClassDef) -> set[str]:
    """The fields that a class declares, and those that its methods set."""
    declared = {each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and is_name(each.target)}
    return declared | {
        each.attr for each in ast.walk(node) if is_set(each) and is_name(each.value) and each.value.id == "self"
    }


def wide_classes() -> int:
    """Classes of more than 25 fields outside of pure modules: what is in those is data."""
    return sum(
        isinstance(node, ast.ClassDef) and len(fields(node)) > WIDE
        for name in modules()
        if not is_pure(name)
        for node in nodes_of(name)
    )


def foreign(nodes: Sequence[ast.AST]) -> list[ast.Attribute]:
    """Find where an attribute is set of another object than one that the function was called on, or has made."""
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    def is_own(node: ast.expr) -> bool:
        around = (each for each in functions if each.lineno <= node.lineno <= (each.end_lineno or 0))
        return is_name(node) and (node.id in ("self", "cls") or any(makes(each, node.id) for each in around))

    return [node for node in nodes if is_set(node) and not is_own(node.value)]


def makes(function: ast.AST, name: str) -> bool:
    """Whether a function calls a class for an object of this name."""
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and is_of_class(node.value)
        and any(is_name(target) and target.id == name for target in node.targets)
        for node in ast.walk(function)
    )


def is_of_class(call: ast.Call) -> bool:
    """Whether a call makes an object."""
    called = last_name(call.func)
    return called in ("cls", "__new__") or called.lstrip("_")[:1].isupper()


def last_name(node: ast.AST) -> str:
    """The name, or the last one behind a dot, that an expression is; the first word of a quoted annotation."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Constant(value=str() as text):
            return text.partition("[")[0]
    return ""


def callable_parameters() -> int:
    """Parameters of functions that are functions."""
    named = {
        target.id
        for name in modules()
        for node in tree(name).body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Subscript)
        and last_name(node.value.value) == "Callable"
        for target in node.targets
        if is_name(target)
    } | {"Callable"}
    return sum(
        isinstance(node, ast.arg)
        and node.annotation is not None
        and any(last_name(each) in named for each in ast.walk(node.annotation))
        for name in modules()
        for node in nodes_of(name)
    )


def dependencies() -> int:
    return len(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"])


def figures_of_sources() -> Figures:
    """What is read from the code."""
    return {
        "lines": lines("actors/**/*.py", "supervisor/**/*.py"),
        "modules": sum(not is_marker(name) for name in modules()),
        "lines_of_tests": lines("tests/**/*.py"),
        "lines_of_documentation": lines("docs/**/*.md", "README.md"),
        "import_lines": import_lines(),
        "percent_of_modules_with_one_importer": single_importers(),
        "names_within_a_folder": names_within_a_folder(),
        "classes_of_over_25_fields": wide_classes(),
        "attributes_set_from_outside": sum(len(foreign(nodes_of(name))) for name in modules()),
        "callable_parameters": callable_parameters(),
        "dependencies": dependencies(),
    }


def figures_of_calls(found: Mapping[str, list[Way]]) -> Figures:
    """What the calls of each tool went through."""
    figures: dict[str, float] = {}
    for name, each in found.items():
        figures |= {f"{name}_frames": len(least(each).frames), f"{name}_files": len(least(each).files)}
    return figures


def held() -> dict[str, Any]:
    """What the file has: `figures`, and `raised`."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def wrong(figures: Figures, allowed: Figures) -> list[str]:
    """Say which figures are not those of the file, and what to do about each."""
    said = []
    for name, now in figures.items():
        before = allowed.get(name, 0)
        if now > before:
            said.append(f"{name} rose from {before} to {now}: lower it, or say why: {WRITE} --reason WHY")
        elif now < before * (1 - SLACK):
            said.append(f"{name} fell from {before} to {now}: {WRITE}")
    return said


def written(figures: Figures, before: Mapping[str, Any], reason: str = "") -> str:
    """Return the text of the file with other figures."""
    allowed: Figures = before["figures"]
    raised = [row for row in before["raised"] if figures.get(row["figure"], 0) > row["from"]]
    rose = [name for name, now in figures.items() if now > allowed.get(name, now)]
    if rose and not reason:
        raise SystemExit(f"{', '.join(rose)} rose: say why with --reason")
    raised += ({"figure": name, "from": allowed[name], "to": figures[name], "reason": reason} for name in rose)
    return "\n".join(
        [
            "# Figures that fall and never rise; see `python -m tests.ratchet --help`.",
            "raised = [",
            *(f"  {{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in row.items())} }}," for row in raised),
            "]",
            "",
            "[figures]",
            *(f"{name} = {now}" for name, now in figures.items()),
            "",
        ]
    )


def main(arguments: list[str]) -> None:
    """Print each figure and the one in the file, or write them."""
    parser = argparse.ArgumentParser(prog="python -m tests.ratchet", description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--reason", default="", help="why figures rose")
    parsed = parser.parse_args(arguments)
    found = {}
    for name, tool in CALLS.items():
        with tempfile.TemporaryDirectory(prefix="ratchet-") as directory:
            found[name] = ways(Path(directory), tool, 11)
    figures = {**figures_of_sources(), **figures_of_calls(found)}
    if parsed.write:
        FILE.write_text(written(figures, held(), parsed.reason), encoding="utf-8")
    for name, now in figures.items():
        print(f"{name:<40}{now:>10}{held()['figures'].get(name, 0):>10}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Modules as they are written."""

from __future__ import annotations

import ast
import gc
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("actors", "supervisor")


def nodes(file: Path) -> tuple[ast.AST, ...]:
    """All of the tree of a module, which comes first; but for `ctx`, which is half of it and says little."""
    # There is no garbage in a tree, and looking for it takes twice as long as all the rest.
    gc.disable()
    try:
        found: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
        for node in found:  # also what is found meanwhile
            for value in node.__dict__.values():
                if isinstance(value, list):
                    found += [each for each in value if isinstance(each, ast.AST)]
                elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                    found.append(value)
        return tuple(found)
    finally:
        gc.enable()


@cache
def modules() -> dict[str, Path]:
    """Every module of the two packages by its full name."""
    files = {}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return files


@cache
def nodes_of(name: str) -> tuple[ast.AST, ...]:
    """All of the tree of a module of the two packages."""
    return nodes(modules()[name])


def tree(name: str) -> ast.Module:
    root = nodes_of(name)[0]
    assert isinstance(root, ast.Module)
    return root


@cache
def imports(name: str) -> tuple[str, ...]:
    """Every module that `name` imports, also inside functions."""
    imported: list[str] = []
    for node in nodes_of(name):
        if isinstance(node, ast.Import):
            imported += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are absolute"
            assert node.module is not None
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                imported.append(full if full in modules() else node.module)
    return tuple(imported)


@cache
def roots(name: str) -> frozenset[str]:
    """The packages, of whomever, that a module imports from."""
    return frozenset(other.split(".")[0] for other in imports(name))


def is_marker(name: str) -> bool:
    """Whether a module is the `__init__.py` of a folder."""
    return name in modules() and modules()[name].name == "__init__.py"


@cache
def is_pure(name: str) -> bool:
    """Whether the docstring of a module, or of a folder that it stands in, says that it is Pure."""
    if re.search(r"\bPure\b", ast.get_docstring(tree(name)) or ""):
        return True
    folder = name.rpartition(".")[0]
    return bool(folder) and is_pure(folder)

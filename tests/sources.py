"""Modules as they are written."""

from __future__ import annotations

import ast
import gc
from pathlib import Path


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

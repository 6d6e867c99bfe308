"""What is written below the fields of structs. Python forgets it, so it is read from their source."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise

import msgspec


def descriptions(struct: type[msgspec.Struct]) -> Mapping[str, str]:
    """Return what is written below each field of a struct's own; nothing where a program came without its source."""
    return _of_module(struct.__module__).get(struct.__qualname__, {})


@cache
def _of_module(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return all of a module by class: to have each class by itself be found takes 2 ms for each."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    return {node.name: dict(_fields(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _fields(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(definition.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(written))):
                yield name, " ".join(written.split())

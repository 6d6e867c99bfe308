"""What the meta-tools are said to take is read, and what is read is used."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import msgspec
import pytest

from supervisor.metatools.arguments import Discover, ResourceQuery
from supervisor.metatools.definitions import SCHEMAS
from supervisor.metatools.execution import Execute
from tests.sources import nodes
from tests.supervisor.test_settings import read

METATOOLS = Path(__file__).parents[3] / "supervisor" / "metatools"
READERS = ("arguments.py", "execution.py", "slips.py")


@cache
def known() -> frozenset[str]:
    """Every text, and every field of a struct, in the modules that read arguments."""
    texts: set[str] = set()
    for file in READERS:
        for node in nodes(METATOOLS / file):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                texts.add(node.target.id)
    return frozenset(texts)


@pytest.mark.parametrize("tool", SCHEMAS)
def test_every_argument_of_a_definition_is_read(tool: str) -> None:
    assert SCHEMAS[tool]["properties"].keys() <= known()


@pytest.mark.parametrize("struct", [Discover, Execute, ResourceQuery])
def test_everything_that_is_read_of_arguments_is_used(struct: type[msgspec.Struct]) -> None:
    assert set(struct.__struct_fields__) - read() == set()

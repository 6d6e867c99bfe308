"""What the meta-tools are said to take is read, and what is read is used."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import msgspec
import pytest

from supervisor.metatools import arguments, execution
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


def test_what_is_read_in_one_pass_is_what_is_read_in_several() -> None:
    """As the schemas want it, and with every argument that is read so: none is lost between the two."""
    call = {"tool_path": "a:b", "arguments": {"x": 1}, "pick": "y"}
    query = {"query": "merge", "limit": 3, "kinds": ["tool", "prompt"]}
    assert [*execution._Exact.__struct_fields__] == [*call]
    assert [*arguments._Exact.__struct_fields__] == [*query]
    given, asked = msgspec.Raw(msgspec.json.encode(call)), msgspec.Raw(msgspec.json.encode(query))
    assert execution._as_wanted(given) == execution._read_loosely(given)
    assert arguments._as_wanted(asked, 50) == arguments._read_loosely(asked, 50)

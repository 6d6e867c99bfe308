"""A function is called by what it does or gives, not by a participle: `told` may be an event, a wait, or a value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.test_architecture import modules, nodes


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PARTICIPLES = words("""
    begun bought broken chosen done given gone heard held hidden kept known left lost made met said seen sent
    shown spoken taken told understood unheard unknown unread unseen written
""")
"""Those that do not end in -ed or -ing. `found`, `put`, `read` and `bound` are verbs or nouns as well."""

NO_PARTICIPLES = words("""
    bed embed exceed feed id indeed need proceed seed shed speed succeed
""")
NOUNS = words("""
    anything beginning binding embedding encoding ending everything finding heading leaving listing mapping meaning
    naming nothing opening ping reading ring setting something spelling spring string thing timing warning
""")
"""Words that end as participles do."""

VERBS = words("""
    add answer ask bound clear close collect count describe drop end fail find finish forget keep list load make
    mark next note open read refuse remove replace report resolve run say send set show start stop take tell
    watch write
""")
"""What a name of several words may begin with, whatever its last one is: `drop_expired`."""

CONDITIONS = words("""
    on_ is_ has_ was_ are_ were_ may_ can_ must_ when_ until_ as_ with_ if_ be_ end_when_ stop_when_ wait_
""")
BETWEEN = ("_if_", "_when_", "_until_")
"""Where a participle says of what, when or how."""


def is_participle(name: str) -> bool:
    name = name.strip("_")
    if name.startswith(tuple(CONDITIONS)) or any(each in name for each in BETWEEN):
        return False
    *before, last = name.split("_")
    if (before and before[0] in VERBS) or last in NO_PARTICIPLES | NOUNS:
        return False
    return last in PARTICIPLES or last.endswith(("ed", "ing"))


def named_by_participles() -> Iterator[str]:
    """The functions of the two packages that are called so; what returns a truth value says what holds."""
    for module, file in modules().items():
        if not any(map(is_participle, re.findall(r"\bdef\s+(\w+)", file.read_text(encoding="utf-8")))):
            continue  # and need not be parsed
        for node in nodes(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(node.name):
                returns = ast.unparse(node.returns) if node.returns else ""
                if returns != "bool":
                    yield node.name


def test_no_function_is_called_by_a_participle() -> None:
    assert set(named_by_participles()) == set()

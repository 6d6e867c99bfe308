"""Every fact is noted somewhere and taken somewhere, and every kind of event is made somewhere: by the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from actors.facts import Fact
from supervisor.events.kinds import KINDS
from tests.sources import modules, nodes_of

DEFINED = ("actors.facts", "supervisor.events.kinds")


def name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def asked_for(node: ast.AST) -> Iterator[ast.AST | None]:
    """Yield what of a node only says which class something has: it is no use of that class that makes one."""
    match node:
        case ast.MatchClass(cls=of) | ast.Assign(targets=[ast.Name(id="kinds")], value=of):  # see `Projection.kinds`
            yield of
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, of]) | ast.AnnAssign(annotation=of):
            yield of
        case ast.arg(annotation=of):
            yield of
        case ast.FunctionDef(returns=of) | ast.AsyncFunctionDef(returns=of):
            yield of


@cache
def found() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of what is made, or given to who makes it, and of what has a case somewhere."""
    made, apart = set[str](), set[str]()
    for module in modules():
        if module in DEFINED:
            continue
        every = nodes_of(module)
        only_asked = {id(each) for node in every for of in asked_for(node) if of is not None for each in ast.walk(of)}
        made |= {name_of(node) for node in every if id(node) not in only_asked}
        apart |= {name_of(node.cls) for node in every if isinstance(node, ast.MatchClass)}
    return frozenset(made), frozenset(apart)


@cache
def called() -> frozenset[str]:
    calls = (node for module in modules() for node in nodes_of(module) if isinstance(node, ast.Call))
    return frozenset(name_of(node.func) for node in calls)


def kinds_of(fact: type[Fact]) -> Iterator[type[Fact]]:
    below = [each for each in fact.__subclasses__() if each.__module__ == DEFINED[0]]
    for each in below:
        yield from kinds_of(each)
    if not below:
        yield fact


@pytest.mark.parametrize("fact", [*kinds_of(Fact)])
def test_a_fact_is_noted_and_taken(fact: type[Fact]) -> None:
    made, apart = found()
    assert fact.__name__ in made
    assert fact.__name__ in apart


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_event_is_made(kind: str) -> None:
    assert KINDS[kind].__name__ in called()

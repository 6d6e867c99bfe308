"""The rules of flake8-async over the given files. Options are those of flake8-async.

Its own command parses each file with libcst and walks it in Python three times before the first rule: a second and more
for a file, of which one rule of ours needs something, ASYNC101. That one is here anew, over Python's own tree; of the
others `Runner` is what the command calls, in less than half of its time. The version is pinned.
"""

from __future__ import annotations

import ast
import gc
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

from flake8_async import Plugin
from flake8_async.runner import Flake8AsyncRunner
from flake8_async.visitors.flake8asyncvisitor import Flake8AsyncVisitor

SCOPES = {"CancelScope", "fail_after", "fail_at", "move_on_after", "move_on_at", "open_nursery"}
MAY_YIELD = {"asynccontextmanager", "contextmanager", "fixture"}
"""Decorators of functions that may yield in a scope: whoever enters them leaves them, in the same task."""
SIGNS = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
"""A third of all nodes: there is nothing in them, and no rule is about them."""
YIELDS = "ASYNC101 `yield` in a nursery or a cancel scope: what is raised in there may never arrive here."


def yields_in_scopes(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what is against ASYNC101."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {_name(each) for each in node.decorator_list}
            if not names & MAY_YIELD:
                yield from _yields(node.body, in_scope=False)


def _yields(body: list[ast.stmt], *, in_scope: bool) -> Iterator[ast.expr]:
    todo: list[tuple[ast.AST, bool]] = [(each, in_scope) for each in body]
    while todo:
        node, inside = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Yield | ast.YieldFrom) and inside:
            yield node
        if isinstance(node, ast.With | ast.AsyncWith):
            inside = inside or any(_name(item.context_expr) in SCOPES for item in node.items)
        todo += [(child, inside) for child in ast.iter_child_nodes(node)]


def _name(node: ast.expr) -> str:
    """Return the last part of what is called, or named."""
    if isinstance(node, ast.Await):
        node = node.value
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


class Runner(Flake8AsyncRunner):
    """Goes through a tree as the original does, but asks of each node only those rules that have something to do there.

    The original asks each of thirty, and has each restore what it kept of outer nodes, mostly nothing.
    """

    def __init__(self, options: Namespace) -> None:
        super().__init__(options)
        self._all = (*self.utility_visitors, *self.visitors)
        self._rules: dict[type[ast.AST], list[tuple[Flake8AsyncVisitor, Callable[[ast.AST], object]]]] = {}

    def visit(self, node: ast.AST) -> None:
        """Visit a node, and what is in it."""
        kind = type(node)
        rules = self._rules.get(kind)
        if rules is None:
            rules = self._rules[kind] = self._about(kind)
        alone = []  # the rules that went through what is in this node by themselves
        for rule, visit in rules:
            if rule in self.visitors or rule in self.utility_visitors:
                visit(node)
                if rule.novisit:
                    alone.append(rule)
        self.visitors.difference_update(alone)
        for name in kind._fields:
            value = getattr(node, name, None)
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, ast.AST) and not isinstance(each, SIGNS):
                    self.visit(each)
        for rule in alone:
            rule.novisit = False
        self.visitors.update(alone)
        for rule, _ in rules:  # no other has kept anything of this node
            if node in rule.outer and (rule in self.visitors or rule in self.utility_visitors):
                rule.set_state(rule.outer.pop(node))

    def _about(self, kind: type[ast.AST]) -> list[tuple[Flake8AsyncVisitor, Callable[[ast.AST], object]]]:
        method = f"visit_{kind.__name__}"
        nothing = getattr(ast.NodeVisitor, method, None)  # there is one for constants
        heeded = [rule for rule in self._all if getattr(type(rule), method, nothing) is not nothing]
        return [(rule, getattr(rule, method)) for rule in heeded]


def main() -> int:
    """Print what is found, as flake8-async does; return the exit code."""
    parser = ArgumentParser()
    Plugin.add_options(parser)
    options = parser.parse_args()
    Plugin.parse_options(options)
    found = False
    gc.disable()  # a tree is no garbage as long as it is looked at, and no cycle afterwards
    for file in options.files:
        text = Path(file).read_bytes()
        tree = ast.parse(text, filename=file)
        for error in sorted(Runner.run(tree, Plugin._options)):
            print(f"{file}:{error}")
            found = True
        for node in yields_in_scopes(tree) if b"yield" in text else ():
            print(f"{file}:{node.lineno}:{node.col_offset + 1}: {YIELDS}")
            found = True
    return int(found)


if __name__ == "__main__":
    sys.exit(main())

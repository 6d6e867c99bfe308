"""The rules of the architecture, read from the source: who may import what, and how long things may be.

Each table is a decision. A new module has to be put into `LAYERS`; an exception needs a reason beside its name.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_MODULE_LINES = 300
MAX_FUNCTION_LINES = 25

LAYERS = (
    # What runs. A line may import from the lines above it, and from itself.
    "actors",
    "actors.errors",
    "actors.kit",
    "actors.protocol",
    "actors.lifecycle",
    "actors.policy",
    "actors.search",
    "actors.catalogue",
    "actors.messages",
    "actors.transport",
    "actors.directory",
    "actors.timers",
    "actors.calls",
    "actors.incarnation",
    "actors.reporter",
    "actors.vectors",
    "actors.indexer",
    "actors.registry",
    "actors.server",
    "actors.router",
    "actors.diagram",
    # What keeps it running and shows it.
    "supervisor",
    "supervisor.config",
    "supervisor.store",
    "supervisor.tokens",
    "supervisor.neural",
    "supervisor.sealed",
    "supervisor.datadir",
    "supervisor.logs",
    "supervisor.pauses",
    "supervisor.host",
    "supervisor.tree",
    "supervisor.memory",
    "supervisor.usage",
    "supervisor.room",
    "supervisor.journals",
    "supervisor.switch",
    "supervisor.servers",
    "supervisor.workbench",
    "supervisor.definitions",
    "supervisor.inventory",
    "supervisor.loose",
    "supervisor.fitting",
    "supervisor.metatools",
    "supervisor.resourcing",
    "supervisor.shown",
    "supervisor.synonyms",
    "supervisor.slips",
    "supervisor.counting",
    "supervisor.relay",
    "supervisor.service",
    "supervisor.service.availability",
    "supervisor.service.phrases",
    "supervisor.service.familiar",
    "supervisor.service.purposes",
    "supervisor.absentees",
    "supervisor.unmet",
    "supervisor.requests",
    "supervisor.keywords",
    "supervisor.mending",
    "supervisor.schemas",
    "supervisor.signatures",
    "supervisor.failures",
    "supervisor.listings",
    "supervisor.rows",
    "supervisor.answers",
    "supervisor.listed",
    "supervisor.discovery",
    "supervisor.front.service",
    "supervisor.forward",
    "supervisor.visible",
    "supervisor.introduction",
    "supervisor.service.arrival",
    "supervisor.service.lookup",
    "supervisor.toolcalls",
    "supervisor.reading",
    "supervisor.metacalls",
    "supervisor.gateway",
    "supervisor.front",
    "supervisor.control",
    "supervisor.daemon",
    "supervisor.client",
    "supervisor.commands",
    "supervisor.demo",
    "supervisor.commands.demo",
    "supervisor.cli",
    "supervisor.documents",
    "supervisor.__main__",
)

PURE = (
    "actors.errors",
    "actors.protocol.*",
    "actors.lifecycle",
    "actors.policy",
    "actors.messages",
    "actors.catalogue.*",
    "actors.search.*",
    "actors.diagram",
    "actors.transport.asides",
    "actors.transport.mask",
    "actors.transport.stderr_tail",
    "actors.transport.telltale",
    "actors.transport.stdio.installer",
    "supervisor.config.*",
    "supervisor.store.records",
    "supervisor.store.writes",
    "supervisor.sealed",
    "supervisor.definitions",
    "supervisor.loose",
    "supervisor.fitting",
    "supervisor.synonyms",
    "supervisor.slips",
    "supervisor.metatools",
    "supervisor.shown",
    "supervisor.slips",
    "supervisor.relay",
    "supervisor.failures",
    "supervisor.shown",
    "supervisor.keywords",
    "supervisor.mending",
    "supervisor.schemas",
    "supervisor.signatures",
    "supervisor.listings",
    "supervisor.rows",
    "supervisor.answers",
    "supervisor.discovery",
    "supervisor.service.availability",
    "supervisor.service.phrases",
    "supervisor.service.familiar",
    "supervisor.service.purposes",
    "supervisor.absentees",
    "supervisor.unmet",
    "supervisor.requests",
    "supervisor.inventory",
    "supervisor.resourcing",
    "supervisor.listed",
    "supervisor.front.guard",
    "supervisor.front.allowance",
    "supervisor.front.budget",
    "supervisor.front.classify",
    "supervisor.front.envelope",
    "supervisor.front.head",
    "supervisor.front.orders",
    "supervisor.front.param*",
    "supervisor.front.query",
    "supervisor.front.verdict",
    "supervisor.front.websocket_rules",
)
NOT_IN_PURE = frozenset(
    {"trio", "quart", "quart_trio", "hypercorn", "os", "time", "random", "socket", "subprocess", "logging", "threading"}
)

SYSTEM = {
    "actors.kit.want": "the system's own words for its errors",
    "actors.transport.command": "looks up programs and builds the environment of a child",
    "actors.transport.containment": "process groups and the kill shim",
    "actors.transport.descriptors": "the system's own words for want of them",
    "actors.transport.kill_shim": "is the shim, a program of its own",
    "actors.transport.orphans": "finds and kills descendants",
    "actors.transport.process": "starts and ends processes",
    "actors.transport.stdio.input": "writes to a pipe past the stream of trio, which does not say how much was taken",
    "supervisor.cli": "points stdout elsewhere when its reader is gone",
    "supervisor.commands.check": "reads the environment for the configuration",
    "supervisor.commands.run": "reads the environment for the configuration; outlives its terminal",
    "supervisor.daemon": "the hard end",
    "supervisor.host.signals": "is about signals",
    "supervisor.datadir": "locks and file modes",
    "supervisor.host.descriptors": "standard streams and limits",
    "supervisor.host.interrupt": "what Ctrl-C does while modules are loaded",
    "supervisor.host.hard_end": "ends the process whatever holds it up",
    "supervisor.logs": "writes to a file descriptor, past Python's buffers and their locks",
    "supervisor.demo.setting": "passes the environment on to the daemon it starts",
    "supervisor.demo.tour": "looks whether a process still lives",
    "supervisor.store.file": "file modes",
    "supervisor.front.connection": "a request is answered in one packet, past the stream of trio",
    "supervisor.tokens": "tiktoken is told its directory by the environment only",
}
"""Modules that may import `os` or `signal`, and what for."""

THIRD_PARTY = frozenset(
    {
        *("click", "httpx2", "hypercorn", "msgspec", "numpy", "quart", "quart_trio", "rapidfuzz", "rich"),
        *("Stemmer", "tiktoken", "trio", "trio_websocket"),
    }
)
MODULES = {"PyStemmer": "Stemmer"}
"""What distributions that are called otherwise are imported as."""
OPTIONAL = {("supervisor.neural.blas", "threadpoolctl"): "comes with the extra `neural`; without it there is no model"}
TRANSITIVE = {
    ("supervisor.front.app", "werkzeug"): "Quart raises werkzeug's HTTPException and has no name of its own for it",
    ("supervisor.front.http11", "h11"): "hypercorn's protocol is driven event by event, and the events are h11's",
    ("supervisor.front.websocket_frames", "wsproto"): "the same for the frames of a WebSocket",
}
"""Packages that only our dependencies depend on: each use may break without a release of ours."""

LONG_MODULES = {
    "actors.search.words_intents": "a table of rules",
    "actors.search.words_synonyms": "a table of words",
    "actors.server": "one actor: a state with many events, each handled in a few lines",
}


@cache
def modules() -> dict[str, Path]:
    """Every module of the two packages by its full name."""
    found = {}
    for package in ("actors", "supervisor"):
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text(encoding="utf-8"))


def imports(name: str) -> Iterator[str]:
    """Every module that `name` imports, also inside functions."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are absolute"
            assert node.module is not None
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in modules() else node.module


def layer(name: str) -> int:
    """The line of `LAYERS` with the longest name that `name` belongs to; a package's own name covers itself alone."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        prefix = ".".join(parts[:size])
        if prefix in LAYERS and (size > 1 or len(parts) == 1):
            return LAYERS.index(prefix)
    raise AssertionError(f"{name} has no place in LAYERS")


def is_pure(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in PURE)


def functions() -> Iterator[tuple[str, int]]:
    """Name and length in lines of every function, its docstring and decorators not counted."""
    for module in modules():
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                documented = ast.get_docstring(node) is not None and len(node.body) > 1
                text = node.body[0]
                docstring = (text.end_lineno or 0) - text.lineno + 1 if documented else 0
                yield f"{module}.{node.name}", node.end_lineno - node.lineno + 1 - docstring


@pytest.mark.parametrize("name", modules())
def test_a_module_imports_only_from_layers_above_it(name: str) -> None:
    wrong = [other for other in imports(name) if other.split(".")[0] in ("actors", "supervisor")]
    wrong = [other for other in wrong if layer(other) > layer(name)]
    assert wrong == []


def test_every_line_of_the_layers_is_a_module() -> None:
    assert set(LAYERS) <= modules().keys()
    assert len(set(LAYERS)) == len(LAYERS)


def test_actors_never_import_the_supervisor() -> None:
    importing = [name for name in modules() if name.startswith("actors") and "supervisor" in roots(name)]
    assert importing == []


def roots(name: str) -> set[str]:
    return {other.split(".")[0] for other in imports(name)}


@pytest.mark.parametrize("name", [name for name in modules() if is_pure(name)])
def test_a_pure_module_imports_nothing_that_acts(name: str) -> None:
    assert roots(name) & NOT_IN_PURE == set()


def test_every_pattern_of_pure_modules_fits_something() -> None:
    for pattern in PURE:
        assert any(fnmatch(name, pattern) for name in modules()), pattern


def test_only_named_modules_reach_for_the_operating_system() -> None:
    assert {name for name in modules() if roots(name) & {"os", "signal"}} <= SYSTEM.keys()


@pytest.mark.parametrize("name", modules())
def test_a_module_imports_only_declared_dependencies(name: str) -> None:
    ours = {"actors", "supervisor"}
    foreign = roots(name) - ours - THIRD_PARTY - sys.stdlib_module_names
    assert {package for package in foreign if (name, package) not in TRANSITIVE | OPTIONAL} == set()


def test_the_declared_dependencies_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[<>=]", wanted)[0].replace("-", "_") for wanted in project["dependencies"]}
    assert {MODULES.get(name, name) for name in names} == THIRD_PARTY


def test_modules_are_short_enough_to_be_read_at_once() -> None:
    lengths = {name: len(file.read_text(encoding="utf-8").splitlines()) for name, file in modules().items()}
    long = {name for name, length in lengths.items() if length > MAX_MODULE_LINES}
    assert long - LONG_MODULES.keys() == set()


def test_nine_of_ten_functions_are_short() -> None:
    lengths = [length for _, length in functions()]
    assert len(lengths) > 500
    assert statistics.quantiles(lengths, n=10)[8] <= MAX_FUNCTION_LINES


def test_a_package_marker_has_no_code_but_public_names() -> None:
    for name in modules():
        for node in tree(name).body if modules()[name].name == "__init__.py" else ():
            assert not isinstance(node, ast.FunctionDef | ast.ClassDef), name


def test_an_ignored_type_error_has_its_code_and_its_reason() -> None:
    marked = re.compile(r"#\s*type:\s*ignore(?P<rest>.*)")
    for name, file in modules().items():
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            found = marked.search(line)
            if found:
                assert re.fullmatch(r"\[[a-z-]+(, ?[a-z-]+)*\]\s+# \S.*", found["rest"]), f"{name}:{number}"


def test_nothing_queues_without_a_bound() -> None:
    for name in modules():
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("queue.Queue", "queue.SimpleQueue") or node.args, name
                if called.endswith("open_memory_channel"):
                    assert ast.unparse(node.args[0]) != "math.inf", name

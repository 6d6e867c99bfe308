"""The rules of the architecture, read from the source: who may import what.

Each table is a decision; an exception needs a reason beside its name. `tests/ratchet.toml` has what may only fall.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import pytest

from tests import sources
from tests.sources import ROOT, imports, is_marker, is_pure, modules, nodes_of, roots, tree

LAYERS = {
    "base": ["actors"],
    "actors": ["actors.instances", "actors.registry", "actors.router", "actors.server", "actors.transport"],
    "state": [
        f"supervisor.{name}"
        for name in (
            *("audit_trail", "config", "events", "fleet", "host", "identity", "metatools", "metrics", "neural"),
            *("operations", "phrases", "plugins", "store", "tokens", "tracing", "usage"),
        )
    ],
    "service": ["supervisor"],
    "programs": [
        f"supervisor.{name}"
        for name in (
            *("__main__", "bridge", "cli", "clients", "commands", "daemon_client", "demo", "operator_pass", "process"),
            "reference",
        )
    ],
}
"""From the base upwards. Of two places that a module is in, the longer name says where it belongs."""

LOOKS_AT_PATHS = frozenset({"exists", "is_file", "is_dir", "is_symlink", "isfile", "isdir", "islink", "listdir"})
"""Some raise for paths that nobody can look at (pathlib), some say that nothing is there (os.path)."""

NOT_IN_PURE = frozenset(
    {"trio", "quart", "quart_trio", "hypercorn", "os", "time", "random", "socket", "subprocess", "logging", "threading"}
)

SYSTEM = {
    "actors.kit.paths": "looks at paths that somebody else chose",
    "actors.kit.want": "the system's own words for its errors",
    "actors.transport.http.client": "the environment names proxies and certificates",
    "actors.transport.stdio": "processes of servers: started, contained, ended, and what they take of the machine",
    "supervisor.bridge": "pipes past the streams of trio, which would change their modes; the daemon that it starts",
    "supervisor.cli": "points stdout elsewhere when its reader is gone",
    "supervisor.commands": "the environment for the configuration; the machine that `doctor` looks at; terminals",
    "supervisor.delivery.sinks": "modes and links of a file, and lines that a full disk cut off",
    "supervisor.demo": "the daemon it starts, with its environment",
    "supervisor.fleet.machine": "nodes on one machine: started, signalled, ended",
    "supervisor.fleet.node_setup": "a node ends with the process that started it",
    "supervisor.front.edge.connection": "a request is answered in one packet, past the stream of trio",
    "supervisor.host": "is about the system",
    "supervisor.identity.operator_key": "modes of a file",
    "supervisor.operator_pass": "the environment has the token of its user",
    "supervisor.process": "where systemd listens is in the environment",
    "supervisor.servers.fleet.lease_guard": "a process beside the daemon, which looks for processes of it",
    "supervisor.servers.journals.files": "appends to files, with modes, and takes back what was half written",
    "supervisor.store.database": "file modes",
    "supervisor.tokens.counting": "tiktoken is told its directory by the environment only",
}
"""Modules and folders that may import `os` or `signal`, and what for."""

THIRD_PARTY = frozenset(
    {
        *(
            "authlib",
            "click",
            "cryptography",
            "httptools",
            "httpx2",
            "hypercorn",
            "joserfc",
            "msgspec",
            "numpy",
            "prometheus_client",
            "quart",
            "quart_trio",
            "rapidfuzz",
            "rich",
        ),
        *("Stemmer", "threadpoolctl", "tiktoken", "trio", "trio_websocket", "watchdog", "wsproto", "yaml"),
    }
)
MODULES = {"PyStemmer": "Stemmer", "PyYAML": "yaml"}
"""What distributions that are called otherwise are imported as."""
OPTIONAL = {
    ("supervisor.tracing.sdk", "opentelemetry"): "comes with the extra `otel`; without it there are no traces",
    ("supervisor.tracing.spans", "opentelemetry"): "the same",
    ("supervisor.fleet.valkey_engine", "coredis"): "comes with the extra `fleet`; without it a daemon is alone",
}
TRANSITIVE = {
    (
        "supervisor.front.pages.app",
        "werkzeug",
    ): "Quart raises werkzeug's HTTPException and has no name of its own for it",
    ("supervisor.front.pages.requests", "werkzeug"): "what Quart reads forms with, in a thread here",
    ("supervisor.front.ui.frame", "jinja2"): "the engine of templates that Quart stands on",
    ("supervisor.front.ui.frame", "werkzeug"): "as for the pages",
    ("actors.transport.http.client.client", "h11"): "the events that its connections count",
    (
        "actors.transport.http.client.client",
        "httpcore2",
    ): "httpx2 has no setting for how much its connections read at once",
    ("supervisor.config.values", "idna"): "what httpx2 writes names by, so that both take the same ones",
    ("actors.transport.websocket", "h11"): "trio-websocket raises its errors for headers that are no HTTP",
}
"""Packages that only our dependencies depend on: each use may break without a release of ours."""

UNUSED = {
    "supervisor.cli.Commands.list_commands": "called by click",
    "supervisor.cli.Commands.format_commands": "called by click",
    "supervisor.commands.config.set_": "called by click",
    "supervisor.commands.fleet.publish": "called by click",
    "supervisor.commands.config.unset": "called by click",
    "supervisor.commands.config.list_": "called by click",
    "supervisor.commands.token.create": "called by click",
    "supervisor.commands.token.list_": "called by click",
    "supervisor.commands.token.revoke": "called by click",
    "supervisor.front.edge.parser.RequestParser.on_url": "called by httptools",
    "supervisor.front.edge.parser.RequestParser.on_header": "called by httptools",
    "supervisor.front.edge.parser.RequestParser.on_headers_complete": "called by httptools",
    "supervisor.front.edge.parser.RequestParser.on_body": "called by httptools",
    "supervisor.front.edge.parser.RequestParser.on_message_complete": "called by httptools",
    "supervisor.host.logs.Writer.emit": "called by `logging`",
    "supervisor.host.turns.LoopClock.start_clock": "called by trio",
    "supervisor.host.turns.LoopClock.deadline_to_sleep_time": "called by trio",
    "supervisor.tracing.sdk.PerSecond.should_sample": "called by the SDK of OpenTelemetry",
    "supervisor.tracing.sdk.PerSecond.get_description": "called by the SDK of OpenTelemetry",
}
"""Public names that nothing but tests refers to, and what for they are there all the same."""

UNRAISED = {"SupervisorError": "the base of all of them"}
UNSENT: dict[str, str] = {}


def is_in(name: str, place: str) -> bool:
    """Whether a module is a place, or stands in it."""
    return name == place or name.startswith(f"{place}.")


@cache
def layer(name: str) -> int:
    """The layer that a module belongs to, from the base upwards."""
    places = {place: number for number, layer in enumerate(LAYERS.values()) for place in layer if is_in(name, place)}
    return places[max(places, key=len)]


def test_a_module_imports_nothing_from_a_layer_above_its_own() -> None:
    pairs = [(name, other) for name in modules() for other in imports(name) if other in modules()]
    assert [(name, other) for name, other in pairs if layer(other) > layer(name)] == []


def test_there_are_five_layers_of_what_is_there() -> None:
    assert len(LAYERS) == 5
    assert {place for layer in LAYERS.values() for place in layer} <= modules().keys()


def below(name: str, folder: str) -> str:
    """The room of a folder that a module stands in, or nothing."""
    return name.removeprefix(f"{folder}.").split(".")[0] if name.startswith(f"{folder}.") else ""


def circle(folder: str) -> list[str] | None:
    """Some rooms of a folder that import each other in a circle."""
    order: TopologicalSorter[str] = TopologicalSorter()
    for name in modules():
        if inner := below(name, folder):
            order.add(inner, *({below(wanted, folder) for wanted in imports(name)} - {inner, ""}))
    try:
        order.prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return None


def test_no_rooms_of_a_folder_import_each_other_in_a_circle() -> None:
    circles = {folder: circle(folder) for folder in modules() if is_marker(folder)}
    assert {folder: rooms for folder, rooms in circles.items() if rooms} == {}


def test_actors_never_import_the_supervisor() -> None:
    importing = [name for name in modules() if name.startswith("actors") and "supervisor" in roots(name)]
    assert importing == []


def test_a_pure_module_imports_nothing_that_acts() -> None:
    acting = {name: roots(name) & NOT_IN_PURE for name in modules() if is_pure(name)}
    assert {name: acts for name, acts in acting.items() if acts} == {}


def test_commands_that_are_told_to_people_are_quoted_for_a_shell() -> None:
    """What stands behind `mcpvisor WORDS` in an f-string is not: `actors.command_line` writes these."""
    told = re.compile(r"mcpvisor( [a-z-]+)+ $")
    assert [
        f"{name}:{node.lineno}"
        for name in modules()
        for node in nodes_of(name)
        if isinstance(node, ast.JoinedStr)
        for before, after in pairwise(node.values)
        if isinstance(before, ast.Constant) and isinstance(after, ast.FormattedValue) and told.search(str(before.value))
    ] == []


def test_only_named_places_reach_for_the_operating_system() -> None:
    reaching = [name for name in modules() if roots(name) & {"os", "signal"}]
    assert [name for name in reaching if not any(is_in(name, place) for place in SYSTEM)] == []
    assert [place for place in SYSTEM if not any(is_in(name, place) for name in reaching)] == []


def test_only_named_modules_look_whether_a_path_exists() -> None:
    looking = {
        name
        for name in modules()
        for node in nodes_of(name)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOKS_AT_PATHS
    }
    assert looking == {
        "actors.kit.paths",  # the one that raises nothing
        "actors.transport.stdio.kill_shim",  # in /proc alone
        "supervisor.neural.package",  # in a directory of ours, and whoever calls it is told of every `OSError`
        "supervisor.store.database",  # the same
    }


def test_a_module_imports_only_declared_dependencies() -> None:
    known = {"actors", "supervisor"} | THIRD_PARTY | sys.stdlib_module_names
    foreign = {(name, package) for name in modules() for package in roots(name) - known}
    assert foreign - TRANSITIVE.keys() - OPTIONAL.keys() == set()


def test_the_declared_dependencies_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[<>=]", wanted)[0].replace("-", "_") for wanted in project["dependencies"]}
    assert {MODULES.get(name, name) for name in names} == THIRD_PARTY


def test_an_ignored_type_error_has_its_code_and_its_reason() -> None:
    marked = re.compile(r"#\s*type:\s*ignore(?P<rest>.*)")
    for name, file in modules().items():
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            comment = marked.search(line)
            if comment:
                assert re.fullmatch(r"\[[a-z-]+(, ?[a-z-]+)*\]\s+# \S.*", comment["rest"]), f"{name}:{number}"


def test_what_coverage_does_not_count_has_its_reason() -> None:
    for name, file in modules().items():
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            assert "pragma" not in line or re.search(r"# pragma: no (cover|branch) - \S.*", line), f"{name}:{number}"


def test_nothing_queues_without_a_bound() -> None:
    for name in modules():
        for node in nodes_of(name):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("queue.Queue", "queue.SimpleQueue") or node.args, name
                if called.endswith("open_memory_channel"):
                    assert ast.unparse(node.args[0]) != "math.inf", name


# What is there is used ------------------------------------------------------------------------------------------------

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@cache
def programs() -> dict[str, tuple[ast.AST, ...]]:
    """All of the trees of the two packages, and of those beside them that a public name may be there for."""
    others = (file for folder in ("benchmarks", "docs", "examples") for file in sorted((ROOT / folder).rglob("*.py")))
    return {
        **{name: nodes_of(name) for name in modules()},
        **{str(file.relative_to(ROOT)): sources.nodes(file) for file in others},
    }


def names_of(node: ast.stmt) -> list[str]:
    """The public names that a statement defines."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            names = [node.name]
        case ast.Assign(targets=targets):
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            names = [name]
        case _:
            names = []
    return [name for name in names if not name.startswith("_")]


@cache
def loads(program: str) -> dict[str, list[int]]:
    """The lines on which a program reads each name of its own, quoted annotations aside."""
    lines: dict[str, list[int]] = {}
    for node in programs()[program]:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            lines.setdefault(node.id, []).append(node.lineno)
    return lines


@cache
def taken() -> frozenset[tuple[str, str]]:
    """Every (module, name) that some program takes out of another module, itself or as an attribute of it."""
    pairs: set[tuple[str, str]] = set()
    for program, parsed in programs().items():
        if is_marker(program):  # it passes on what others have to take
            continue
        bound: dict[str, str] = {}
        for node in parsed:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                pairs |= {(node.module, alias.name) for alias in node.names}
                bound |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                bound |= {alias.asname or alias.name: alias.name for alias in node.names}
        for node in parsed:
            if isinstance(node, ast.Attribute) and (module := bound.get(ast.unparse(node.value))) in modules():
                pairs.add((str(module), node.attr))
    for marker in filter(is_marker, modules()):
        for node in tree(marker).body:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names = {alias.name: alias.asname or alias.name for alias in node.names}
                pairs |= {(node.module, name) for name, shown in names.items() if (marker, shown) in pairs}
    return frozenset(pairs)


@cache
def attributes() -> frozenset[str]:
    """Every attribute that some program reads, also in a pattern."""
    read: set[str] = set()
    for parsed in programs().values():
        for node in parsed:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                read.add(node.attr)
            elif isinstance(node, ast.MatchClass):
                read |= set(node.kwd_attrs)
    return frozenset(read)


def is_marked(node: ast.stmt) -> bool:
    """Whether a function is a command of the command line, which loads it by its name, a tool of a demo server, or what
    performs an operation.
    """
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else ()
    return any(ast.unparse(each).startswith(("click.command", "server.tool", "performs(")) for each in decorators)


def unused(module: str) -> Iterator[str]:
    """The public names of a module, and the methods of its public classes, that nothing but tests refers to."""
    for node in tree(module).body:
        if is_marked(node):
            continue
        end = node.end_lineno or node.lineno
        for name in names_of(node):
            elsewhere = [line for line in loads(module).get(name, ()) if not node.lineno <= line <= end]
            if not elsewhere and (module, name) not in taken():
                yield f"{module}.{name}"
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            yield from (
                f"{module}.{node.name}.{name}"
                for method in methods
                for name in names_of(method)
                if name not in attributes()
            )


def test_every_public_name_is_used_outside_tests() -> None:
    names = {name for module in modules() if not is_marker(module) for name in unused(module)}
    assert names == UNUSED.keys()


@cache
def made() -> frozenset[str]:
    """Every class that is called, or raised without a call, in the two packages."""
    classes_made: set[str] = set()
    for module in modules():
        for node in nodes_of(module):
            if isinstance(node, ast.Call):
                classes_made.add(ast.unparse(node.func).split(".")[-1])
            elif isinstance(node, ast.Raise) and node.exc is not None:
                classes_made.add(ast.unparse(node.exc).split(".")[-1])
    return frozenset(classes_made)


def classes(module: str) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in tree(module).body if isinstance(node, ast.ClassDef)}


def test_every_documented_error_is_raised_somewhere() -> None:
    assert classes("actors.errors").keys() - made() == UNRAISED.keys()


@pytest.mark.parametrize("module", ["actors.messages", "actors.router", "actors.registry.actor", "actors.server.inbox"])
def test_every_message_is_sent_by_somebody(module: str) -> None:
    protocols = {name for name, node in classes(module).items() if "Protocol" in map(ast.unparse, node.bases)}
    actors = {name for name, node in classes(module).items() if any("Actor" in ast.unparse(b) for b in node.bases)}
    unsent = classes(module).keys() - made() - protocols - actors
    assert unsent == UNSENT.keys() & classes(module).keys()


def test_every_ask_of_a_server_says_who_asks() -> None:
    """The default is for tests: here it would make one principal's call another's without a word."""
    asks = {
        name
        for name, node in classes("actors.messages").items()
        if any(isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == "principal" for each in node.body)
    }
    assert asks == {"CallServer", "WakeServer", "SleepServer", "RestartServer", "RefreshServer"}
    for module in modules():
        for node in nodes_of(module):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in asks:
                assert "principal" in {each.arg for each in node.keywords}, f"{module}:{node.lineno}"


def test_every_exemption_is_needed() -> None:
    for name, package in TRANSITIVE | OPTIONAL:
        assert package in roots(name), f"{name} does not import {package}"
    for distribution, module in MODULES.items():
        assert distribution != module
        assert any(module in roots(name) for name in modules()), module
    known = {name for module in modules() for name in (*classes(module), module)}
    assert UNRAISED.keys() | UNSENT.keys() <= known

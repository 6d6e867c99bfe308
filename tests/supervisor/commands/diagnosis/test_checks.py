"""The checks of `doctor`, over facts made up for them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from supervisor.commands.diagnosis.checks import CHECKS, LEAST_FREE_BYTES, LITTLE_FREE_BYTES, diagnose
from supervisor.commands.diagnosis.facts import (
    DataFacts,
    Facts,
    MemoryFacts,
    PortFacts,
    ProgramFacts,
    RemoteFacts,
    SandboxFacts,
)
from supervisor.store.database import SCHEMA_VERSION

DATA = DataFacts(path="/data", mode=0o700, free_bytes=1 << 40, schema=SCHEMA_VERSION)
PORT = PortFacts(listen="127.0.0.1:3001")
WELL = Facts(version="1.2", python="3.12.1", file="mcp.json", servers=1, data=DATA, port=PORT, now=1000.0)
NPX = ProgramFacts(command="npx", path="/bin/npx", said="v22.1.0\n", servers=("a", "b"))
NO_DOCKER = "Cannot connect to the Docker daemon"
TROUBLE = (("it is broken", "mend it"),)


def said(check: str, facts: Facts) -> list[tuple[str, str, str]]:
    return [(each.status, each.seen, each.todo) for name, each in diagnose(facts) if name == check]


def test_where_all_is_well_nothing_is_to_do() -> None:
    verdicts = diagnose(WELL)
    assert {verdict.status for _, verdict in verdicts} == {"ok"}
    assert [name for name, _ in verdicts] == [
        *("installation", "configuration", "data directory", "database", "disk"),
        *("address", "open files", "clock"),
    ]


@pytest.mark.parametrize(
    ("sandbox", "expected"),
    [
        (SandboxFacts(servers=("a", "b"), path="/usr/bin/bwrap"), ("ok", "/usr/bin/bwrap makes one, for a, b", "")),
        (
            SandboxFacts(servers=("a",), trouble="No permissions", hint="allow it"),
            ("wrong", "no sandbox can be made: No permissions, for a", "allow it"),
        ),
    ],
)
def test_whether_the_sandboxes_that_servers_ask_for_can_be_made(
    sandbox: SandboxFacts, expected: tuple[str, str, str]
) -> None:
    assert said("sandbox", replace(WELL, sandbox=sandbox)) == [expected]


def test_a_package_of_the_same_name_is_told() -> None:
    clash = 'the package "supervisor" is also installed by "x": install mcpvisor into an environment of its own'
    (first, second) = said("installation", replace(WELL, clashes=(clash,)))
    assert first == ("warning", clash.partition(": ")[0], "install mcpvisor into an environment of its own")
    assert second == ("ok", "mcpvisor 1.2, Python 3.12.1", "")


def test_the_configuration_is_told_as_it_is() -> None:
    ((status, seen, _),) = said("configuration", replace(WELL, unusable="mcp.json:1: no"))
    assert (status, seen) == ("wrong", "mcp.json:1: no")
    assert [status for status, *_ in said("configuration", replace(WELL, problems=("x",), notes=2))] == [
        "wrong",
        "warning",
    ]
    (warning, fine) = said("configuration", replace(WELL, notes=1, servers=2))
    assert warning == ("warning", "1 note on the configuration", "mcpvisor check mcp.json")
    assert fine == ("ok", "mcp.json: 2 servers", "")


@pytest.mark.parametrize(
    ("data", "status", "seen"),
    [
        (replace(DATA, troubles=TROUBLE), "wrong", "it is broken"),
        (replace(DATA, writable=False), "wrong", "cannot write"),
        (replace(DATA, mode=None), "ok", "made at the first start"),
        (replace(DATA, mode=0o755), "warning", "mode 0755"),
        (DATA, "ok", "/data, mode 0700"),
    ],
)
def test_the_data_directory_is_there_and_ours_alone(data: DataFacts, status: str, seen: str) -> None:
    ((was, text, _),) = said("data directory", replace(WELL, data=data))
    assert was == status
    assert seen in text


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        (None, []),
        (LEAST_FREE_BYTES - 1, ["wrong"]),
        (LEAST_FREE_BYTES, ["warning"]),
        (LITTLE_FREE_BYTES, ["ok"]),
    ],
)
def test_the_disk_has_room(free: int | None, expected: list[str]) -> None:
    assert [status for status, *_ in said("disk", replace(WELL, data=replace(DATA, free_bytes=free)))] == expected


@pytest.mark.parametrize(
    ("program", "status", "seen", "todo"),
    [
        (NPX, "ok", "Node.js 22.1.0, /bin/npx, for a, b", ""),
        (replace(NPX, servers=tuple("abcdefg")), "ok", "Node.js 22.1.0, /bin/npx, for a, b, c, d, e and 2 more", ""),
        (replace(NPX, said="v16.20.0"), "wrong", "Node.js 16.20.0, /bin/npx, for a, b: too old", "install Node.js"),
        (replace(NPX, said="v16.20.0", servers=()), "warning", "Node.js 16.20.0, /bin/npx: too old", "install Node.js"),
        (replace(NPX, said=""), "warning", "/bin/npx, for a, b does not say its version", "npx --version"),
        (replace(NPX, path="", trouble="no", hint="get it"), "wrong", "npx: no, for a, b", "get it, or write its"),
        (replace(NPX, path="", trouble="x", servers=()), "ok", "npx is not here, and no server needs it", ""),
        (ProgramFacts(command="my", trouble="x", servers=("a",)), "wrong", "my: x, for a", "install it, or write its"),
        (ProgramFacts(command="/my", trouble="x", servers=("a",)), "wrong", "/my: x, for a", "correct the path"),
        (ProgramFacts(command="my", path="/my", servers=("a",)), "ok", "/my, for a", ""),
        (
            ProgramFacts(command="docker", path="/d", said=NO_DOCKER, servers=("a",)),
            "wrong",
            "/d does not work, for a",
            "start Docker",
        ),
        (
            ProgramFacts(command="docker", path="/d", said="Cannot connect to the Docker daemon"),
            "warning",
            "/d",
            "start",
        ),
    ],
)
def test_a_program_is_demanded_where_a_server_needs_it(
    program: ProgramFacts, status: str, seen: str, todo: str
) -> None:
    ((was, text, advice),) = said("programs", replace(WELL, programs=(program,)))
    assert was == status
    assert text.startswith(seen)
    assert todo in advice
    assert bool(advice) is (status != "ok")


def test_a_limit_of_files_under_which_servers_take_turns_is_told() -> None:
    ((status, seen, todo),) = said("open files", replace(WELL, descriptors=64, enough=100))
    assert (status, seen) == ("warning", "64 files may be open; all servers at once need 100")
    assert "ulimit -n" in todo


def test_memory_that_is_too_little_to_start_a_server_is_told() -> None:
    memory = MemoryFacts(total=2 << 30, available=80 << 20, reserve=100 << 20)
    ((status, seen, todo),) = said("memory", replace(WELL, memory=memory))
    assert (status, seen) == ("warning", "80 MiB of 2.0 GiB are free, 100 MiB stay free of servers")
    assert "memory.reserve_mib" in todo
    assert [status for status, *_ in said("memory", replace(WELL, memory=replace(memory, reserve=0)))] == ["ok"]


def test_of_each_limit_it_is_told_how_it_is_kept() -> None:
    limits = {
        "a": {"max_memory_mib": "watched", "max_processors": "not enforced"},
        "b": {"max_memory_mib": "watched", "max_open_files": "kernel"},
    }
    told = said("limits of servers", replace(WELL, limits=limits))
    assert [(status, seen) for status, seen, _ in told] == [
        ("ok", "max_memory_mib of a, b: looked at every few seconds; who is over it is replaced"),
        ("ok", "max_open_files of b: the kernel lets nobody over it"),
        ("warning", "max_processors of a is without effect here"),
    ]
    assert "Delegate=yes" in told[-1][2]


texts = st.text(max_size=8)
names = st.lists(texts, max_size=7).map(tuple)
pairs = st.lists(st.tuples(texts.filter(bool), texts.filter(bool)), max_size=2).map(tuple)
programs: Any = st.builds(
    ProgramFacts,
    command=st.sampled_from(["npx", "uvx", "docker", "python3", "/x/y", "z"]),
    path=texts.filter(bool),
    trouble=texts,
    said=texts | st.sampled_from(["v16.1.0", "v22.0.0", "Cannot connect to the Docker daemon"]),
    servers=names,
)
sizes = st.none() | st.integers(0, 1 << 40)
facts_of: Any = st.builds(
    Facts,
    version=texts,
    python=texts,
    clashes=st.lists(st.just("a: b"), max_size=2).map(tuple),
    unusable=texts,
    problems=st.lists(texts.filter(bool), max_size=3).map(tuple),
    notes=st.integers(0, 3),
    data=st.builds(
        DataFacts,
        mode=st.none() | st.integers(0, 0o777),
        writable=st.booleans(),
        free_bytes=st.none() | st.integers(0, 1 << 40),
        troubles=pairs,
        schema=st.integers(0, SCHEMA_VERSION),
        damage=texts,
    ),
    programs=st.lists(programs, max_size=3).map(tuple),
    port=st.builds(PortFacts, listen=texts, daemon=texts, troubles=pairs),
    descriptors=st.integers(0, 100),
    enough=st.integers(0, 100),
    newest=st.floats(0, 1e6),
    memory=st.builds(MemoryFacts, total=sizes, available=sizes, reserve=st.integers(0, 1 << 40)),
    limits=st.dictionaries(
        texts, st.dictionaries(texts, st.sampled_from(["kernel", "watched", "not enforced"])), max_size=3
    ),
    proxies=st.dictionaries(texts, texts, max_size=2),
    loopback_excepted=st.booleans(),
    remotes=st.lists(
        st.builds(RemoteFacts, server=texts, host=texts, proxy=texts, trouble=st.none() | texts), max_size=3
    ).map(tuple),
)


@given(facts_of)
def test_whatever_is_not_well_has_something_to_do_and_nothing_else_has(facts: Facts) -> None:
    known = {name for name, _ in CHECKS}
    for name, verdict in diagnose(facts):
        assert name in known
        assert verdict.seen
        assert bool(verdict.todo) is (verdict.status != "ok"), (name, verdict)

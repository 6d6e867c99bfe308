"""What a node of a machine is told at its start: read back as it was written, and nothing else is taken for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from actors.errors import ConfigError
from supervisor.config.sections import FleetSettings
from supervisor.fleet.node_setup import MAX_SETUP_BYTES, PARENT_GONE, NodeSetup, decode_setup, encode_setup, take_setup

KEY = "k" * 64
SETUP = NodeSetup(
    number=2,
    machine="host",
    listen="127.0.0.1:3001",
    fleet=FleetSettings(nodes=3),
    engine="unix:///e",
    key=KEY,
    lock_fd=9,
)


@given(
    st.builds(
        NodeSetup,
        number=st.integers(1, 64),
        machine=st.text(max_size=70),
        listen=st.text(max_size=70),
        fleet=st.builds(
            FleetSettings, engine=st.text(max_size=40), keys=st.tuples(st.text(max_size=40)), nodes=st.just(2)
        ),
        engine=st.text(max_size=40),
        key=st.text(max_size=64),
        private=st.lists(st.text(max_size=20), max_size=3).map(tuple),
        lock_fd=st.integers(3, 1000),
    )
)
def test_it_is_read_as_it_was_written(setup: NodeSetup) -> None:
    line = encode_setup(setup)
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
    assert decode_setup(line) == setup


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_what_nobody_has_written_is_refused(line: bytes) -> None:
    with pytest.raises(ConfigError, match="cannot be read from its standard input"):
        decode_setup(line)


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": 0},
        {"number": 65},
        {"number": "2"},
        {"lock_fd": 2},
        {"lock_fd": None},
        {"more": 1},
        {"fleet": {"nodes": 1000}},
        {"machine": "x" * MAX_SETUP_BYTES},
    ],
)
def test_a_setup_with_a_fault_is_refused_and_shows_no_key(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as refused:
        decode_setup(msgspec.json.encode({**msgspec.to_builtins(SETUP), **wrong}))
    assert KEY not in str(refused.value)
    assert KEY not in repr(SETUP)


def test_a_node_has_a_name_and_a_port_of_its_own_and_the_rest_in_common() -> None:
    assert SETUP.settings_of(SETUP.fleet) == FleetSettings(
        nodes=3, engine="unix:///e", node="host-2", listen="127.0.0.1:0", keys=(KEY,)
    )
    assert (SETUP.lock_of_data, replace(SETUP, number=1).lock_of_data) == (None, 9)


@pytest.mark.parametrize(
    ("listen", "own"),
    [("10.0.0.1:0", "10.0.0.1:0"), ("10.0.0.1:4000", "10.0.0.1:4001"), ("[::1]:4000", "[::1]:4001"), ("x", "x")],
)
def test_where_others_reach_a_node_follows_from_what_is_written(listen: str, own: str) -> None:
    assert SETUP.settings_of(FleetSettings(listen=listen)).listen == own


def test_an_engine_and_keys_that_are_configured_are_used() -> None:
    written = FleetSettings(nodes=2, engine="redis://e", keys=("a" * 32, "b" * 32), node="other")
    own = replace(SETUP, engine="", key="", fleet=written, machine="other").settings_of(written)
    assert (own.engine, own.keys, own.node) == (written.engine, written.keys, "other-2")


def test_a_file_that_says_something_else_by_now_is_different() -> None:
    running = SETUP.settings_of(SETUP.fleet)
    for newer in (
        FleetSettings(nodes=2),
        FleetSettings(nodes=1),
        FleetSettings(nodes=3, engine="redis://e", keys=("a" * 32,)),
        FleetSettings(nodes=3, lease_s=5),
    ):
        assert SETUP.settings_of(newer) != running
    assert SETUP.settings_of(FleetSettings(nodes=3)) == running


TAKES = """
import os, sys, time
from supervisor.fleet.node_setup import take_setup
setup = take_setup()
print(setup.name, os.get_inheritable(setup.lock_fd), flush=True)
time.sleep(600)
"""


def test_a_node_ends_at_once_when_whoever_started_it_does() -> None:
    ends = os.pipe()
    given = encode_setup(replace(SETUP, lock_fd=ends[0])).decode()
    try:
        with subprocess.Popen(
            [sys.executable, "-c", TAKES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=ends[:1], text=True
        ) as node:
            assert node.stdin is not None
            assert node.stdout is not None
            node.stdin.write(given)
            node.stdin.flush()
            assert node.stdout.readline() == "host-2 False\n"
            node.stdin.close()
            assert node.wait(60) == PARENT_GONE
    finally:
        for end in ends:
            os.close(end)


@pytest.mark.parametrize("written", [encode_setup(replace(SETUP, lock_fd=100_000)), b"", b"{}\n", b"x" * 200_000])
def test_what_is_no_setup_ends_the_start(written: bytes, tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(written)
    with (tmp_path / "input").open("rb") as file, pytest.raises(ConfigError):
        take_setup(file.fileno())

"""How much memory servers may take together, as the configuration says it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.errors import ConfigError
from actors.transport.stdio.resources.allotment import MemoryBounds
from supervisor.config.expansion import DEFAULT
from supervisor.config.load import Configuration, parse
from supervisor.config.provenance import EffectiveValue, explain_daemon


def read(memory: Any) -> Configuration:
    text = json.dumps({"mcpServers": {}, "supervisor": {"memory": memory}})
    return parse(text, Path("/etc/mcp.json"), {})


def test_it_is_said_in_mib_and_meant_in_bytes() -> None:
    written = {"limit_mib": 4096, "reserve_mib": 0, "pressure_percent": 5, "_comment": "x"}
    assert read(written).settings.memory.bounds == MemoryBounds(
        limit_bytes=4 << 30, reserve_bytes=0, pressure_percent=5.0
    )
    assert read({}).settings.memory.bounds == MemoryBounds()


@pytest.mark.parametrize(
    ("memory", "key", "message"),
    [
        ({"limit": 1}, "supervisor.memory.limit", "unknown key"),
        ({"limit_mib": 0}, "supervisor.memory.limit_mib", "must be a whole number of MiB from 1 to"),
        ({"pressure_percent": 101}, "supervisor.memory.pressure_percent", "must be a number of percent from 0"),
        (7, "supervisor.memory", "must be an object"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(memory: Any, key: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(memory)
    assert refused.value.key == key
    assert message in refused.value.message


def test_each_of_them_is_explained() -> None:
    nowhere = EffectiveValue(key="data_dir", value="/data", origin=DEFAULT)
    values = {each.key: each for each in explain_daemon(read({"limit_mib": 9}), nowhere, {})}
    assert (values["memory.limit_mib"].value, values["memory.limit_mib"].origin.source) == (9, "file")
    assert (values["memory.reserve_mib"].value, values["memory.reserve_mib"].origin.source) == (None, "default")

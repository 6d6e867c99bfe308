"""Which model is asked for sentences is read whole, or it is said what is wrong where; its key is never shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.errors import ConfigError
from supervisor.config.expansion import DEFAULT
from supervisor.config.load import parse
from supervisor.config.provenance import EffectiveValue, explain_daemon
from supervisor.config.sections import DescribeSettings
from supervisor.config.values import SeveralErrors

KEY = "the-key-of-a-service-0000"
ENVIRONMENT = {"KEY": KEY, "PLACE": "/opt/models"}
GOOD = {"url": "https://models.example.com/v1", "model": "small", "key": "${KEY}"}


def written(describe: Any) -> str:
    return json.dumps({"mcpServers": {}, "supervisor": {"describe": describe}})


def read(describe: Any) -> DescribeSettings:
    return parse(written(describe), Path("/etc/mcp.json"), ENVIRONMENT).settings.describe


@pytest.mark.parametrize(
    ("describe", "is_on", "called"),
    [
        (GOOD, True, "small"),
        ({"command": ["${PLACE}/ask", "--json"]}, True, "ask"),
        ({"url": "http://127.0.0.1:11434/v1", "model": "small"}, True, "small"),
        ({"url": "http://models.lan/v1", "model": "small", "insecure_http": True}, True, "small"),
        ({"sampling": True}, True, "the model of a client"),
        ({"_comment": "later"}, False, ""),
        ({}, False, ""),
    ],
)
def test_a_model_is_behind_a_service_or_a_program_or_there_is_none(describe: Any, is_on: bool, called: str) -> None:
    settings = read(describe)
    assert settings.is_on == is_on
    assert not is_on or settings.called == called
    assert (settings.tools_per_day, settings.batch, settings.timeout_s) == (1000, 10, 120.0)


def test_the_key_is_filled_in_and_shown_to_nobody() -> None:
    settings = read(GOOD)
    assert settings.key == KEY
    assert KEY not in repr(settings)
    configuration = parse(written(GOOD), Path("/etc/mcp.json"), ENVIRONMENT)
    place = EffectiveValue(key="data_dir", value="/x", origin=DEFAULT)
    shown = {each.key: each for each in explain_daemon(configuration, place, ENVIRONMENT)}
    assert (shown["describe.key"].value, shown["describe.model"].value) == ("***", "small")
    assert (shown["describe.key"].origin.source, shown["describe.batch"].origin.source) == ("file", "default")
    assert KEY not in repr(shown)


@pytest.mark.parametrize(
    ("describe", "fault"),
    [
        ([], "describe: must be an object"),
        ({"batch": 3}, "describe: asks nobody"),
        ({**GOOD, "command": ["ask"]}, "describe.command: stands beside a url"),
        ({**GOOD, "sampling": True}, "describe.sampling: stands beside a model"),
        ({"sampling": False}, "describe: asks nobody"),
        ({"command": ["ask", ""]}, "describe.command: has an empty word"),
        ({"command": "ask"}, "describe.command: must be a list"),
        ({"url": "https://models.example.com/v1"}, "describe.model: is missing"),
        ({**GOOD, "url": "http://models.example.com/v1"}, "describe.url: is not encrypted"),
        ({**GOOD, "url": "models.example.com"}, "describe.url: is not an address"),
        ({**GOOD, "url": "https://me:secret@models.example.com"}, "describe.url: is not an address"),
        ({**GOOD, "url": "https://models.example.com/v1?key=1"}, "describe.url: is not an address"),
        ({**GOOD, "key": "${KEY}\n"}, "describe.key: cannot be sent in a header"),
        ({**GOOD, "key": "${NONE}"}, "describe: the environment variable NONE is not set"),
        ({**GOOD, "tools_per_day": 0}, "describe.tools_per_day: must be"),
        ({**GOOD, "modle": "x"}, "describe.modle: unknown key"),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_without_the_key(describe: Any, fault: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(describe)
    error = refused.value
    text = "\n".join(
        f"{each.key}: {each.message}" for each in (error.errors if isinstance(error, SeveralErrors) else [error])
    )
    assert f"supervisor.{fault}" in text
    assert KEY not in str(error)

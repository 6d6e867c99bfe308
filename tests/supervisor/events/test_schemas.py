"""Every kind is an event type, whose schemas say what is sent and what may be asked for."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from actors.errors import InvalidArguments
from supervisor.events.event import DaemonEvent
from supervisor.events.kinds import KINDS, OfServer
from supervisor.events.schemas import definition_of, read_filter
from tests.supervisor.events.test_audience import ANA, filled, of_launch

NAMES = [*KINDS]


def entry(name: str) -> Any:
    return json.loads(bytes(definition_of(name)))


def without_additions(schema: Any) -> Any:
    """The same schema, which takes no member that it does not name."""
    if isinstance(schema, dict):
        closed = {"additionalProperties": False} if "properties" in schema else {}
        return closed | {key: without_additions(value) for key, value in schema.items()}
    return schema


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_is_a_type_that_says_all_of_itself(name: str) -> None:
    type_ = entry(name)
    assert type_["name"] == name
    assert type_["description"]
    assert "](" not in json.dumps(type_), "a link leads nowhere from here"
    for schema in (type_["inputSchema"], type_["payloadSchema"]):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert all(each["description"] for each in schema["properties"].values())
    assert type_["payloadSchema"]["properties"].keys() == set(KINDS[name].__struct_fields__)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_sent_is_what_the_schema_says(name: str) -> None:
    kind, validator = KINDS[name], Draft202012Validator(without_additions(entry(name)["payloadSchema"]))
    needed = {field.name for field in msgspec.structs.fields(kind) if field.required}
    least = msgspec.structs.asdict(filled(kind))
    for launch in ("a", "c~ana"):
        data = of_launch(kind, launch)
        heard = ANA.hears(DaemonEvent(number=1, time=0.0, data=data, principal=ANA.principal))
        bare = kind(**{field: least[field] for field in needed})
        for told in (data, bare, *([heard] if heard is not None else [])):
            validator.validate(json.loads(msgspec.json.encode(told)))


def test_a_schema_tells_what_does_not_fit() -> None:
    validator = Draft202012Validator(entry("mcp.server.crashed")["payloadSchema"])
    assert not validator.is_valid({"server_id": "a", "server_slug": "a", "installation_id": "a"})


@pytest.mark.parametrize("name", NAMES)
def test_what_may_be_asked_for_is_what_is_read(name: str) -> None:
    schema = entry(name)["inputSchema"]
    kind = KINDS[name]
    assert ("server" in schema["properties"]) is ("server_slug" in kind.__struct_fields__)
    assert not issubclass(kind, OfServer) or "server" in schema["properties"]
    validator = Draft202012Validator(schema)
    for asked in (
        {},
        {"server": "a"},
        {"tool": "a"},
        {"server": ""},
        {"server": 1},
        {"server": "a" * 257},
        {"node": "a"},
    ):
        if validator.is_valid(asked):
            read_filter(kind, json.dumps(asked).encode())
        else:
            with pytest.raises(InvalidArguments):
                read_filter(kind, json.dumps(asked).encode())


@pytest.mark.parametrize(
    ("asked", "server", "tool", "passes"),
    [
        ({}, None, "run", True),
        ({"server": "git"}, "git", "run", True),
        ({"server": "git"}, "github", "run", False),
        ({"server": "git*"}, "github", "run", True),
        ({"server": "*"}, None, "run", False),
        ({"server": "git", "tool": "r*"}, "git", "run", True),
        ({"server": "git", "tool": "r*"}, "git", "stop", False),
    ],
)
def test_arguments_narrow_what_is_told(asked: Any, server: str | None, tool: str, passes: bool) -> None:
    kind = KINDS["mcp.tool.executed"]
    data = filled(kind, server_slug=server, tool_name=tool)
    assert read_filter(kind, json.dumps(asked).encode()).passes(data) is passes

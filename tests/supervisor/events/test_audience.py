"""A member hears of no server that is not theirs, and of a shared one nothing that depends on others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.principal import LOCAL, Principal
from supervisor.events.event import DaemonEvent, EventReader, encode
from supervisor.events.kinds import KINDS, EventData, OfServer
from supervisor.identity.people import principal_of

FILLED: dict[str, Any] = {"tools": (), "problems": (), "added": ("canary",), "input_schema": None}
LAUNCHES = ("a", "b", "c~ana", "c~both", "c~ben")


def filled(kind: type[EventData], **fields: Any) -> EventData:
    """Return data of a kind with something in each field."""
    made: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        type_ = msgspec.inspect.type_info(field.type)
        if isinstance(type_, msgspec.inspect.UnionType):
            type_ = next(each for each in type_.types if not isinstance(each, msgspec.inspect.NoneType))
        value: Any = {
            msgspec.inspect.StrType: "canary",
            msgspec.inspect.IntType: 7,
            msgspec.inspect.FloatType: 7.0,
            msgspec.inspect.BoolType: True,
            msgspec.inspect.VarTupleType: (),
            msgspec.inspect.DictType: {},
        }[type(type_)]
        made[field.name] = value
    return kind(**{**made, **fields})


def of_launch(kind: type[EventData], launch: str) -> EventData:
    slug = launch.partition("~")[0]
    if not issubclass(kind, OfServer):
        return filled(kind)
    return filled(kind, server_id=slug, server_slug=slug, installation_id=launch, transport="stdio")


def reader(user: str, launch: str, *servers: str, gone: frozenset[str] = frozenset()) -> EventReader:
    return EventReader(
        principal=principal_of(user),
        user=user,
        servers=frozenset(servers),
        launches={"c": launch},
        is_alone=lambda each: each == f"c~{user}",
        gone=gone,
    )


ANA = reader("ana", "c~ana", "a", "c")
KIND = st.sampled_from([*KINDS.values()])


@given(KIND, st.sampled_from(LAUNCHES), st.sampled_from([LOCAL, principal_of("ana"), principal_of("ben")]))
def test_nothing_of_others_gets_through(kind: type[EventData], launch: str, principal: Principal) -> None:
    event = DaemonEvent(number=1, time=0.0, data=of_launch(kind, launch), principal=principal, revision=9)
    data = ANA.hears(event)
    if data is None:
        return
    text = encode(event, "1-1", data)
    assert b"revision" not in text
    assert b"~" not in text
    if kind.audience == "caller":
        assert principal == ANA.principal
    elif launch != "c~ana":
        assert msgspec.json.decode(text)["data"].keys() == {"server_id", "server_slug", "installation_id", "transport"}
        assert kind.audience in ("entry", "server")
        assert launch == "a" or (kind.audience == "entry" and launch.startswith("c~"))
        assert b"canary" not in text
    else:
        assert isinstance(data, OfServer)
        assert (data.installation_id, data.user_id, data.team_id) == ("c", "ana", None)


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.audience == "launch"])
def test_of_a_server_that_is_theirs_alone_they_hear_all(kind: type[EventData]) -> None:
    event = DaemonEvent(number=1, time=0.0, data=of_launch(kind, "c~ana"))
    assert ANA.hears(event) is not None
    assert reader("ben", "c~ben", "a", "c").hears(event) is None
    both = DaemonEvent(number=1, time=0.0, data=of_launch(kind, "c~both"))
    assert reader("ana", "c~both", "c").hears(both) is None, "others have that launch, too"


def test_a_server_that_was_theirs_is_told_to_be_gone() -> None:
    event = DaemonEvent(number=1, time=0.0, data=of_launch(KINDS["mcp.server.unregistered"], "b"))
    assert ANA.hears(event) is None
    assert reader("ana", "c~ana", "a", gone=frozenset({"b"})).hears(event) is not None


def test_there_are_kinds_for_each_audience() -> None:
    assert {kind.audience for kind in KINDS.values()} == {"entry", "server", "launch", "caller", "auditors"}

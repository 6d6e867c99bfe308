"""What a row of the store must look like. SQLite keeps any value, whatever the type of its column says."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from actors.principal import Principal
from supervisor.store.records import EraName

log = logging.getLogger(__name__)

Row = TypeVar("Row", bound=msgspec.Struct)


class ServerRow(msgspec.Struct, frozen=True, array_like=True):
    """The catalogue of one server."""

    name: str
    digest: str
    payload: bytes
    updated_at: float


class EraRow(msgspec.Struct, frozen=True, array_like=True):
    """The era verdict of one launch."""

    digest: str
    era: EraName
    updated_at: float


class EndedSessionRow(msgspec.Struct, frozen=True, array_like=True):
    """One session that was ended."""

    id: str
    expires_at: float


class GrantRow(msgspec.Struct, frozen=True, array_like=True):
    """One login at a server."""

    principal: Principal
    server: str
    issuer: str
    resource: str
    sealed: bytes


class DisabledRow(msgspec.Struct, frozen=True, array_like=True):
    """One server that an operator has switched off."""

    name: str
    updated_at: float


class VectorRow(msgspec.Struct, frozen=True, array_like=True):
    """What stands for one text in the search."""

    digest: bytes
    levels: bytes


class UsageRow(msgspec.Struct, frozen=True, array_like=True):
    """The usage of one tool by one principal."""

    principal: Principal
    server: str
    tool: str
    calls: Annotated[int, msgspec.Meta(ge=0)]
    failures: Annotated[int, msgspec.Meta(ge=0)]
    total_ms: Annotated[float, msgspec.Meta(ge=0)]
    waited_ms: Annotated[float, msgspec.Meta(ge=0)]


def checked(kind: type[Row], fetched: Sequence[Any]) -> list[Row]:
    """Return the rows whose values have the right types; the log tells how many have not."""
    rows: list[Row] = []
    for row in fetched:
        with contextlib.suppress(msgspec.ValidationError):
            rows.append(msgspec.convert(row, kind, builtin_types=(bytes,)))
    if len(rows) < len(fetched):
        log.warning("%d rows of the database are not as they should be and are not used", len(fetched) - len(rows))
    return rows

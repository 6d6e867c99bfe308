"""What a request for a page says: its parameters, and where it comes from.

- Every parameter is a field of a struct, and whatever is wrong has a name. A field that is a tuple may be given several
  times or with commas; `true`, `false`, `1` and `0` are the booleans.
- `Host` does not tell whether a request comes from this machine, as any program can write it. The address of the socket
  does, unless a proxy on this machine passes on what others sent; proxies say so in a header (RFC 7239, and the older
  ones).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar, get_type_hints

import msgspec
from quart import request

from actors.errors import InvalidArguments, SupervisorError
from actors.protocol.wire.json import fault
from supervisor.front.guard import is_from_here
from supervisor.front.pages.rights import REQUESTER
from supervisor.identity.operator_key import OperatorKey, endpoint

S = TypeVar("S", bound=msgspec.Struct)
SCHEME: Final = "bearer"


class FromElsewhere(SupervisorError, kind="refused"):
    """Orders are taken from this machine only."""


class NoKey(SupervisorError, kind="refused"):
    """Who changes the configuration has to show that it may read the daemon's files."""


def decode(pairs: Iterable[tuple[str, str]], type_: type[S]) -> S:
    """Return the struct that the parameters describe. Raises `InvalidArguments` that names the parameter."""
    hints = get_type_hints(type_, include_extras=True)
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in hints:
            known = sorted(hints)
            raise InvalidArguments(
                f"there is no parameter {name[:60]!a}; known are: {', '.join(known)}", details={"known": known}
            )
        given.setdefault(name, []).append(value)
    for field in msgspec.structs.fields(type_):
        if field.required and field.name not in given:
            raise _wrong(field.name, "it is needed")
    return type_(**{name: _value(name, values, hints[name]) for name, values in given.items()})


def _value(name: str, values: list[str], hint: Any) -> Any:
    described = msgspec.json.schema(hint)
    several = described.get("type") == "array"
    if len(values) > 1 and not several:
        raise _wrong(name, "it was given more than once")
    raw = [part.strip() for value in values for part in value.split(",") if part.strip()] if several else values[0]
    try:
        return msgspec.convert(raw, hint, strict=False)
    except msgspec.ValidationError as error:
        choices = _choices(described)
        raise _wrong(name, f"known are: {', '.join(choices)}" if choices else fault(error)[1]) from None


def _choices(described: dict[str, Any]) -> list[str]:
    options = [described, *described.get("anyOf", ())]
    return [str(value) for option in options for value in option.get("enum", ()) if value is not None]


def _wrong(name: str, why: str) -> InvalidArguments:
    return InvalidArguments(f"the parameter {name!r}: {why}", details={"parameter": name})


def check_from_here(scope: Any) -> None:
    """Raise `FromElsewhere` for a request whose ASGI scope says that it comes from another machine.

    Whoever has shown who they are may come from anywhere.
    """
    if REQUESTER.get().is_proven:
        return
    (address, _), (own, _) = scope.get("client") or ("", 0), scope.get("server") or ("", 0)
    if not address or not is_from_here(address, own, (name for name, _ in scope["headers"])):
        raise FromElsewhere(
            "orders are taken from the machine only that the daemon runs on, and not through a proxy: give this one "
            "there with the command `mcpvisor` (in a container: docker exec)"
        )


def check_key(operator: OperatorKey, what: str, command: str) -> None:
    """Raise `NoKey` for a request of somebody who has not shown that they may do `what`, for which there is a command.

    Who they are, or that they may read the daemon's files, which a program that only reaches its address may not.
    """
    check_from_here(request.scope)
    if REQUESTER.get().is_proven:
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    shown = given.strip() if scheme.lower() == SCHEME else ""
    end = endpoint(request.scope.get("server") or ("", 0))
    path = bytes(request.scope["raw_path"]).partition(b"?")[0].decode("ascii")
    if not operator.admits(shown, end, request.method, path):
        raise NoKey(
            f"{what} takes the key in page.key of the daemon's data directory, in hexadecimal digits: Authorization: "
            f"Bearer KEY; the command is mcpvisor {command}",
            details=dict(operator.challenge(end)),
        )

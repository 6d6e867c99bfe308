"""What a request for a page says, who asks, and whether they may.

- Who may ask for what is in the table of operations. A page that somebody may not see answers as one that there is not:
  what a role lacks is no reason to log in, and no business of whoever lacks it. What is not in the table is for an
  admin.
- Every parameter is a field of a struct, and whatever is wrong has a name. A field that is a tuple may be given several
  times or with commas; `true`, `false`, `1` and `0` are the booleans.
- A body that was made for that takes long to read: it is read beside the loop, one at a time, and what has more fields
  than any form of ours is refused before it is taken apart.
- `Host` does not tell whether a request comes from this machine, as any program can write it. The address of the socket
  does, unless a proxy on this machine passes on what others sent; proxies say so in a header (RFC 7239, and the older
  ones).
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, Final, TypeVar, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from quart import abort, current_app, request
from werkzeug.exceptions import HTTPException
from werkzeug.formparser import FormDataParser
from werkzeug.http import parse_options_header

from actors.errors import InvalidArguments, SupervisorError
from actors.protocol.wire import json
from actors.protocol.wire.json import fault
from supervisor.front.edge.request import HttpRequest
from supervisor.front.guard import is_from_here
from supervisor.host.workbench import Workbench
from supervisor.identity.audit import Audit
from supervisor.identity.operator_key import OperatorKey, endpoint
from supervisor.identity.requester import THE_OPERATOR, Requester
from supervisor.operations import role_for

REQUESTER: Final[ContextVar[Requester]] = ContextVar("requester", default=THE_OPERATOR)
"""Who asks for the page that is being made."""


async def check_right(audit: Audit) -> None:
    """Answer 404 for a page that whoever asks may not see."""
    rule = request.url_rule
    if rule is not None and not admits(audit, REQUESTER.get(), request.method, rule.rule):
        abort(404)
    if getattr(request.routing_exception, "code", 0) == 405 and not _may_ask_otherwise():
        abort(404)


def _may_ask_otherwise() -> bool:
    """Say whether somebody may ask for the page at this address by another method than by this one."""
    adapter = current_app.create_url_adapter(request)
    assert adapter is not None, "inside of a request there is one"
    rules = {method: adapter.match(method=method, return_rule=True)[0] for method in adapter.allowed_methods()}
    return any(may_ask(REQUESTER.get(), method, rule.rule) for method, rule in rules.items())


def admits(audit: Audit, requester: Requester, method: str, rule: str) -> bool:
    """Say whether somebody may ask for a page; that they may not is recorded."""
    if may_ask(requester, method, rule):
        return True
    audit.tally("page.ask", f"{method} {rule}", outcome="refused", detail="not for this role")
    return False


def may_ask(requester: Requester, method: str, rule: str) -> bool:
    needed = role_for(method, rule)
    return needed is None or requester.person.may(needed)


def set_requester(request: HttpRequest) -> None:
    """Let the pages that are made in this task know who asks."""
    REQUESTER.set(request.requester)


S = TypeVar("S", bound=msgspec.Struct)
_SCHEME: Final = "bearer"


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
    shown = given.strip() if scheme.lower() == _SCHEME else ""
    end = endpoint(request.scope.get("server") or ("", 0))
    path = bytes(request.scope["raw_path"]).partition(b"?")[0].decode("ascii")
    if not operator.admits(shown, end, request.method, path):
        raise NoKey(
            f"{what} takes the key in page.key of the daemon's data directory, in hexadecimal digits: Authorization: "
            f"Bearer KEY; the command is mcpvisor {command}",
            details=dict(operator.challenge(end)),
        )


T = TypeVar("T")

_MAX_PARTS: Final = 1000
_MAX_HEAD_BYTES: Final = 4096
"""Of one part, with the name of its input; a head is searched with patterns, each of which is one call into C."""


class Unreadable(Exception):
    """This is no form that was filled in; the text says why."""


async def read_fields(bench: Workbench, most: int = _MAX_PARTS) -> dict[str, str]:
    """Return what was filled into the form of the present request, the first of each name. Raises `InvalidArguments`
    for what is none or has more than `most` fields, and `TooManyCalls`.
    """
    body: bytes = await request.get_data()  # type: ignore[assignment]  # a text only if one is asked for
    return await bench.run(len(body), _fields, request.content_type or "", body, most)


def _fields(kind: str, body: bytes, most: int) -> dict[str, str]:
    mime, _ = parse_options_header(kind[:_MAX_HEAD_BYTES])
    if mime != "application/x-www-form-urlencoded" or _is_long(body, most):  # before anything is made of it
        raise InvalidArguments(f"this is no form, or has more than {most} fields")
    fields: dict[str, str] = {}
    for name, value in parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True, errors="replace"):
        fields.setdefault(name, value)
    return fields


async def read_json(bench: Workbench, decoder: msgspec.json.Decoder[T], has: str = "") -> T:
    """Return what the body of the present request has. Raises `InvalidArguments`, `TooManyCalls`.

    `has`: what a body has, which is said in place of what is wrong with this one: that may tell of secrets in it.
    """
    body = await request.get_data()
    try:
        return await bench.run(len(body), json.read, decoder, body)
    except json.UnreadableJson as error:
        raise InvalidArguments(f"the body cannot be used: {has or error}") from None


def read_form(kind: str, body: bytes) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return what was typed or chosen, and the files in base64, by the names of the inputs; `kind` is the content type.

    Raises `Unreadable` for what is none, or does not say which button was pressed.
    """
    mime, options = parse_options_header(kind[:_MAX_HEAD_BYTES])
    boundary = options.get("boundary", "").encode()
    in_parts = mime == "multipart/form-data"
    if (in_parts and (not boundary or _has_a_long_head(body, boundary))) or (not in_parts and _is_long(body)):
        raise Unreadable("The form cannot be read.")
    parser = FormDataParser(lambda *_, **__: io.BytesIO(), max_form_parts=_MAX_PARTS, silent=False)
    try:
        _, fields, sent = parser.parse(io.BytesIO(body), mime, len(body), options)
    except (HTTPException, ValueError):
        raise Unreadable("The form cannot be read, or has too many parts.") from None
    typed = fields.to_dict(flat=False)
    if typed.get("action") not in (["accept"], ["decline"]):
        raise Unreadable("The form does not say which button was pressed: go back and try again.")
    return typed, {name: base64.b64encode(file.read()).decode() for name, file in sent.items()}


def _is_long(body: bytes, most: int = _MAX_PARTS) -> bool:
    return body.count(b"&") >= most


def _has_a_long_head(body: bytes, boundary: bytes) -> bool:
    parts = body.split(b"--" + boundary, _MAX_PARTS + 2)
    return any(part.find(b"\r\n\r\n", 0, _MAX_HEAD_BYTES) < 0 and len(part) > _MAX_HEAD_BYTES for part in parts)

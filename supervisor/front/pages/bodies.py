"""The bodies of requests for pages: forms that were filled in, and JSON.

A body that was made for that takes long to read: it is read beside the loop, one at a time, and what has more fields
than any form of ours is refused before it is taken apart.
"""

from __future__ import annotations

import base64
import io
from typing import Final, TypeVar
from urllib.parse import parse_qsl

import msgspec
from quart import request
from werkzeug.exceptions import HTTPException
from werkzeug.formparser import FormDataParser
from werkzeug.http import parse_options_header

from actors.errors import InvalidArguments
from actors.protocol.wire import json
from supervisor.host.workbench import Workbench

T = TypeVar("T")

MAX_PARTS: Final = 1000
MAX_HEAD_BYTES: Final = 4096
"""Of one part, with the name of its input; a head is searched with patterns, each of which is one call into C."""


class Unreadable(Exception):
    """This is no form that was filled in; the text says why."""


async def read_fields(bench: Workbench, most: int = MAX_PARTS) -> dict[str, str]:
    """Return what was filled into the form of the present request, the first of each name. Raises `InvalidArguments`
    for what is none or has more than `most` fields, and `TooManyCalls`.
    """
    body: bytes = await request.get_data()  # type: ignore[assignment]  # a text only if one is asked for
    return await bench.run(len(body), _fields, request.content_type or "", body, most)


def _fields(kind: str, body: bytes, most: int) -> dict[str, str]:
    mime, _ = parse_options_header(kind[:MAX_HEAD_BYTES])
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
    mime, options = parse_options_header(kind[:MAX_HEAD_BYTES])
    boundary = options.get("boundary", "").encode()
    in_parts = mime == "multipart/form-data"
    if (in_parts and (not boundary or _has_a_long_head(body, boundary))) or (not in_parts and _is_long(body)):
        raise Unreadable("The form cannot be read.")
    parser = FormDataParser(lambda *_, **__: io.BytesIO(), max_form_parts=MAX_PARTS, silent=False)
    try:
        _, fields, sent = parser.parse(io.BytesIO(body), mime, len(body), options)
    except (HTTPException, ValueError):
        raise Unreadable("The form cannot be read, or has too many parts.") from None
    typed = fields.to_dict(flat=False)
    if typed.get("action") not in (["accept"], ["decline"]):
        raise Unreadable("The form does not say which button was pressed: go back and try again.")
    return typed, {name: base64.b64encode(file.read()).decode() for name, file in sent.items()}


def _is_long(body: bytes, most: int = MAX_PARTS) -> bool:
    return body.count(b"&") >= most


def _has_a_long_head(body: bytes, boundary: bytes) -> bool:
    parts = body.split(b"--" + boundary, MAX_PARTS + 2)
    return any(part.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES) < 0 and len(part) > MAX_HEAD_BYTES for part in parts)

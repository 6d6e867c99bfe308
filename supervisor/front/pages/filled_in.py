"""What a browser sends of a form that was filled in. What is made for that takes long to read: read it in a thread."""

from __future__ import annotations

import base64
import io
from typing import Final

from werkzeug.exceptions import HTTPException
from werkzeug.formparser import FormDataParser
from werkzeug.http import parse_options_header

MAX_PARTS: Final = 1000
MAX_HEAD_BYTES: Final = 4096
"""Of one part, with the name of its input; a head is searched with patterns, each of which is one call into C."""


class Unreadable(Exception):
    """This is no form that was filled in; the text says why."""


def read_form(kind: str, body: bytes) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return what was typed or chosen, and the files in base64, by the names of the inputs; `kind` is the content type.

    Raises `Unreadable` for what is none, or does not say which button was pressed.
    """
    mime, options = parse_options_header(kind[:MAX_HEAD_BYTES])
    boundary = options.get("boundary", "").encode()
    if mime == "multipart/form-data" and (not boundary or _has_a_long_head(body, boundary)):
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


def _has_a_long_head(body: bytes, boundary: bytes) -> bool:
    parts = body.split(b"--" + boundary, MAX_PARTS + 2)
    return any(part.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES) < 0 and len(part) > MAX_HEAD_BYTES for part in parts)

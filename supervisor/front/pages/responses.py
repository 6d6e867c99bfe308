"""Answers of pages: JSON, and what went wrong as JSON with its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from quart import Response

from actors.errors import (
    CallTimedOut,
    InvalidArguments,
    LoginFailed,
    MailboxFull,
    ServerDisabled,
    ServerError,
    ShuttingDown,
    SupervisorError,
    UnknownServer,
)
from supervisor.front.pages.this_machine import FromElsewhere

STATUSES: tuple[tuple[type[SupervisorError], int], ...] = (
    (FromElsewhere, 403),
    (UnknownServer, 404),
    (ServerDisabled, 409),
    (InvalidArguments, 400),
    (MailboxFull, 503),
    (ShuttingDown, 503),
    (CallTimedOut, 504),
    (ServerError, 502),
    (LoginFailed, 502),
)
"""The HTTP status of each error; the first that fits."""


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """`body` is JSON text (bytes), or a value that becomes it."""
    text = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return Response(text, status=status, content_type="application/json", headers=dict(headers or {}))


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return json_response({"error": {"code": status, "message": message}}, status, headers)


def error_body(error: SupervisorError) -> tuple[int, bytes]:
    """Return the HTTP status of an error, and the body that says what it is."""
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
    return status, msgspec.json.encode({"error": {"code": status, "message": error.message, "data": error.data()}})

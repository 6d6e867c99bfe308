"""The application of the pages, by Quart.

Rules of this file:
- Nothing is global and nothing runs in the application: no lifespan, no `app.nursery`, no background task. A daemon
  may have any number of these.
- A page raises what is wrong, and here it becomes JSON with its status. None carries the text of a bug.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from quart import Response, make_response
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from actors.errors import SupervisorError
from actors.kit import is_want, reason_of
from supervisor.front.pages.responses import error_body, error_response, json_response

log = logging.getLogger(__name__)

_HARDENING = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}
_KEPT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")


def create_app(register: Callable[[QuartTrio], None]) -> QuartTrio:
    """Return the application of all pages; `register` adds their routes. Who hands bodies over bounds them."""
    app = QuartTrio(__name__, static_folder=None)
    # Quart's own logger would get a handler that writes to stderr, which may be a pipe that nobody reads.
    app.logger = log
    app.config.update(
        RESPONSE_TIMEOUT=None,  # the default cuts every stream after 60 s
        BODY_TIMEOUT=None,  # it is here when a page is asked for
        PROVIDE_AUTOMATIC_OPTIONS=False,  # there is no CORS: a preflight gets 405
    )
    app.register_error_handler(HTTPException, _on_http_error)
    app.register_error_handler(SupervisorError, _on_error)
    for kind in (OSError, RuntimeError, MemoryError):
        app.register_error_handler(kind, _on_want)
    app.after_request(_harden)
    register(app)
    return app


async def _on_error(error: SupervisorError) -> Response:
    status, body = error_body(error)
    return json_response(body, status)


async def _on_http_error(error: HTTPException) -> Any:
    status = error.code or 500
    if status < 400 or error.response is not None:  # a redirect, or a response a route made by itself
        return await make_response(error.get_response())
    message = "internal error; the daemon's log says more" if status >= 500 else error.description or error.name
    headers = {name: value for name, value in error.get_headers() if name in _KEPT_HEADERS}
    return error_response(status, message, headers)


async def _on_want(error: Exception) -> Response:
    """Answer 503 for want of resources; any other exception is the bug that it was."""
    if not is_want(error):
        raise error
    log.debug("a page was not made for want: %s", reason_of(error))
    message = f"the daemon lacks what this page needs ({reason_of(error)}); /api/status says what is degraded"
    return error_response(503, message, {"Retry-After": "1"})


async def _harden(response: Response) -> Response:
    for name, value in _HARDENING.items():
        response.headers.setdefault(name, value)
    return response

"""A call that fails by our own doing as a result that a model is shown; what a server answers passes as it is."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from actors.errors import SupervisorError
from supervisor.service.asking.exchange import Exchange
from supervisor.service.calls import failures
from supervisor.service.fitting.relay import with_member
from supervisor.service.parts import ServiceParts


async def run_shown(parts: ServiceParts, exchange: Exchange, call: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
    """Return the result of a call of a tool. Raises what is the client's matter, and errors of servers."""
    try:
        return await call()
    except SupervisorError as error:
        if failures.is_for_client(error):
            raise
        said = failures.result(error, parts.deployment.value.unset(error.server or ""))
    return said if exchange.client.era == "legacy" else with_member(said, b'"resultType":"complete"')

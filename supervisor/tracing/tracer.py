"""Opens the tracer of a daemon, if its configuration wants traces: the SDK is imported only then."""

from __future__ import annotations

from typing import Final

import trio

from actors.errors import ConfigError
from actors.kit import is_want
from supervisor.config import Settings
from supervisor.tracing.context import Tracer

_MISSING = "traces need the SDK of OpenTelemetry, which is not installed"
_INSTALL = "install the extra: pip install 'mcpvisor[otel]', or remove \"tracing\""

_CLOSE_S: Final = 2.0
"""For what waits to be sent at the end."""


def open_tracer(settings: Settings) -> Tracer | None:
    """Return the tracer, None where no traces are wanted. Blocks while it imports. Raises `ConfigError`."""
    if not settings.tracing:
        return None
    try:
        from supervisor.tracing.sdk import SdkTracer, otlp_exporter
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise ConfigError(_MISSING, key="supervisor.tracing", hint=_INSTALL) from None
    return SdkTracer(settings, otlp_exporter(settings))


async def close_tracer(tracer: Tracer | None) -> None:
    """Send what waits, for a moment; what is not sent by then is lost."""
    if tracer is None:
        return
    with trio.move_on_after(_CLOSE_S):
        try:
            await trio.to_thread.run_sync(tracer.close, abandon_on_cancel=True)
        except RuntimeError as error:
            if not is_want(error):
                raise

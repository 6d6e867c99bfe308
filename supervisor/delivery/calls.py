"""From a call to the event about it: made only where somebody reads it. Pure."""

from __future__ import annotations

from typing import Final

from supervisor.events.event import USUAL_BYTES, DaemonEvent
from supervisor.events.other_kinds import ToolExecuted
from supervisor.identity.people import team_of, user_of
from supervisor.usage.records import CallRecord

MAX_NAME_CHARS: Final = 200


def event_of(number: int, record: CallRecord) -> DaemonEvent:
    """Return the `number`-th event: a call has ended."""
    return DaemonEvent(
        number=number, time=record.time, data=_data(record), size=USUAL_BYTES, principal=record.principal
    )


def _data(record: CallRecord) -> ToolExecuted:
    return ToolExecuted(
        server_slug=record.server[:MAX_NAME_CHARS] or None,
        tool_name=record.tool[:MAX_NAME_CHARS],
        definition_digest=record.definition.hex() or None,
        user_id=user_of(record.principal) or None,
        team_id=team_of(record.principal) or None,
        client_name=record.client or None,
        success=record.outcome == "ok",
        outcome=record.outcome,
        error_type=record.error or None,
        response_time_ms=round(record.took_ms, 3),
        waited_ms=round(record.waited_ms, 3) or None,
        request_bytes=record.bytes_in or None,
        response_bytes=record.bytes_out or None,
        tokens_shown=record.tokens_shown or None,
        tokens_saved=record.tokens_saved or None,
    )

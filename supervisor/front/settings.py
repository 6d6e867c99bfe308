"""What the parts of the front are told of the settings: by name where it has the same name there. Pure.

The rest is what has another name because a connection or a frame has limits, too, or what is computed.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from supervisor.config import Settings
from supervisor.front.edge.serve import ServeSettings
from supervisor.front.edge.wire import FrameSettings
from supervisor.front.websocket.settings import WebSocketSettings

FAREWELL_S = 2.0
"""For the last answers to leave, once no call is in flight any more."""


def websocket_settings(settings: Settings) -> WebSocketSettings:
    """Return the bounds of one WebSocket: `max_in_flight` and `drain_s` of the daemon are others than its own."""
    return WebSocketSettings(
        max_queued_messages=settings.max_sockets_queue,
        list_changed_min_interval_s=settings.list_changed_min_interval_s,
        list_changed_debounce_s=settings.list_changed_debounce_s,
        stall_s=settings.websocket_stall_s,
        drain_s=settings.drain_within_s + FAREWELL_S / 2,  # before the sockets are closed under whoever is left
    )


def serve_settings(settings: Settings) -> ServeSettings:
    """Return the limits of connections and of the frames on them."""
    frames = FrameSettings(
        max_message_bytes=settings.websocket_max_message_bytes,
        control_frames_per_s=settings.websocket_control_frames_per_s,
        message_timeout_s=settings.body_timeout_s,
        ping_s=settings.websocket_ping_s,
    )
    limits = msgspec.convert(settings, ServeSettings, from_attributes=True)
    return replace(limits, frames=frames, graceful_timeout_s=settings.drain_within_s + FAREWELL_S)


def buffered_bytes(settings: Settings) -> int:
    """Return the limit of the budget; the largest request has room in it, when it is alone."""
    return max(settings.max_buffered_bytes, settings.max_body_bytes, settings.websocket_max_message_bytes)

"""What the HTTP front can be told, as one value. The names are those of the configuration."""

from __future__ import annotations

import msgspec

from supervisor.front.http.redelivery import Bounds


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and times of MCP over HTTP; times in seconds."""

    path: str = "/mcp"
    session_idle_s: float = 1800.0
    session_max_age_s: float = 86_400.0
    max_sessions: int = 10_000
    sse_keepalive_s: float = 15.0
    """Pause between the comments of a quiet stream, and the time after which a request becomes one."""
    tcp_user_timeout_s: float = 5.0
    """After this time without a sign of it, what was written has arrived, or the connection is over."""
    list_changed_min_interval_s: float = 1.0
    list_changed_debounce_s: float = 0.25
    max_body_bytes: int = 4 * 1024 * 1024
    body_timeout_s: float = 30.0
    resume_s: float = 120.0
    resume_max_events: int = 256
    resume_max_session_bytes: int = 1024 * 1024
    resume_max_bytes: int = 64 * 1024 * 1024

    @property
    def redelivery(self) -> Bounds:
        return Bounds(
            kept_s=self.resume_s,
            max_events=self.resume_max_events,
            max_session_bytes=self.resume_max_session_bytes,
            max_bytes=self.resume_max_bytes,
        )

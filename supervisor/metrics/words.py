"""Values of labels that clients and servers have a say in, so that there is a bound to how many there are. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from actors import codes
from actors.errors import SupervisorError
from actors.protocol.agreement.versions import LEGACY_VERSIONS, MODERN_VERSIONS
from actors.protocol.listing import METHODS
from actors.protocol.wire.jsonrpc import RemoteError
from supervisor.metatools import definitions
from supervisor.metrics.families import OTHER

UNNAMED: Final = "_OTHER"
"""What OpenTelemetry calls an error that has no name of its own."""
TOOL_ERROR: Final = "tool_error"
"""A result that says that the tool failed."""
KNOWN_METHODS: Final = frozenset(
    {*codes.NAMED_BY, *METHODS.values(), *codes.REMOVED, *codes.ADDED, "completion/complete", "tasks/result"}
)
KNOWN_VERSIONS: Final = frozenset({*LEGACY_VERSIONS, *MODERN_VERSIONS})
_CODES: Final = frozenset(str(value) for value in vars(codes).values() if isinstance(value, int))
CANCELLED: Final = "cancelled"
KNOWN: Final = 256
"""So many words are remembered: every call has the same ones, and looking them up costs nothing then."""


@lru_cache(maxsize=KNOWN)
def method_label(method: str) -> str:
    return method if method in KNOWN_METHODS else OTHER


@lru_cache(maxsize=KNOWN)
def version_label(version: str) -> str:
    return version if version in KNOWN_VERSIONS else OTHER


@lru_cache(maxsize=KNOWN)
def tool_label(tool: str) -> str:
    """Return a meta-tool, or that it was another one; empty for what is no call of a tool."""
    return tool if not tool or tool in definitions.NAMES else OTHER


@lru_cache(maxsize=KNOWN)
def request_labels(method: str, error: str, version: str, tool: str) -> tuple[str, str, str, str, str]:
    """Return the labels of a request of a client, which is about a `tool` or empty."""
    return method_label(method), error, "tcp", version_label(version), tool_label(tool)


def error_label(error: BaseException | None) -> str:
    """Return what kind of error it is: the code of a server's error, our own word, empty for none."""
    match error:
        case None:
            return ""
        case RemoteError():
            return code_label(error.error.code)
        case SupervisorError():
            return error.kind
        case Exception():
            return UNNAMED
    return CANCELLED


def code_label(code: int) -> str:
    return str(code) if str(code) in _CODES else UNNAMED

"""One call of a tool, as it is remembered: nothing of what was said in it. Pure."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, Protocol, get_args

import msgspec

from actors.principal import LOCAL, Principal

CallOutcome = Literal["ok", "tool_error", "error", "timeout", "cancelled", "rejected", "unknown"]
"""How a call ended: with a result; with one that says it failed (`isError`); with an error; too late; given up by its
client; refused by us, so that the server did not hear of it; or nobody knows what its server has done."""
OUTCOMES: Final[tuple[CallOutcome, ...]] = get_args(CallOutcome)
UNHEARD: Final[frozenset[CallOutcome]] = frozenset(("rejected", "cancelled"))
"""Calls that ended so say nothing about their tool: they were refused by us or by who was asked, or given up."""
FAILED: Final[frozenset[CallOutcome]] = frozenset(OUTCOMES) - UNHEARD - {"ok"}
"""Calls that ended so have failed, wherever failures are counted: a result that says so is none that helped."""
MAX_CLIENT_CHARS: Final = 64


class CallArguments(NamedTuple):
    """What a call was given, as JSON, and the schema of its tool; of both as it was written."""

    arguments: msgspec.Raw
    schema: msgspec.Raw = msgspec.Raw(b"")


class CallRecord(msgspec.Struct, kw_only=True, array_like=True, gc=False):
    """A call that ended at `time` (unix s, set by the ledger).

    `server` is empty for a meta-tool, `tool` is the server's own name of it, `definition` the digest of what the server
    says of it. It took `took_ms` after it had waited `waited_ms` for its server; 0 is what was not measured. Sizes are
    bytes: of the arguments, and of the result in the era of the client. Tokens: of what a model was shown, and those
    that it was spared thereby.
    """

    time: float = 0.0
    principal: Principal = LOCAL
    client: str = ""
    server: str = ""
    tool: str
    outcome: CallOutcome = "ok"
    took_ms: float = 0.0
    waited_ms: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0
    tokens_shown: int = 0
    tokens_saved: int = 0
    error: str = ""
    """The type of the error, as in its `data.type`."""
    era: str = ""
    definition: bytes = b""


class Used(Protocol):
    """Told of each call that ended, and what it was given; it knows the time."""

    def __call__(self, record: CallRecord, given: CallArguments | None = None) -> None: ...

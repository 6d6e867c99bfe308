"""One call of a tool, as it is remembered: nothing of what was said in it. Pure."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, Protocol, get_args

import msgspec

from actors.principal import LOCAL, Principal

CallOutcome = Literal["ok", "tool_error", "error", "timeout", "cancelled", "rejected", "unreached", "unknown"]
"""How a call ended: with a result; with one that says it failed (`isError`); with an error; too late; given up by its
client; refused by us; its server was not up, or not in time; or nobody knows what its server has done."""
OUTCOMES: Final[tuple[CallOutcome, ...]] = get_args(CallOutcome)
NOT_SENT: Final[frozenset[CallOutcome]] = frozenset(("rejected", "unreached"))
"""Calls that ended so never reached their server; the `outcome` of their errors is `not_sent`, too."""
UNHEARD: Final[frozenset[CallOutcome]] = NOT_SENT | {"cancelled"}
"""Calls that ended so say nothing about their tool: they never reached it, or were given up."""
FAILED: Final[frozenset[CallOutcome]] = frozenset(OUTCOMES) - UNHEARD - {"ok"}
"""Calls that ended so have failed, wherever failures are counted: a result that says so is none that helped."""
UNKNOWN: Final = "_unknown"
"""In the place of a server or a tool that is not known: what clients make up is one name wherever calls are summed."""
MAX_CLIENT_CHARS: Final = 64
MAX_NAMED_CHARS: Final = 128


class CallArguments(NamedTuple):
    """What a call was given, as JSON, and the schema of its tool; of both as it was written."""

    arguments: msgspec.Raw
    schema: msgspec.Raw = msgspec.Raw(b"")


class CallRecord(msgspec.Struct, kw_only=True, array_like=True, gc=False):
    """A call that ended at `time` (unix s, set by the ledger).

    `server` is empty for a meta-tool, `tool` is the server's own name of it, `definition` the digest of what the server
    says of it; `named` is the beginning of what the client wrote for a tool that is not known. It took `took_ms` after
    it had waited `waited_ms` for its server; 0 is what was not measured. Sizes are bytes: of the arguments, and of the
    result in the era of the client. Tokens: of what a model was shown, and those that it was spared thereby.
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
    named: str = ""


class Used(Protocol):
    """Told of each call that ended, and what it was given; it knows the time."""

    def __call__(self, record: CallRecord, given: CallArguments | None = None) -> None: ...

"""Addresses that people are asked to open, by the ids that a server gave, and who hears that a visit is over. Pure.

A server tells that outside of any call (MCP 2025-11-25, client/elicitation "Completion Notifications for URL Mode
Elicitation"). Only who was given an id hears of it, and once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from actors.codes import URL_ELICITATION_REQUIRED
from actors.protocol.agreement.client_capabilities import ELICIT
from actors.protocol.asking.input_required import MAX_REQUESTS, InputRequest
from actors.protocol.asking.questions import refusal
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import ErrorObject, encode

COMPLETE: Final = "notifications/elicitation/complete"
MAX_VISITS: Final = 1024
"""Of one server; the oldest is forgotten first."""
MAX_ID_BYTES: Final = 512
MAX_ERROR_BYTES: Final = 65_536
"""Of an error that names addresses to be opened first."""
LASTS_S: Final = 3600.0
"""For a person to be done at an address."""

Visitor = Callable[[str], bool]
"""Notes for one client that the visit of this id is over. Never waits; False if that was dropped."""


def id_of(params: msgspec.Raw) -> str:
    """Return the id that a question, or the note of its end, gives a visit; empty if none that can be kept."""
    id_ = json.text_at(params, "elicitationId")
    return id_ if len(id_.encode(errors="surrogatepass")) <= MAX_ID_BYTES else ""


def _elicitations_of(error: ErrorObject) -> list[dict[str, msgspec.Raw]]:
    if error.code != URL_ELICITATION_REQUIRED or len(error.data) > MAX_ERROR_BYTES:
        return []
    return json.read_or(json.OBJECTS, json.at(error.data, "elicitations"), [])


def ids_in(error: ErrorObject) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_ for each in _elicitations_of(error) if (id_ := id_of(msgspec.Raw(encode(each))))))


def requests_in(error: ErrorObject) -> dict[str, InputRequest]:
    """Return the questions of an error for a client of the modern era, where a visit has no id."""
    requests = {}
    for number, each in enumerate(_elicitations_of(error)[:MAX_REQUESTS], 1):
        params = msgspec.Raw(encode({name: value for name, value in each.items() if name != "elicitationId"}))
        if refusal(ELICIT, params) is None:
            requests[f"question-{number}"] = InputRequest(ELICIT, params)
    return requests


class Visits:
    """Those of one server that are not over. Moments are seconds of any one clock."""

    def __init__(self) -> None:
        self._begun: OrderedDict[tuple[str, Visitor], float] = OrderedDict()
        self._visitors: dict[str, dict[Visitor, int]] = {}

    def give(self, id_: str, visitor: Visitor, call: int, now: float) -> None:
        self._expire(now)
        self._begun[id_, visitor] = now
        self._begun.move_to_end((id_, visitor))
        self._visitors.setdefault(id_, {})[visitor] = call
        if len(self._begun) > MAX_VISITS:
            self._forget_oldest()

    def over(self, id_: str, now: float) -> dict[Visitor, int]:
        """A visit is over: return who was given this id, and during which call each."""
        self._expire(now)
        visitors = self._visitors.pop(id_, {})
        for visitor in visitors:
            del self._begun[id_, visitor]
        return visitors

    def _expire(self, now: float) -> None:
        while self._begun and next(iter(self._begun.values())) <= now - LASTS_S:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        (id_, visitor), _ = self._begun.popitem(last=False)
        del self._visitors[id_][visitor]
        if not self._visitors[id_]:
            del self._visitors[id_]

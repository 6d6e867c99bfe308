"""What servers may ask, whoever it is for, what they hear of it meanwhile, and where nobody answers. Pure.

(MCP 2025-11-25 client/elicitation, client/sampling, client/roots; basic/utilities/progress: either side may ask for
that, and tokens are minted anew in this direction, too. A server of the modern era asks by results, which have none;
see `input_required`.)
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from actors.codes import URL_ELICITATION_REQUIRED
from actors.errors import CannotAsk
from actors.protocol.agreement.capabilities import ASKED_BY, ELICIT, FORM, URL, mode_of
from actors.protocol.asking.forms import defaults
from actors.protocol.asking.input_required import MAX_REQUESTS, InputRequest
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import ErrorObject, canonical, encode
from actors.protocol.wire.peer import Answered, Malformed, Refused

Fallback = Literal["cancel", "default", "error"]
"""What a server gets where nobody answers in time: a cancelled form, its defaults, an error."""

MAX_QUESTION_BYTES: Final = 4 * 1024 * 1024
"""There may be images in a conversation that a model is to continue."""
MAX_FORM_BYTES: Final = 64 * 1024
MAX_ADDRESS_CHARS: Final = 8192
CANCELLED: Final = b'{"action":"cancel"}'
"""What an elicitation gets that nobody answers (MCP 2025-11-25, client/elicitation "Response Actions")."""
REJECTED: Final = -1
"""The code of whatever else nobody answers (MCP 2025-11-25, client/sampling "Error Handling")."""
SCHEMES: Final = ("https", "http")
"""Of addresses that a person may be asked to open."""
MAX_TOKEN_BYTES: Final = 512
MAX_PROGRESS_BYTES: Final = 64 * 1024
"""Of one notification of a client."""
MAX_FAILURE_BYTES: Final = 16 * 1024
"""Of a result that is read for why the call failed."""
OPTIONAL: Final = ("total", "message", "_meta")
"""Members of a notification of progress that may be left out, and not be null."""
_TOKEN: Final = "progressToken"
_token = msgspec.json.Decoder(str | int)
MAX_TOKENS: Final = 4096
"""So much it may say, and think aloud before."""
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


class TooManyQuestions(CannotAsk, code=-31429, kind="overloaded", retryable=True):
    """A server asks more than it may: during one call, within a minute, or in bytes that wait for answers."""


class _Advance(msgspec.Struct):
    token: msgspec.Raw = msgspec.field(name=_TOKEN)
    progress: float


_advance = msgspec.json.Decoder(_Advance)


def refusal(method: str, params: msgspec.Raw) -> str | None:
    """Return why nobody is asked this, whoever it is for; None if it may be asked."""
    most = MAX_FORM_BYTES if method == ELICIT else MAX_QUESTION_BYTES
    if len(params) > most:
        return f"a question of over {most} bytes"
    if method != ELICIT:
        return None
    mode = mode_of(params)
    if mode not in (FORM, URL):
        return "only questions with a form or an address were declared"
    if mode == URL and not _may_be_opened(params):
        return f"only addresses that begin with {' or '.join(SCHEMES)}, and are plain to read, are passed on to people"
    return None


def request_not_sent(answer: Answered[int] | Refused[int] | Malformed[int]) -> str:
    """Return the request by which a modern server would have asked during a call that failed; empty if by none.

    The revision has no requests of servers (MCP 2026-07-28, basic/patterns/mrtr), so a tool that asks as in the older
    ones fails before anything is sent, with an error of its SDK. All that there is on the wire is that error, and what
    the SDKs have in common is that they name the method.
    """
    match answer:
        case Refused(error=error):
            said = error.message.encode(errors="replace")
        case Answered(result=result) if len(result) <= MAX_FAILURE_BYTES and b'"isError"' in bytes(result):
            said = bytes(result) if bytes(json.at(result, "isError")) == b"true" else b""
        case _:
            return ""
    return next((method for method in ASKED_BY if method.encode() in said), "")


def timeout_answer(method: str, params: msgspec.Raw, fallback: Fallback) -> bytes | ErrorObject:
    """Return what a question gets that nobody answers in time: never a yes.

    With `default` a form is what it is when nobody types anything, if it can be that; see `forms.defaults`.
    """
    if method == ELICIT and fallback != "error":
        content = defaults(params) if fallback == "default" else None
        return CANCELLED if content is None else encode({"action": "accept", "content": content})
    return ErrorObject(REJECTED, "nobody answered in time")


def _may_be_opened(params: msgspec.Raw) -> bool:
    """Say whether a person can see where an address leads: it has no user name and nothing that cannot be seen."""
    url = json.text_at(params, "url")
    try:
        address = urlsplit(url)
    except ValueError:
        return False
    if address.scheme.lower() not in SCHEMES or not address.hostname or "@" in address.netloc:
        return False
    return len(url) <= MAX_ADDRESS_CHARS and url.isprintable() and not any(each in url for each in ' \\"<>')


def token_of(params: msgspec.Raw) -> bytes:
    """Return the token of a question as JSON text; empty if it has none, or none that can be kept."""
    if _TOKEN.encode() not in bytes(params):
        return b""
    token = json.at(params, "_meta", _TOKEN)
    return bytes(token) if len(token) <= MAX_TOKEN_BYTES and json.read_or(_token, token, None) is not None else b""


def with_token(params: msgspec.Raw, token: bytes) -> msgspec.Raw:
    """Return the params of a question with this token (JSON text) in place of the one that it may have; empty: none."""
    return msgspec.Raw(json.with_meta(bytes(params), _TOKEN, token))


def advance(params: msgspec.Raw) -> tuple[int, float] | None:
    """Return the token, one of ours, and the progress that a client tells of; None if that cannot be read."""
    if len(params) > MAX_PROGRESS_BYTES:
        return None
    if (told := json.read_or(_advance, params, None)) is None:
        return None
    token = canonical(bytes(told.token))
    return (int(token), told.progress) if token and math.isfinite(told.progress) else None


def with_progress_token(params: bytes, token: bytes) -> bytes:
    """Return a notification of progress with another token (JSON text), and without optional members that are null."""
    said = json.MEMBERS.decode(params)
    for name in OPTIONAL:
        if bytes(said.get(name, b"")) == b"null":
            del said[name]
    return encode({**said, _TOKEN: msgspec.Raw(token)})


def sample_params(system: str, user: str) -> msgspec.Raw:
    """Return the params of `sampling/createMessage` for one answer to one text, without any context of the client's."""
    message = {"role": "user", "content": {"type": "text", "text": user}}
    return msgspec.Raw(encode({"messages": [message], "systemPrompt": system, "maxTokens": MAX_TOKENS}))


def sampled_text(result: msgspec.Raw) -> str:
    """Return the text that a model said, of all its blocks of text; empty for what has none, or cannot be read."""
    content = json.at(result, "content")
    blocks = json.read_or(json.OBJECTS, content, None) or [json.members(content)]
    return "".join(json.text_at(block.get("text")) for block in blocks if json.text_at(block.get("type")) == "text")


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
    """Addresses that people are asked to open, by the ids that a server gave, and who hears that a visit is over.

    A server tells that outside of any call (MCP 2025-11-25, client/elicitation "Completion Notifications for URL Mode
    Elicitation"). Only who was given an id hears of it, and once. Those of one server that are not over. Moments are
    seconds of any one clock.
    """

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

"""What people are asked: whether a call may run, as they are shown it, and questions of servers in ordinary results.
Pure.

The text of a call is made from the bytes that are sent to the server, value by value, so that it can show nothing else:

- Every key is shown, at any depth. A call whose keys do not all fit is refused: nobody can agree to what is not shown.
- A long value is shown by its beginning and its end, with how much is left out between them; many elements of an array
  by the first ones and how many follow. How many values are not shown whole stands at the end.
- What stands in quotes is JSON: a value cannot look like something outside of it. What is in parentheses is ours.
- Many blanks are counted. What cannot be seen, or turns the direction of writing, is escaped, as are combining
  characters that could be written in one; a key that is not ASCII is spelled out beside itself.
- Numbers are shown as they were written, since readers differ in what they make of `-0` and `1e400`.

Clients that cannot be asked in any other way get the questions of servers in results: a model passes them on to its
user, and calls the meta-tool again with the answers. What is secret never passes through a model: such a question can
be answered on a page of the daemon only, where its user is sent.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from itertools import islice
from json import dumps
from typing import Any, Final, NamedTuple

import msgspec

from actors.errors import InvalidArguments
from actors.protocol.asking.forms import MAX_MESSAGE_CHARS
from actors.protocol.asking.input_required import InputRequest
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from actors.protocol.wire.repeated_keys import check_keys
from supervisor.metatools.definitions import EXECUTE
from supervisor.metatools.texts import clean

MAX_CALL_CHARS: Final = 3500
"""Of the whole text: less than is shown of the message of any question."""
MAX_DEPTH: Final = 32
MAX_BLANKS: Final = 8
"""More in a row are counted."""
_COUNTED_CHARS: Final = 16_384
"""A longer text is not searched for blanks as a whole."""


class _Limits(NamedTuple):
    """Characters of a text or a number, and elements of an array without objects or arrays in it."""

    characters: int
    elements: int


LIMITS: Final = tuple(_Limits(*each) for each in ((1000, 100), (300, 40), (100, 20), (40, 10), (15, 3)))
"""Tried in this order, until all keys fit."""
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./:-]+")
_BLANKS = re.compile(rf"( {{{MAX_BLANKS + 1},}})")


class _NoRoom(Exception):
    """The text is too long, or the value too deep."""


def question(server: str, members: bytes) -> str:
    """Return the question whether a tool may run; `members` are JSON members of the params, as they are sent.

    Raises `InvalidArguments` for what cannot be shown so that a person knows what runs, `RepeatedKey` among that.
    """
    params = b"{" + members + b"}"
    check_keys(params)
    try:
        beside = json.read(json.MEMBERS, params)
        name, arguments = json.read(json.STRING, beside.pop("name", b'""')), beside.pop("arguments", b"{}")
        for limits in LIMITS:
            text = _Text(limits)
            try:
                return text.whole(f"{server}:{name}", arguments, beside)
            except _NoRoom:
                continue
    except json.UnreadableJson:
        raise _refusal(server, "a text in them is no Unicode") from None
    why = f"even with each value cut they have over {MAX_CALL_CHARS} characters, or {MAX_DEPTH} levels"
    raise _refusal(server, f"{why}; send fewer at once")


def _refusal(server: str, why: str) -> InvalidArguments:
    text = f"a tool of {clean(server)} needs a yes of its user, who cannot be shown all of its arguments: {why}"
    return InvalidArguments(text, server=server)


class _Text:
    def __init__(self, limits: _Limits) -> None:
        self._limits = limits
        self._parts: list[str] = []
        self._room = MAX_CALL_CHARS
        self._values = self._cut = 0

    def whole(self, path: str, arguments: msgspec.Raw | bytes, beside: dict[str, msgspec.Raw]) -> str:
        self._write(f"Run {path if _PLAIN_PATH.fullmatch(path) else _quote(path)} with ")
        self._value(bytes(arguments), 0)
        if beside:  # a server may read more of the params than the protocol says
            self._write(", and beside the arguments ")
            self._object(beside, 0)
        self._write("?")
        if self._cut:
            self._write(f" (not all is shown of {self._cut} of its {self._values} values)")
        return "".join(self._parts)

    def _write(self, text: str) -> None:
        self._room -= len(text)
        if self._room < 0:
            raise _NoRoom
        self._parts.append(text)

    def _value(self, value: bytes, depth: int) -> None:
        value = value.strip()
        if depth > MAX_DEPTH:
            raise _NoRoom
        match value[:1]:
            case b"{":
                self._object(json.read(json.MEMBERS, value), depth)
            case b"[":
                self._array(json.read(json.ELEMENTS, value), depth)
            case b'"':
                self._values += 1
                self._string(json.read(json.STRING, value))
            case _:
                self._values += 1
                self._number(value.decode())

    def _object(self, members: dict[str, msgspec.Raw], depth: int) -> None:
        self._write("{")
        for place, (key, value) in enumerate(members.items()):
            spelled = "" if key.isascii() else f" (in ASCII {_quote(key, _encode_ascii)})"
            self._write(f"{',' if place else ''}{_quote(key)}{spelled}:")
            self._value(bytes(value), depth + 1)
        self._write("}")

    def _array(self, elements: list[msgspec.Raw], depth: int) -> None:
        plain = not any(bytes(memoryview(each)[:1]) in (b"{", b"[") for each in elements)
        most = self._limits.elements if plain else len(elements)  # in an object there are keys
        self._write("[")
        for place, value in enumerate(islice(elements, most)):
            self._write("," if place else "")
            self._value(bytes(value), depth + 1)
        if len(elements) > most:
            self._values += len(elements) - most
            self._cut += len(elements) - most
            self._write(f" ({len(elements) - most:,} more elements)")
        self._write("]")

    def _string(self, text: str) -> None:
        most = self._limits.characters
        if len(text) > most and (len(text) > _COUNTED_CHARS or len(_BLANKS.sub("", text)) > most):
            self._cut += 1
            first = 2 * most // 3
            head, tail = _quote(text[:first]), _quote(text[first - most :])
            self._write(f"{head} ({len(text) - most:,} more characters) {tail}")
        else:
            self._write(_quote(text))

    def _number(self, written: str) -> None:
        most = self._limits.characters
        if len(written) > most:
            self._cut += 1
            self._write(f"{written[:most]} ({len(written) - most:,} more digits)")
        else:
            self._write(written)


def _quote(text: str, write: Callable[[str], str] | None = None) -> str:
    """Return a text in quotes; between them, in parentheses, how many blanks there are where there are many."""
    write = write or _visible
    parts = _BLANKS.split(text)
    shown = (f"({len(part):,} blanks)" if place % 2 else f'"{write(part)}"' for place, part in enumerate(parts))
    return " ".join(shown)


def _visible(text: str) -> str:
    """Return a text as it stands in a JSON string, with escapes for all that a reader does not see as it is."""
    written = encode(text).decode()[1:-1].replace("\x7f", "\\u007f")
    if written.isascii():
        return written
    composed = unicodedata.is_normalized("NFC", text)
    return "".join(each if _is_seen(each, composed=composed) else _encode_ascii(each) for each in written)


def _is_seen(character: str, *, composed: bool) -> bool:
    if character.isascii():  # what needs an escape has it
        return True
    shown = character.isprintable() and clean(character) == character
    return shown and (composed or not unicodedata.combining(character))


def _encode_ascii(text: str) -> str:
    """Return a text as it stands in a JSON string of ASCII alone."""
    return dumps(text)[1:-1]


RUN: Final = "run"
REMEMBER: Final = "remember"
LASTING: Final = {"session": "for this client today", "always": "for good"}
"""For how long a yes may hold beyond one call, in words."""
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        RUN: {"type": "boolean", "title": "Run it", "default": False},
        REMEMBER: {
            "type": "string",
            "title": "The next time",
            "enum": ["once", *LASTING],
            "enumNames": ["Ask again", "Do not ask again for this client today", "Never ask for this tool again"],
            "default": "once",
        },
    },
    "required": [RUN],
}


def is_yes(answer: msgspec.Raw) -> bool:
    """Say whether a user has said yes; `answer` is JSON text, whatever a client sent."""
    return json.text_at(answer, "action") == "accept" and bytes(json.at(answer, "content", RUN)) == b"true"


def lasts(answer: msgspec.Raw) -> str:
    """Return for how long a yes was given, one of `LASTING`; empty for one call."""
    how = json.text_at(answer, "content", REMEMBER)
    return how if how in LASTING else ""


class ToldQuestion(msgspec.Struct, frozen=True):
    """A question that a result tells of. `page` is where its user may answer; `there_only`: nowhere else."""

    request: InputRequest
    page: str = ""
    there_only: bool = False


class _Form(msgspec.Struct):
    message: str = ""
    url: str = ""
    schema: msgspec.Raw = msgspec.field(name="requestedSchema", default=msgspec.Raw(b"{}"))


_form = msgspec.json.Decoder(_Form)


def question_result(
    server: str,
    questions: Mapping[str, ToldQuestion],
    state: str,
    expires_s: float,
    plugin: str = "",
    confirms: bool = False,
    execute: str = EXECUTE,
) -> bytes:
    """Return the result that tells of questions about a call of a server: of that, of a `plugin`, or of ours.

    `execute` is the meta-tool by which the call was made, and goes on.
    """
    what = f"The tool has not finished: its server {clean(server)!r} wants to know something first."
    if plugin:
        what = f"The tool has not finished: the plugin {clean(plugin)!r} wants to know something first."
    elif confirms:
        what = f"The tool has not run: its user has to agree first, as it is set here; {clean(server)!r} asked nothing."
    shown = {key: _show(question) for key, question in questions.items()}
    asked = "\n".join(f"- {key}: {_in_words(form)}" for key, form in shown.items())
    text = (
        f"{what}\n{asked}\n"
        f"Ask the user; do not answer in their stead. Then call {execute} again, within {expires_s:.0f} s, with the "
        f'same tool_path and arguments, and beside them with "continuation": "{state}"{_answers(questions)}'
    )
    structured = {
        "status": "input_required",
        "server": server,
        **({"plugin": plugin} if plugin else {}),
        "questions": shown,
        "continuation": state,
        "expires_in_s": round(expires_s),
    }
    return encode({"content": [{"type": "text", "text": text}], "structuredContent": structured})


def later_result(state: str, called: str = EXECUTE) -> bytes:
    """Return the result in the place of one of several calls whose client is to be asked itself, not its model."""
    text = (
        "The tool has not finished: something is to be asked first, for which this call has to be made alone. Call "
        f"{called} with the same tool_path and arguments, without calls, and beside them with "
        f'"continuation": "{state}".'
    )
    structured = {"status": "input_required", "continuation": state}
    return encode({"content": [{"type": "text", "text": text}], "structuredContent": structured})


def _answers(questions: Mapping[str, ToldQuestion]) -> str:
    example = {key: {"action": "accept", "content": {}} for key, each in questions.items() if not each.there_only}
    if not example:
        return ", once they have answered there."
    return (
        f' and "answers": {encode(example).decode()} (the content as the schema has it; "decline" if the user says no, '
        '"cancel" without a word; none for what they answered on its page).'
    )


def _show(question: ToldQuestion) -> dict[str, Any]:
    form = json.read_or(_form, question.request.params, _Form())
    said: dict[str, Any] = {"message": clean(form.message[:MAX_MESSAGE_CHARS])}
    if question.page:
        said["page"] = question.page
    if question.there_only:
        return said
    return {**said, "url": form.url} if form.url else {**said, "requestedSchema": form.schema}


def _in_words(form: Mapping[str, Any]) -> str:
    message, page = form["message"], form.get("page", "")
    if "url" in form:
        return f"{message} (the user has to open {form['url']} and do there what it asks for)"
    if "requestedSchema" not in form:
        return f"{message} (the user has to open {page} and answer there; nothing of it may be said here)"
    also = f"; the user may as well answer at {page}" if page else ""
    return f"{message} (requestedSchema: {bytes(form['requestedSchema']).decode()}{also})"

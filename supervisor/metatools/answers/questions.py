"""Questions of servers in ordinary results, for clients that cannot be asked in any other way. Pure.

A model passes them on to its user, and calls the meta-tool again with the answers. What is secret never passes through
a model: such a question is not asked this way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from actors.protocol.client_capabilities import URL, mode_of
from actors.protocol.input_required import InputRequest
from actors.protocol.jsonrpc import encode
from supervisor.metatools.definitions import EXECUTE
from supervisor.metatools.texts import clean

MAX_MESSAGE_CHARS: Final = 4000
_SECRET = re.compile(
    r"passw|passphrase|secret|token|api[ _-]?key|credential|private[ _-]?key|\b(?:pin|otp|cvv)\b", re.IGNORECASE
)
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Field(msgspec.Struct):
    title: str = ""
    format: str = ""
    write_only: bool = msgspec.field(name="writeOnly", default=False)


class _Schema(msgspec.Struct):
    properties: dict[str, _Field] = {}


class _Form(msgspec.Struct):
    message: str = ""
    url: str = ""
    schema: msgspec.Raw = msgspec.field(name="requestedSchema", default=msgspec.Raw(b"{}"))


_form = msgspec.json.Decoder(_Form)
_schema = msgspec.json.Decoder(_Schema)


def is_secret(params: msgspec.Raw) -> bool:
    """Say whether a form asks for something that only the server may see: a password, a key. What cannot be read is."""
    if mode_of(params) == URL:
        return False
    try:
        fields = _schema.decode(_form.decode(params).schema).properties
    except _UNREADABLE:
        return True
    return any(
        field.write_only or field.format == "password" or _SECRET.search(f"{name} {field.title}")
        for name, field in fields.items()
    )


def told(server: str, questions: Mapping[str, InputRequest], state: str, expires_s: float) -> bytes:
    """Return the result of a tool that has questions instead of an answer."""
    shown = {key: _shown(request) for key, request in questions.items()}
    asked = "\n".join(f"- {key}: {_in_words(form)}" for key, form in shown.items())
    example = {key: {"action": "accept", "content": {}} for key in shown}
    text = (
        f"The tool has not finished: its server {clean(server)!r} wants to know something first.\n{asked}\n"
        "Ask the user; do not answer in their stead. Then call "
        f"{EXECUTE} again, within {expires_s:.0f} s, with the same tool_path and arguments, and beside them with "
        f'"continuation": "{state}" and "answers": {encode(example).decode()} '
        '(the content as the schema has it; "decline" if the user says no, "cancel" without a word).'
    )
    structured = {
        "status": "input_required",
        "server": server,
        "questions": shown,
        "continuation": state,
        "expires_in_s": round(expires_s),
    }
    return encode({"content": [{"type": "text", "text": text}], "structuredContent": structured})


def _shown(request: InputRequest) -> dict[str, Any]:
    try:
        form = _form.decode(request.params)
    except _UNREADABLE:
        form = _Form()
    said = {"message": clean(form.message[:MAX_MESSAGE_CHARS])}
    return {**said, "url": form.url} if form.url else {**said, "requestedSchema": form.schema}


def _in_words(form: Mapping[str, Any]) -> str:
    if "url" in form:
        return f"{form['message']} (the user has to open {form['url']} and do there what it asks for)"
    return f"{form['message']} (requestedSchema: {bytes(form['requestedSchema']).decode()})"

"""Questions of servers in ordinary results, for clients that cannot be asked in any other way. Pure.

A model passes them on to its user, and calls the meta-tool again with the answers. What is secret never passes through
a model: such a question can be answered on a page of the daemon only, where its user is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from actors.protocol.asking.forms import MAX_MESSAGE_CHARS
from actors.protocol.asking.input_required import InputRequest
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.definitions import EXECUTE
from supervisor.metatools.texts import clean


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

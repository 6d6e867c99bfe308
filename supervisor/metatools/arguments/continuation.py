"""A call of `execute_mcp_tool` that goes on with an earlier one, whose result asked something. Pure.

It has the arguments of the earlier call, and beside them `continuation` and `answers`. The schema does not name these
two: they are told of where they are needed, and cost nothing elsewhere.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from actors.errors import InvalidArguments
from actors.protocol.wire.json import Members
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools import lenient_json
from supervisor.metatools.lenient_json import plain, without

PREFIX: Final = "mcpvisor-"
"""What every state begins with that is ours, so that a tool may have an argument of that name."""
KEY: Final = "continuation"
ANSWERS: Final = "answers"
MARK: Final = f'"{KEY}"'.encode()


class Continuation(msgspec.Struct, frozen=True):
    """The state that an earlier result gave, and what was answered: a JSON object by the keys of the questions."""

    state: str
    answers: msgspec.Raw


def take_continuation(given: Members) -> tuple[Continuation | None, Members]:
    """Return what goes on with an earlier call, None for none, and the other arguments. Raises `InvalidArguments`."""
    state = plain(given.get(KEY))
    if not isinstance(state, str) or not state.startswith(PREFIX):
        return None, given
    answers = answers_of(given.get(ANSWERS, lenient_json.EMPTY))
    return Continuation(state, answers), without(without(given, KEY), ANSWERS)


def answers_of(given: msgspec.Raw) -> msgspec.Raw:
    """Return the answers of a model as a client sends them: one without an action is an accepted form.

    Raises `InvalidArguments`.
    """
    try:
        answers = {key: _answer(answer) for key, answer in lenient_json.members(given).items()}
    except (lenient_json.TooManyMembers, lenient_json.NotAnObject):
        raise InvalidArguments("'answers' must be an object of objects, one for each question") from None
    return msgspec.Raw(encode(answers))


def _answer(answer: msgspec.Raw) -> Any:
    members = lenient_json.members(answer)
    return members if "action" in members else {"action": "accept", "content": members}

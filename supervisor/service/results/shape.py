"""What a JSON value is made of, in one line: names, kinds, and how many of each. Pure."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.texts import escape

MAX_CHARS: Final = 300
_LEVELS: Final = 4
_NAMES: Final = 12
_NAME_CHARS: Final = 40
_LONG: Final = 200


def shape(value: Any) -> str:
    """Return for example `{"items": [1200 x {"id": number, "name": string}], "total": number}`; 300 characters at most.

    Of an array the first element stands for all.
    """
    told = _shape(value, _LEVELS)
    return told if len(told) <= MAX_CHARS else f"{told[: MAX_CHARS - 3]}..."


def _shape(value: Any, levels: int) -> str:
    match value:
        case dict():
            return _members(value, levels) if levels and value else "{...}" if value else "{}"
        case list():
            return f"[{len(value)} x {_shape(value[0], levels - 1) if levels else '...'}]" if value else "[]"
        case str():
            return f"string of {len(value)}" if len(value) > _LONG else "string"
        case bool():
            return "boolean"
        case None:
            return "null"
    return "number"


def _members(value: dict[str, Any], levels: int) -> str:
    told = [f"{_name(name)}: {_shape(item, levels - 1)}" for name, item in islice(value.items(), _NAMES)]
    more = len(value) - len(told)
    return f"{{{', '.join([*told, *([f'{more} more'] if more else [])])}}}"


def _name(name: str) -> str:
    return encode(escape(name[:_NAME_CHARS])).decode()

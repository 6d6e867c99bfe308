"""Questions of servers as pages for people: a list, a form, and a word at the end. Pure.

What a server wrote is text here, never markup: the templates escape all of it, and the pages load and run nothing. A
form goes back to where it came from. What was typed is shown again only if something in the form was wrong, and never a
secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, urlsplit

import jinja2

from actors.protocol.asking.forms import FormField
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.texts import clean
from supervisor.service.asking.elicitations import Elicitation

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-store",
    # With `no-referrer` a browser says `Origin: null` of a form, even to the page's own origin (Fetch standard, "append
    # a request Origin header"), and the guard would refuse it.
    "Referrer-Policy": "same-origin",
}
PREFIX: Final = "field."
"""Of the names of inputs, so that none is that of a button."""
_FORMATS: Final = {"email": "email", "uri": "url", "date": "date"}
"""The type of an input for a format of JSON Schema. There is none for `date-time`: a `datetime-local` has no zone."""

_TEMPLATES: Final = {
    name: files(__package__).joinpath(f"{name}.html").read_text(encoding="utf-8")
    for name in ("page", "word", "overview", "question")
}
"""Read at the start: later there may be no descriptor for it."""


def word(title: str, text: str) -> str:
    return _templates().get_template("word").render(title=title, text=text)


def overview(waiting: Sequence[tuple[Elicitation, str]], now: float) -> str:
    return _templates().get_template("overview").render(title="Questions", waiting=waiting, now=now)


def question(asked: Elicitation, left_s: float, content: Mapping[str, Any], wrong: Mapping[str, str]) -> str:
    about = {"asked": asked, "left_s": left_s, "content": content, "wrong": wrong, "prefix": PREFIX}
    return _templates().get_template("question").render(title="A question", **about)


@cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(autoescape=True, loader=jinja2.DictLoader(_TEMPLATES), undefined=jinja2.StrictUndefined)
    made.filters |= {
        "clean": clean,
        "choices": _choices,
        "chosen": _selection,
        "host": _host,
        "input": _input,
        "text": _text,
    }
    return made


def _choices(field: FormField) -> list[tuple[str, str]]:
    if field.kind == "boolean":
        return [("true", "yes"), ("false", "no")]
    return [(choice.const, clean(choice.title or choice.const)) for choice in field.choices]


def _selection(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _host(url: str) -> str:
    """Return where an address leads, in letters that cannot be taken for others."""
    host = urlsplit(url).hostname or ""
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return quote(host)


def _input(field: FormField) -> str:
    return "number" if field.kind in ("number", "integer") else _FORMATS.get(field.format, "text")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()

"""Questions of servers as pages for people: a list, a form, and a word at the end. Pure.

What a server wrote is text here, never markup: the templates escape all of it, and the pages load and run nothing. A
form goes back to where it came from. What was typed is shown again only if something in the form was wrong, and never a
secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final
from urllib.parse import quote, urlsplit

import jinja2

from actors.protocol.asking.forms import FormField
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.texts import clean
from supervisor.service.questions.elicitations import Elicitation

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

_PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>mcpvisor: {{ title }}</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 40em; margin: 3em auto; padding: 0 1em }
fieldset { border: 0; padding: 0; margin: 0 0 1.2em }
legend { font-weight: bold; padding: 0 }
input.wide, select, textarea { font: inherit; width: 100%; box-sizing: border-box }
button { font: inherit; padding: .3em 1em; margin-right: .6em }
blockquote { white-space: pre-wrap }
small { color: #555 }
.wrong { color: #b00020 }
</style>
<h1>{{ title }}</h1>
{% block body %}{% endblock %}
</html>
"""
_WORD: Final = """{% extends "page" %}{% block body %}<p>{{ text }}</p>{% endblock %}"""
_OVERVIEW: Final = """{% extends "page" %}{% block body %}
{% if waiting %}<ul>{% for each, path in waiting %}
<li><a href="{{ path }}">{{ each.server | clean }}</a> has been asking for {{ (now - each.asked_at) | round | int }} s,
during {{ each.about | clean }}: {{ each.form.message[:200] | clean }}</li>
{% endfor %}</ul>{% else %}<p>Nobody asks anything.</p>{% endif %}
{% endblock %}"""
_QUESTION: Final = """{% extends "page" %}{% block body %}
<p>The server <b>{{ asked.server | clean }}</b> asks, during {{ asked.about | clean }}:</p>
<blockquote>{{ asked.form.message | clean }}</blockquote>
{% if wrong %}<p class="wrong">Not everything is filled in as it should be.</p>{% endif %}
<form method="post" enctype="multipart/form-data">
{% if asked.form.url %}<p>It wants you to open
<a href="{{ asked.form.url }}" rel="noopener noreferrer" target="_blank">{{ asked.form.url }}</a>.<br>
It leads to <b>{{ asked.form.url | host }}</b>: go there only if you know why.</p>{% endif %}
{% for field in asked.form.fields %}{% set name = prefix ~ field.name %}
<fieldset>
<legend>{{ (field.title or field.name) | clean }}{% if not field.required %} <small>(may be left out)</small>{% endif %}
</legend>
{% set value = content.get(field.name, field.default) %}
{% set must = "required" if field.required else "" %}
{% if field.kind == "boolean" or field.kind == "select" %}
<select name="{{ name }}" {{ must }}><option value=""></option>
{% for const, shown in field | choices %}
<option value="{{ const }}" {{ "selected" if const == value | text }}>{{ shown }}</option>
{% endfor %}</select>
{% elif field.kind == "multiselect" %}
{% for const, shown in field | choices %}
<label><input type="checkbox" name="{{ name }}" value="{{ const }}" {{ "checked" if const in value | chosen }}>
{{ shown }}</label><br>
{% endfor %}
{% elif field.kind == "file" %}<input type="file" name="{{ name }}" {{ must }}>
{% elif field.secret %}<input class="wide" type="password" name="{{ name }}" autocomplete="off" {{ must }}>
{% elif field.kind == "json" %}<textarea name="{{ name }}" rows="4" {{ must }}>{{ value | text }}</textarea>
{% else %}<input class="wide" type="{{ field | input }}" name="{{ name }}" value="{{ value | text }}"
{%- if field.kind == "number" %} step="any"{% endif %} {{ must }}>
{% endif %}
{% if field.description %}<small>{{ field.description | clean }}</small>{% endif %}
{% if field.name in wrong %}<span class="wrong">{{ wrong[field.name] }}</span>{% endif %}
</fieldset>
{% endfor %}
<p><button name="action" value="accept">{{ "Done" if asked.form.url else "Send" }}</button>
<button name="action" value="decline" formnovalidate>No</button></p>
</form>
<p><small>There are {{ left_s | round | int }} s left to answer.</small></p>
{% endblock %}"""


def word(title: str, text: str) -> str:
    return _templates().get_template("word").render(title=title, text=text)


def overview(waiting: Sequence[tuple[Elicitation, str]], now: float) -> str:
    return _templates().get_template("overview").render(title="Questions", waiting=waiting, now=now)


def question(asked: Elicitation, left_s: float, content: Mapping[str, Any], wrong: Mapping[str, str]) -> str:
    """Return the page of one question: its form with what was typed so far, and what is wrong with that."""
    about = {"asked": asked, "left_s": left_s, "content": content, "wrong": wrong, "prefix": PREFIX}
    return _templates().get_template("question").render(title="A question", **about)


@cache
def _templates() -> jinja2.Environment:
    templates = {"page": _PAGE, "word": _WORD, "overview": _OVERVIEW, "question": _QUESTION}
    made = jinja2.Environment(autoescape=True, loader=jinja2.DictLoader(templates), undefined=jinja2.StrictUndefined)
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

"""Templates, what the style and the scripts are, and the headers of pages.

What a server wrote is text here: everything is escaped, nothing of it is markup, an address or a style. A page loads
its own style and scripts alone, has none in its text, and a script cannot make markup of a text either (Trusted Types).
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Any, Final

import jinja2
from quart import Response

from supervisor.front.ui import lifeline, plots, words
from supervisor.host.loop.workbench import beside
from supervisor.metatools.texts import clean
from supervisor.usage.records import UNKNOWN

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    # With `no-referrer` a browser says `Origin: null` of a form, even to the page's own origin.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
ASSETS: Final = {
    "icon.svg": "image/svg+xml",
    "ui.css": "text/css; charset=utf-8",
    "ui.js": "text/javascript; charset=utf-8",
}
_YEAR_S: Final = 365 * 86_400
_ROOT: Final = files(__package__)
_TEMPLATES: Final = {
    each.name.removesuffix(".html"): each.read_text(encoding="utf-8")
    for each in _ROOT.joinpath("templates").iterdir()
    if each.name.endswith(".html")
}
_BODIES: Final = {name: _ROOT.joinpath("static", name).read_bytes() for name in ASSETS}
"""Read at the start: later there may be no descriptor for it."""
MARK: Final = hashlib.sha256(b"".join(_BODIES.values())).hexdigest()[:16]
"""In the addresses of style and scripts: another text has another one, so that they can be kept for ever."""


async def html(template: str, code: int = 200, **values: Any) -> Response:
    """Return a page. `values` are what the template needs; a name that it does not get is a bug. A checkpoint."""
    body = await beside(lambda: _environment().get_template(template).render(**values))
    return Response(body, status=code, content_type="text/html; charset=utf-8", headers=HEADERS)


def lead_to(path: str) -> Response:
    """Return an answer that leads a browser elsewhere. Without a text, Quart would want asyncio to send it."""
    return Response("", status=303, headers={**HEADERS, "Location": path})


def asset(name: str) -> Response:
    headers = {"Cache-Control": f"public, max-age={_YEAR_S}, immutable", "Cross-Origin-Resource-Policy": "same-origin"}
    return Response(_BODIES[name], content_type=ASSETS[name], headers=headers)


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        autoescape=True, loader=jinja2.DictLoader(_TEMPLATES), undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    made.filters |= {
        "clean": clean,
        "clock": words.clock,
        "command": words.command_line,
        "display_name": words.display_name,
        "glyph": words.glyph_of,
        "json_text": words.json_text,
        "kind": words.kind_of,
        "moment": words.moment,
        "ms": words.milliseconds,
        "names": words.names,
        "number": words.number,
        "percent": words.percent,
        "setting": words.setting,
        "size": words.size,
        "span": words.span,
        "state": words.state_of,
        "text": words.text,
    }
    made.globals |= {
        "bars_of": plots.bars,
        "height": plots.HEIGHT,
        "life_height": lifeline.HEIGHT,
        "life_labels": lifeline.LABELS,
        "lines_of": plots.lines,
        "mark": MARK,
        "not_known": UNKNOWN,
        "share": words.share,
        "ticks": plots.TICKS,
        "width": plots.WIDTH,
    }
    return made

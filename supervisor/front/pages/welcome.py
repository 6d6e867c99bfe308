"""The page at `/`: what listens here, for whoever comes by with a browser or curl. Nothing on it is configured."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Final

from quart import Response, request
from quart_trio import QuartTrio

from supervisor.front.pages.responses import json_response

NAME: Final = "mcpvisor"
WHAT: Final = "Many MCP servers behind one address, supervised, with four tools in front of all of theirs."
PLACES: Final = {
    "/mcp": "MCP: Streamable HTTP (POST) and WebSocket, every revision; the address for a client's configuration",
    "/mcp/all": "MCP: every tool of every server, for clients that choose by themselves",
    "/mcp/servers/NAME": "MCP: one server by itself, as if a client had connected to it",
    "/ws": "MCP over WebSocket only",
    "/api/status": "how each server is doing",
    "/api/tools": "what is known of every tool",
    "/questions": "what servers ask of you, where your client cannot be asked",
    "/api/tokens": "what the tools would cost a model",
    "/api/events": "what happens, as it happens (WebSocket)",
    "/healthz": "whether the daemon lives",
    "/readyz": "whether every server was tried once",
}
HELP: Final = "On the command line: mcpvisor --help, mcpvisor status. The documents are in docs/ of the source."

_STYLE = "body{font:16px/1.5 sans-serif;max-width:48em;margin:3em auto;padding:0 1em}dt{font-family:monospace}"
_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'", "Vary": "Accept"}


def welcome_routes(version: str) -> Callable[[QuartTrio], None]:
    """Return a function that adds the page: HTML for browsers, JSON for everybody else."""

    async def welcome() -> Response:
        best = request.accept_mimetypes.best_match(["application/json", "text/html"], default="application/json")
        if best == "text/html":
            return Response(_html(version), content_type="text/html; charset=utf-8", headers=_HEADERS)
        body = {"name": NAME, "version": version, "what": WHAT, "places": PLACES, "help": HELP}
        return json_response(body, headers=_HEADERS)

    def register(app: QuartTrio) -> None:
        app.add_url_rule("/", view_func=welcome)

    return register


def _html(version: str) -> str:
    title = escape(f"{NAME} {version}")
    rows = "".join(f"<dt>{escape(path)}</dt><dd>{escape(text)}</dd>" for path, text in PLACES.items())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>{escape(WHAT)}</p><dl>{rows}</dl><p>{escape(HELP)}</p></html>"
    )

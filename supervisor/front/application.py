"""The application of all pages: the operations, the dashboard, and the page at `/`."""

from __future__ import annotations

from functools import partial

from quart_trio import QuartTrio

from supervisor.front.pages import (
    audit,
    cards,
    configuration,
    events,
    logins,
    logs,
    me,
    metrics,
    nodes,
    phrases,
    questions,
    servers,
    status,
    tokens,
    tools,
    trust,
    usage,
    values,
)
from supervisor.front.pages.app import add_welcome, create_app
from supervisor.front.pages.performing import add_operations
from supervisor.front.pages.view import View
from supervisor.front.ui.pages import add_dashboard

_PERFORMING = (
    *(audit, cards, configuration, events, logins, logs, me, metrics, nodes, phrases, questions, servers),
    *(status, tokens, tools, trust, usage, values),
)
"""The modules that perform operations: an operation that none of them performs ends the start with a `KeyError`."""


def application(view: View) -> QuartTrio:
    """Return the application with all of its pages."""
    app = create_app(view.audit)
    app.after_request(partial(configuration.tell_refused, view))
    add_welcome(view.version, app)
    add_dashboard(view, app, add_operations(view, app))
    return app

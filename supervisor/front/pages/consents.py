"""What people have said yes to for longer than one call (`/api/consents`): their own, for an admin everybody's."""

from __future__ import annotations

from typing import Any

from quart import Response, abort
from quart_trio import QuartTrio

from supervisor.front.pages.api import View
from supervisor.front.pages.app import json_response
from supervisor.front.pages.audit import describe
from supervisor.front.pages.rights import REQUESTER
from supervisor.identity.people import user_of
from supervisor.service.asking.confirmations import Consent

GONE = "there is no such yes; mcpvisor consents lists those that there are"


def add_consent_routes(view: View, app: QuartTrio) -> None:
    async def consents() -> Response:
        """Show which tools run without asking again: whose yes it is, for which client (empty: any), since when."""
        return json_response({"consents": [_row(each) for each in _own(view)]})

    async def revoke_consent(id_: str) -> Response:
        """Take a yes back: the tool asks again."""
        consent = next((each for each in _own(view) if each.id == id_), None) or abort(404, GONE)
        describe(f"{consent.server}:{consent.tool}", consent.id)
        view.consents.revoke(consent)
        return json_response({"revoked": _row(consent)})

    app.add_url_rule("/api/consents", "consents", consents)
    app.add_url_rule("/api/consents/<id_>", "revoke_consent", revoke_consent, methods=["DELETE"])


def _own(view: View) -> list[Consent]:
    return view.consents.of(None if REQUESTER.get().person.may("admin") else view.principal)


def _row(consent: Consent) -> dict[str, Any]:
    return {
        "id": consent.id,
        "user": user_of(consent.principal),
        "server": consent.server,
        "tool": consent.tool,
        "client": consent.client,
        "given_at": consent.given_at,
    }

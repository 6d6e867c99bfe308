"""What people have said yes to for longer than one call (`/api/consents`): their own, for an admin everybody's."""

from __future__ import annotations

from typing import Any

from quart import abort

from supervisor import operations
from supervisor.front.pages.performing import describe, performs
from supervisor.front.pages.rights import REQUESTER
from supervisor.front.pages.view import View
from supervisor.identity.people import user_of
from supervisor.service.asking.confirmations import Consent

GONE = "there is no such yes; mcpvisor consents lists those that there are"


@performs(operations.CONSENTS)
async def consents(view: View) -> Any:
    """Show which tools run without asking again: whose yes it is, for which client (empty: any), since when."""
    return {"consents": [_row(each) for each in _own(view)]}


@performs(operations.REVOKE_CONSENT)
async def revoke_consent(view: View, id_: str) -> Any:
    """Take a yes back: the tool asks again."""
    consent = next((each for each in _own(view) if each.id == id_), None) or abort(404, GONE)
    describe(f"{consent.server}:{consent.tool}", consent.id)
    view.consents.revoke(consent)
    return {"revoked": _row(consent)}


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

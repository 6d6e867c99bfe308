"""The page of people: who may come in, what their teams have and give, who did what; tokens are made and revoked there.

The text of a token is in the answer to the form that made it, and nowhere else: no address, no record, no log has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from quart import Response, abort

from actors.errors import InvalidArguments
from actors.protocol.wire.json import sentence
from supervisor import operations
from supervisor.config.values import OWN_TOKENS
from supervisor.front.pages.app import NO_PAGE
from supervisor.front.pages.tokens import NewToken, make_token, token_row
from supervisor.front.ui.frame import Frame, Page
from supervisor.host.workbench import beside
from supervisor.operations import ROLES
from supervisor.values.rows import MAX_USERS, known_users, value_holders

MAX_DAYS: Final = 3660
"""Ten years, as the API has it."""
MAX_NAMES: Final = 20
"""Of those who have given a value, or have yet to."""
_MAX_TOKENS: Final = 200
"""So many of the newest are shown."""
_RECORDS: Final = 50
_DAY_S: Final = 86_400.0


class PeoplePages(Frame):
    """Shows people, and takes the forms about tokens."""

    def pages(self) -> Mapping[str, Page]:
        return {
            "GET /ui/people": self.people,
            "POST /ui/tokens": self.make,
            "POST /ui/tokens/<id_>/revoke": self.revoke,
        }

    async def people(self) -> Response:
        """Show users, teams with their servers, which values are given and missing, tokens, and who did what."""
        deployment = self.view.deployment.value
        identity, users = deployment.settings.identity, known_users(deployment)
        holders = await beside(lambda: value_holders(deployment, users[:MAX_USERS])) if self.may_order else []
        tokens = self.view.tokens.all() if self.may_order else []
        return await self.page(
            "people",
            "People",
            auth=deployment.settings.auth,
            users={name: identity.users[name].role if name in identity.users else "" for name in users},
            named=bool(identity.users),
            teams=dict(sorted(identity.teams.items())),
            holders=holders,
            unseen=max(0, len(users) - MAX_USERS),
            max_names=MAX_NAMES,
            gives_values=self.may_approve,
            roles=ROLES,
            max_days=MAX_DAYS,
            makes_tokens=self._makes_tokens,
            tokens=[token_row(each) for each in tokens[-_MAX_TOKENS:]],
            unshown=max(0, len(tokens) - _MAX_TOKENS),
            records=(await self.ask(operations.AUDIT, {"limit": str(_RECORDS)}))["records"],
            json="/api/audit",
        )

    async def make(self) -> Response:
        """Make a token, and show it this once."""
        form = await self._form_of_admin()
        made = await make_token(self.view, _new_token(form))
        return await self.page("token", "A new token", made=made)

    async def revoke(self, id_: str) -> Response:
        """Revoke a token, at once."""
        await self._form_of_admin()

        async def revoke() -> dict[str, Any]:
            token = await self.view.tokens.revoke(id_)
            return {"message": f"The token {id_} of {token.user} is revoked."}

        return await self.carry_out(revoke, "/ui/people")

    async def _form_of_admin(self) -> dict[str, str]:
        form = await self.form()
        return form if self._makes_tokens else abort(404, NO_PAGE)

    @property
    def _makes_tokens(self) -> bool:
        """Whether tokens of ours open anything, and whoever asks has shown that they are an admin."""
        return self.may_approve and self.view.deployment.value.settings.auth in OWN_TOKENS


def _new_token(form: dict[str, str]) -> NewToken:
    """Return what a form asks for. Raises `InvalidArguments`."""
    wanted: dict[str, Any] = {name: form[name].strip() for name in ("user", "team", "role", "label") if form.get(name)}
    if days := form.get("days", "").strip():
        if not (days.isascii() and days.isdecimal() and 0 < int(days[:5]) <= MAX_DAYS and len(days) < 5):
            raise InvalidArguments(f"a token lasts for 1 to {MAX_DAYS} days, or without a number for ever")
        wanted["expires_in_s"] = int(days) * _DAY_S
    try:
        return msgspec.convert(wanted, NewToken)
    except msgspec.ValidationError as error:
        raise InvalidArguments(f"the form cannot be used: {sentence(error)}") from None

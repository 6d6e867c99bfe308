"""What is done from the dashboard: orders, approvals, values, signing in and out.

Each is a form with the page's own token, and is carried out by the function that a command's order goes to: whoever
may not give it by a command cannot give it here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, get_args
from urllib.parse import urlsplit

import msgspec
import trio
from quart import Response, abort, request

from actors.errors import TooManyAttempts
from supervisor import operations
from supervisor.config.keys import name_fault
from supervisor.front.admission import is_page
from supervisor.front.guard import FORWARDED
from supervisor.front.pages.app import NO_PAGE
from supervisor.front.pages.performing import describe, record
from supervisor.front.pages.requests import REQUESTER, read_fields
from supervisor.front.pages.trust import Approval, approve_tools
from supervisor.front.ui.frame import ORDERS, Frame, Page, lead_to
from supervisor.identity.people import Given, Tier
from supervisor.identity.requester import LIFE_S, ORIGIN, Requester
from supervisor.values.table import ValuePlace

_SIGN_IN: Final = "/ui/sign-in"
_SITE: Final = "sec-fetch-site"
_OF_THE_USER: Final = ("none", "same-origin")
"""What a browser says there of what its user did, or a page of ours (W3C Fetch Metadata 2.2)."""
_USED: Final = "This link was used, or is older than half a minute: get another one."
_MAX_SIGN_IN_FIELDS: Final = 8


class OrderForms(Frame):
    """Takes the forms."""

    def pages(self) -> Mapping[str, Page]:
        return {
            "POST /ui/servers/<server>/<order>": self.order,
            "POST /ui/changes": self.approve,
            "POST /ui/values": self.give_value,
            "GET /ui/sign-in": self.sign_in,
            "POST /ui/sign-in": self.take_token,
            "POST /ui/sign-out": self.sign_out,
        }

    async def order(self, server: str, order: str) -> Response:
        """Give an order to a server, or begin a login, and say how it went."""
        await self.form()
        if order not in ORDERS or not self.may_order:
            abort(404, NO_PAGE)
        if order == "login":
            act = partial(self.ask, operations.BEGIN_LOGIN, server=server)
        else:
            act = partial(self.ask, operations.ORDER_SERVER, server=server, order=order)
        return await self.carry_out(act, f"/ui/servers/{server}")

    async def approve(self) -> Response:
        """Approve one definition, by the digest that was shown."""
        form = await self.form()
        if not self.may_approve:
            abort(404, NO_PAGE)
        wanted = {"server": form.get("server", ""), "tools": {form.get("tool", ""): form.get("digest", "")}}
        try:
            approval = msgspec.convert(wanted, Approval)
        except msgspec.ValidationError:
            abort(400, "this form does not say what was seen: load the page again")

        async def approve() -> dict[str, Any]:
            await approve_tools(self.view, approval)
            return {"message": f"{approval.server}: {', '.join(approval.tools)} is approved."}

        return await self.carry_out(self._recorded("POST /ui/changes", approve), "/ui/changes")

    async def give_value(self) -> Response:
        """Give a value that a server waits for: one's own; an admin also that of an `owner`."""
        form, person = await self.form(), REQUESTER.get().person
        tier, _, owner = form.get("owner", f"user:{person.user}").partition(":")
        if not owner or tier not in get_args(Tier) or not (self.may_approve or (tier, owner) == ("user", person.user)):
            abort(404, NO_PAGE)
        place = ValuePlace("team" if tier == "team" else "user", owner, form.get("server", ""), form.get("name", ""))
        for name in (place.server, owner):
            if fault := name_fault(name):
                abort(400, fault)
        describe(place.server, f"{place.name} of the {tier} {owner}")

        async def give() -> dict[str, Any]:
            await self.view.values.give(person, place, Given(value=form.get("value", "")))
            own = (tier, owner) == ("user", person.user)
            what = f"your {place.name}" if own else f"{place.name} of the {tier} {owner}"
            return {"message": f"{place.server} has {what} now."}

        back = "/ui/people" if "owner" in form else "/ui"
        return await self.carry_out(self._recorded("POST /ui/values", give), back)

    def _recorded(self, route: str, act: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
        return partial(record, self.view.audit, operations.DASHBOARD[route].audit, act)

    # Who comes in -----------------------------------------------------------------------------------------------------

    async def sign_in(self) -> Response:
        """Show the form for a token, or take the ticket of `mcpvisor ui`.

        Where another page has led the browser here, it is asked first: whoever made that page would have signed it in
        as somebody that it is not, and what is typed then would be theirs.
        """
        if self.view.sign_ins.check is None:  # nobody has to show who they are
            return lead_to("/ui")
        ticket, now = request.args.get("ticket", ""), trio.current_time()
        if not ticket:
            return await self._door("", request.args.get("next", ""), 200)
        if request.headers.get(_SITE) in _OF_THE_USER:
            holder = self.view.tickets.take(ticket, now, "sign-in")
            return await self._door(_USED, "", 400) if holder is None else self._enter(holder, "")
        holder = self.view.tickets.find(ticket, now, "sign-in")
        if holder is None:
            return await self._door(_USED, "", 400)
        who = holder.person.user or "the operator of this daemon"
        return await self.page("sign_in_as", "Sign in", who=who, ticket=ticket)

    async def take_token(self) -> Response:
        """Take a token, or a ticket, and let whoever has it in."""
        if self.view.sign_ins.check is None:
            return lead_to("/ui")
        if request.headers.get(_SITE, "same-origin") not in _OF_THE_USER:
            abort(403, "nobody is signed in by the page of another site")
        form = await read_fields(self.view.bench, _MAX_SIGN_IN_FIELDS)
        if ticket := form.get("ticket", ""):
            holder = self.view.tickets.take(ticket, trio.current_time(), "sign-in")
            return await self._door(_USED, "", 400) if holder is None else self._enter(holder, "")
        following, origin = form.get("next", ""), ORIGIN.get()
        address = "" if origin is None else origin.address
        if not (secret := form.get("secret", "").strip()):
            return await self._door("There was no token in the form.", following, 400)
        answer = self.view.sign_ins.check(secret, address)
        if isinstance(answer, Requester):
            return self._enter(answer, following)
        code = 429 if isinstance(answer, TooManyAttempts) else 400  # 401 is for what shows a token in its head
        return await self._door(answer.message, following, code)

    async def _door(self, wrong: str, following: str, code: int) -> Response:
        return await self.page("sign_in", "Sign in", wrong=wrong, following=following, code=code)

    async def sign_out(self) -> Response:
        """End what was begun by signing in."""
        await self.form()
        ins = self.view.sign_ins
        ins.close(request.cookies.get(ins.cookie, ""))
        answer = lead_to(_SIGN_IN)
        answer.delete_cookie(ins.cookie, path="/", httponly=True, samesite="Strict")
        return answer

    def _enter(self, requester: Requester, following: str) -> Response:
        """Sign somebody in, and lead them where they wanted to go, if that is a page of ours."""
        ins = self.view.sign_ins
        answer = lead_to(following if is_page(following) and following.isprintable() else "/ui")
        answer.set_cookie(
            ins.cookie,
            ins.open(requester, trio.current_time()),
            max_age=int(LIFE_S),
            path="/",
            httponly=True,
            samesite="Strict",
            secure=self._is_encrypted(),
        )
        return answer

    def _is_encrypted(self) -> bool:
        """Say whether the browser came by TLS, to us or to the proxy behind which the daemon is called `public_url`."""
        public = urlsplit(self.view.deployment.value.settings.public_url)
        forwarded = any(name in FORWARDED for name, _ in request.scope["headers"])
        by_proxy = public.scheme == "https" and (forwarded or request.host == public.netloc)
        return request.scheme == "https" or by_proxy

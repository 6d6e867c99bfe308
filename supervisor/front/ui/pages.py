"""The pages of the dashboard (`/ui`): each shows what pages under `/api` say of the same, and to the same person.

A page is whole without a script. The script takes new parts of the same page now and then, and puts them in place. Of
the launches of a server, and of values that are missing, each sees what they may.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode

from quart import Response, abort, request
from quart_trio import QuartTrio

from actors.errors import InvalidArguments, SupervisorError, UnknownServer
from actors.facts import Logged, StateChange
from actors.installation import DISABLED, PER_USER, shown
from actors.launch import is_own, server_of
from supervisor import operations
from supervisor.config.keys import nearest_names
from supervisor.config.values import PROVIDER_TOKENS
from supervisor.front.pages.performing import Perform
from supervisor.front.pages.requests import REQUESTER, Unreadable, read_form
from supervisor.front.pages.view import View
from supervisor.front.ui import attention, trying
from supervisor.front.ui.frame import ASSETS, Frame, Page, Pairs, asset, lead_to
from supervisor.front.ui.orders import OrderForms
from supervisor.front.ui.people import MAX_NAMES, PeoplePages
from supervisor.front.ui.plots import lifeline
from supervisor.front.ui.questions import QuestionForms
from supervisor.front.ui.words import defined_by, display_name, is_of, kind_of, life_of, told_of
from supervisor.host.workbench import beside
from supervisor.identity.requester import EXECUTE
from supervisor.operations import Operation
from supervisor.servers.deployment import Deployment
from supervisor.usage.periods import WINDOWS
from supervisor.usage.records import OUTCOMES
from supervisor.values.rows import MAX_USERS, ValueHolders, known_users, value_holders

_OFFERED: Final = {
    DISABLED: ("enable",),
    PER_USER: ("disable",),
    "awaiting_user_config": ("disable",),
    "ready": ("restart", "sleep", "refresh", "disable"),
    "dormant": ("wake", "refresh", "disable"),
    "stopped": ("wake", "disable"),
}
"""Which orders make sense, by how a server is and by what its process does; for any other: restart and disable."""
Row = dict[str, Any]


def _orders_of(row: Row) -> list[str]:
    """Return the orders that make sense: what waits for values cannot be woken, and one launch not be switched off."""
    if row.get("left_out"):  # until its entry is mended
        return []
    known = _OFFERED.get(shown(row)) or _OFFERED.get(row["state"], ("restart", "disable"))
    return [name for name in known if not (is_own(row["server"]) and name in ("enable", "disable"))]


def _launch_of_requester(server: str) -> str:
    """Return the launch of a server that is started for whoever asks and not for all; "" if there is none."""
    return next((each.name for each in REQUESTER.get().person.rights.launches if each.server == server), "")


async def _tell_lacking(frame: Frame, rows: list[Row]) -> None:
    """Add to servers that run for each person by their values who has yet to give one, for an admin to see.

    `lacking` has that in words, `holders` the `ValueHolders` of each value that is missing. `left_out` says of those
    whose entry has faults that they cannot be ordered anything.
    """
    faulty = {each.server for each in frame.view.deployment.value.problems}
    for row in rows:
        row["left_out"] = row["server"] in faulty
    waiting = [row for row in rows if row.get("awaits")]
    if waiting and frame.may_order:
        deployment = frame.view.deployment.value
        await beside(lambda: _add_lacking(deployment, waiting))


def _add_lacking(deployment: Deployment, waiting: list[Row]) -> None:
    by_server: defaultdict[str, list[ValueHolders]] = defaultdict(list)
    for each in value_holders(deployment, known_users(deployment)[:MAX_USERS]):
        if each.missing:
            by_server[each.server].append(each)
    for row in waiting:
        row["holders"] = by_server[row["server"]]
        row["lacking"] = [f"{each.name} of {who.words}" for each in row["holders"] for who in each.missing]


async def _rows_of_launches(frame: Frame, row: Row) -> list[Row]:
    """Return the rows of launches of a server, by the names of whoever has them; one that sleeps may have none."""
    if not row.get("launches"):
        return []
    rows = (await frame.ask(operations.STATUS))["servers"]
    of_it = [each for each in rows if each.get("users") and server_of(each["server"]) == row["server"]]
    return sorted(of_it, key=lambda each: each["users"])


async def _own_values(frame: Frame, row: Row) -> list[Row]:
    """Return the values of a server that whoever asks has yet to give; to an admin `holders` says all of them."""
    if not row.get("awaits") or frame.may_approve or not REQUESTER.get().person.user:
        return []
    values = (await frame.ask(operations.VALUES))["values"]
    return [each for each in values if each["missing"] and (each["server"], each["tier"]) == (row["server"], "user")]


async def _tools_of(frame: Frame, server: str) -> Any:
    """Return what `/api/tools` has of a server, or of a launch that whoever asks has; no tools of another's."""
    name = server_of(server)
    if is_own(server) and server != _launch_of_requester(name):
        return {"tools": []}
    return await frame.ask(operations.TOOLS, {"servers": name, "limit": "500", "include_unavailable": "true"})


_PER_PAGE: Final = 50
_NEWEST: Final = 10
_MAX_EVENTS: Final = 200
_SHOWN_EVENTS: Final = 20
"""Without unfolding the rest."""
_MAX_FINDINGS: Final = 10
"""Of one event."""
_ABSENT: Final[dict[str, Any]] = {
    "status": "provisioning",
    "state": "",
    "reason": "",
    "last_error": "",
    "next_start": None,
    "since": None,
    "breakers": [],
}
"""What a row lacks of a server of which nothing is known yet."""


def add_dashboard(view: View, app: QuartTrio, performed: Mapping[Operation, Perform]) -> None:
    """Add the dashboard to the pages."""
    pages = Dashboard(view, performed)
    shown: dict[str, Page] = {
        "GET /ui": pages.overview,
        "GET /ui/servers": pages.servers,
        "GET /ui/servers/<server>": pages.server,
        "GET /ui/tools": pages.tools,
        "GET /ui/tool": pages.tool,
        "GET /ui/calls": pages.calls,
        "GET /ui/usage": pages.usage,
        "GET /ui/changes": pages.changes,
        "GET /ui/static/<mark>/<name>": pages.static,
    }
    pages.add(app, shown, strict=False)
    pages.add(app, {"POST /ui/tool": pages.call, "POST /ui/tool/answer": pages.go_on})
    people, orders, questions = (kind(view, performed) for kind in (PeoplePages, OrderForms, QuestionForms))
    people.add(app, people.pages())
    orders.add(app, orders.pages())
    questions.add(app, questions.pages())


class Dashboard(Frame):
    """Makes the pages that show something."""

    async def overview(self) -> Response:
        """Show how everything is, what needs somebody, and what is called; to a member what is theirs."""
        window, person = _window(), REQUESTER.get().person
        told = {
            "window": window,
            "usage": await self.ask(operations.USAGE),
            "timeline": await self.ask(operations.USAGE_TIMELINE, {"window": window}),
            "calls": await self.ask(operations.CALLS, {"limit": str(_NEWEST)}),
        }
        if not person.may("auditor"):
            own, values = await self.ask(operations.ME), await self.ask(operations.VALUES)
            signs_in = self.view.deployment.value.settings.auth in PROVIDER_TOKENS
            told |= {"own": own, "values": values, "base": self.view.elicitations.base, "signs_in": signs_in}
            return await self.page("mine", "Overview", json="/api/me", **told)
        status, by_server = await self.ask(operations.STATUS), await self._by_server()
        values = (await self.ask(operations.VALUES))["values"] if person.user else []
        await _tell_lacking(self, status["servers"])
        needs = attention.notices(status, (await self.ask(operations.TRUST))["tools"])
        sentence = attention.sentence(status, needs)
        told |= {"status": status, "by_server": by_server, "notices": needs, "sentence": sentence, "urgent": len(needs)}
        told |= {"values": values, "fleet": await self.ask(operations.NODES)}
        return await self.page("overview", "Overview", json="/api/status", **told)

    async def servers(self) -> Response:
        """Show all servers as a table."""
        status, by_server = await self.ask(operations.STATUS), await self._by_server()
        await _tell_lacking(self, status["servers"])
        return await self.page("servers", "Servers", status=status, by_server=by_server, json="/api/status")

    async def server(self, server: str) -> Response:
        """Show one server: how it is, its life and calls over time, its tools, log, and where its values come from."""
        try:
            row, window = {**_ABSENT, **await self.ask(operations.SERVER, server=server)}, _window()
        except UnknownServer as error:
            return await self._offer_servers(server, error, "/ui/servers/{}")
        tools = await _tools_of(self, server)
        await _tell_lacking(self, [row])
        users: list[str] | None = row.get("users")
        # Calls are counted by server and user, not by launch.
        only = {"server": server_of(server), **({"user": users[0]} if users and len(users) == 1 else {})}
        timeline = await self.ask(operations.USAGE_TIMELINE, {**only, "window": window})
        begin = timeline["from"]
        end = begin + timeline["bucket_s"] * len(timeline["buckets"])
        return await self.page(
            "server",
            display_name(server, users),
            row=row,
            of=server_of(server),
            is_launch=is_own(server),
            launches=await _rows_of_launches(self, row),
            max_names=MAX_NAMES,
            values=await _own_values(self, row),
            gives_values=self.may_approve,
            offered=_orders_of(row),
            window=window,
            usage=await self.ask(operations.USAGE, only),
            timeline=timeline,
            life=lifeline(self.view.facts.states.of(server), begin, end, timeline["to"]),
            events=self._events_of(server, tools["tools"]),
            shown_events=_SHOWN_EVENTS,
            calls=await self.ask(operations.CALLS, {**only, "limit": str(_NEWEST)}),
            tools=tools,
            has_launch=bool(_launch_of_requester(server_of(server))),
            log=await self.ask(operations.SERVER_LOGS, {"lines": "200"}, server=server),
            configured=await self.ask(operations.CONFIGURATION, {"server": server_of(server)}),
            json=f"/api/servers/{server}",
        )

    async def tools(self) -> Response:
        """Show all tools by criteria, and beside them what a model finds for a sentence."""
        asked = {name: request.args.get(name, "")[:500] for name in ("query", "servers", "safety", "sort")}
        offset = max(0, request.args.get("offset", 0, type=int))
        criteria = {"limit": str(_PER_PAGE), "offset": str(offset), "include_unavailable": "true"}
        criteria |= {name: asked[name] for name in ("servers", "safety") if asked[name]}
        if asked["sort"]:
            criteria |= {"sort_by": asked["sort"], "descending": "true"}
        try:
            listed = await self.ask(operations.TOOLS, criteria)
        except InvalidArguments as error:
            if "nearest" not in (error.details or {}):
                raise
            return await self._offer_servers(asked["servers"], error, "/ui/tools?servers={}")
        model = await trying.discover(self.view, asked["query"]) if asked["query"] else None
        return await self.page(
            "tools",
            "Tools",
            asked=asked,
            tools=listed,
            model=model,
            before=_other_page(offset - _PER_PAGE) if offset > 0 else None,
            after=_other_page(offset + _PER_PAGE) if offset + _PER_PAGE < listed["total"] else None,
            json="/api/tools",
        )

    async def _offer_servers(self, asked: str, error: SupervisorError, address: str) -> Response:
        """Lead to the one server that has `asked` in its name; else link those whose names are like it, 404 for none.

        `address` is that of the page of a server, with a place for its name.
        """
        known = [row["server"] for row in (await self.ask(operations.STATUS))["servers"] if not is_own(row["server"])]
        within = [name for name in known if asked.casefold() in name.casefold()]
        if len(within) == 1:
            return lead_to(address.format(quote(within[0], safe="")))
        names = within or nearest_names(server_of(asked), known)
        links = [(name, address.format(quote(name, safe=""))) for name in names[:_PER_PAGE]]
        more, code = len(names) - len(links), 200 if links else 404
        return await self.page("likely", "Which server?", what=error.message, links=links, more=more, code=code)

    async def tool(self) -> Response:
        """Show one tool: what is known of it, its schema, and a form to try it."""
        return await self._tool(None, {})

    async def call(self) -> Response:
        """Call a tool with what was filled in, as the person who asks, and show the answer, or what is asked first."""
        typed = await self.form()
        fields = {name.removeprefix("field."): text for name, text in typed.items() if name.startswith("field.")}
        told = await trying.call(self.view, await self._find_tool(), fields)
        return await self._tool(told, fields)

    async def go_on(self) -> Response:
        """Go on with a call that asked something first: with the answers, or with a no to all of it."""
        body = await request.body
        try:
            typed, files = await self.view.bench.run(len(body), read_form, request.content_type or "", body)
        except Unreadable as error:
            abort(400, str(error))
        self.check_token(*typed.get("token", ()))
        call = await self.view.bench.run(len(body), trying.carried_call, *typed.get("call", ("",))[:1])
        agrees = typed["action"] == ["accept"]
        answered = partial(trying.answer_of_person, call, typed, files, agrees=agrees)
        answers = await self.view.bench.run(len(body), answered)
        if isinstance(answers, trying.CallQuestions):
            return await self._tool(answers, call.typed, 400)
        told = await trying.call(self.view, await self._find_tool(), call.typed, answers)
        return await self._tool(told, call.typed)

    async def _tool(
        self, told: trying.CallAnswer | trying.CallQuestions | None, typed: Pairs, code: int = 200
    ) -> Response:
        tool = await self._find_tool()
        wanted = {"servers": tool.server, "name": tool.tool.name, "limit": "500", "include_unavailable": "true"}
        rows = (await self.ask(operations.TOOLS, wanted))["tools"]
        return await self.page(
            "tool",
            tool.path,
            code=code,
            tool=next((row for row in rows if row["path"] == tool.path), None) or abort(404, "There is no such tool."),
            description=trying.make_visible(tool.tool.description or ""),
            schema=trying.make_visible(trying.format_schema(tool.tool.input_schema)),
            fields=trying.fields_of(tool.tool),
            typed=typed,
            answer=told if isinstance(told, trying.CallAnswer) else None,
            asked=told if isinstance(told, trying.CallQuestions) else None,
            callable=REQUESTER.get().allows(EXECUTE),
            history=await self.ask(operations.TOOL_HISTORY, {"path": tool.path}),
            json="/api/tools",
        )

    async def _find_tool(self) -> trying.FoundTool:
        seen = (await self.view.seen_by(REQUESTER.get().person)).catalogue
        return trying.find(seen, request.args.get("path", "")) or abort(404, "There is no such tool.")

    async def calls(self) -> Response:
        """Show the newest calls, one by one."""
        names = ("server", "tool", "client", "user", "outcome", "slower_than_ms", "meta_tools")
        asked = {name: request.args.get(name, "")[:200] for name in names}
        wanted = {name: value for name, value in asked.items() if value}
        before = {"before": request.args["before"]} if request.args.get("before", "").isdecimal() else {}
        told = await self.ask(operations.CALLS, {**wanted, **before, "limit": str(_PER_PAGE)})
        following = told["next"]
        return await self.page(
            "calls",
            "Calls",
            calls=told,
            asked=asked,
            asks_user=REQUESTER.get().person.may("auditor"),
            outcomes=OUTCOMES,
            kept=self.view.deployment.value.settings.calls_keep_arguments,
            after=None if following is None else f"/ui/calls?{urlencode({**wanted, 'before': following})}",
            json="/api/calls",
        )

    async def usage(self) -> Response:
        """Show what was called, over time and by what."""
        window = _window()
        tables = [
            (title, await self.ask(operations.USAGE, {"window": window, "by": by}), names)
            for title, by, names in (
                ("By tool", "tool", ("server", "tool")),
                ("By server", "server", ("server",)),
                ("By client", "client", ("client",)),
                ("By user", "user", ("user",)),
            )
        ]
        timeline = await self.ask(operations.USAGE_TIMELINE, {"window": window})
        whole = tables[0][1]
        return await self.page(
            "usage", "Usage", window=window, usage=whole, timeline=timeline, tables=tables, json="/api/usage"
        )

    async def changes(self) -> Response:
        """Show the definitions that wait for approval, with what differs."""
        trust, approves = await self.ask(operations.TRUST), self.may_approve
        return await self.page("changes", "Changes", trust=trust, approves=approves, json="/api/trust")

    async def static(self, mark: str, name: str) -> Response:
        """Give the style or the script of the pages; another text has another `mark`."""
        del mark
        return asset(name) if name in ASSETS else abort(404, "There is no such file.")

    async def _by_server(self) -> dict[str, Any]:
        return {row["server"]: row for row in (await self.ask(operations.USAGE, {"by": "server"}))["rows"]}

    def _events_of(self, server: str, tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what happened to a server, the newest first: its states, and what else the feed still has of it.

        `findings` are what is suspicious of `tools` as they are now, at the newest event in which they became so.
        """
        told = [Logged(time=time, fact=change) for time, change in self.view.facts.states.of(server)]
        told += [each for each in self.view.facts.events() if is_of(each.fact, server)]
        told.sort(key=lambda each: each.time)
        seen = self.view.catalogue.value
        entry = seen.own.get(server) or seen.entries.get(server)
        offered = entry.tools if entry is not None else {}
        alarms = {name: (tool.own or tool).alarms for name, tool in offered.items()}
        of_rows = ((row["name"], row["metadata"]["findings"]) for row in tools if alarms.get(row["name"]))
        found = {name: [each for each in every if each["code"] in alarms[name]] for name, every in of_rows}
        shown: list[dict[str, Any]] = []
        for each in told[::-1][:_MAX_EVENTS]:
            fact = each.fact
            state = fact.row if isinstance(fact, StateChange) else None
            named = [name for name in defined_by(fact) if name in found] if found else []
            findings = [f"{name}: {one['message']}" for name in named for one in found.pop(name)]
            shown.append(
                {
                    "time": each.time,
                    "what": fact.words if state is None else life_of(state),
                    "kind": "" if state is None else kind_of(state),
                    "why": told_of(fact),
                    "findings": findings[:_MAX_FINDINGS],
                }
            )
        return shown


def _window() -> str:
    window = request.args.get("window", "1h")
    return window if window in WINDOWS else "1h"


def _other_page(offset: int) -> str:
    given = {name: value for name, value in request.args.items() if name != "offset" and value}
    return f"{request.path}?{urlencode({**given, 'offset': max(0, offset)})}"

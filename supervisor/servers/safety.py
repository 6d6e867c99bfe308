"""What the levels of `expose` and `confirm` mean for each tool, and which tools surely only read.

A tool that no list has may do anything, and counts as dangerous.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import trio

from actors.catalogue.metadata import Judgement, Reading, Traits, judge, reading, traits
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.catalogue.trust import Standing
from actors.catalogue.views import Exposure
from actors.errors import SupervisorError, UnknownTool
from actors.kit import Conditions, Latest, persist
from actors.launch import server_of
from actors.principal import Principal
from supervisor.config.call_rules import CallRules, needs_yes
from supervisor.identity.audit import Audit
from supervisor.identity.people import NO_RULES_OF_ONES_OWN, ConfirmRules, People, user_of
from supervisor.metatools.definitions import EXECUTE, READ_ONLY
from supervisor.metatools.texts import clean
from supervisor.servers.deployment import Deployment

# Which tools surely only read, so that `execute_read_only_mcp_tool` runs them; this is the one place that decides it.
#
# Clients run what is annotated `readOnlyHint` without asking their users, and several at once. Here the annotation is
# ours, on one tool for those of all servers, so we vouch for each of them, and what is in doubt is refused: it costs a
# model one call of the other tool. In this order:
#
# 1. *Its definition is pinned* (`actors.catalogue.trust`): as it was approved, or as it was when the server was first
#    seen. What is suspicious is pinned by nothing but an approval. Where trust is `open`, a change that is not
#    suspicious is pinned as it comes: who wants to see it first sets `notice` or `strict`. The actor of the server
#    compares the definition once more when it sends the call (`actors.server.calls.gate`).
# 2. *Nobody has to say yes to it*, by whichever rule: who is to be asked is not passed over by another name.
# 3. *Nothing says that it destroys*, neither its server nor its words. No setting overrules that.
# 4. *The operator names it* (`read_only` of the entry). Where there is such a list it alone decides, also an empty one:
#    that is for servers whose words are worth nothing.
# 5. Without a list *two say so*: its server declares `readOnlyHint`, and its name and description read as such by our
#    rules (`actors.catalogue.inference`). One alone does not do. Among tools of published servers some that
#    declare it write files, and of those whose names read some declare that they change something.
#
# Both of these come from the server: that is trust in the one who wrote it, as whoever configures a server has it in
# what it is then. It bounds mistakes, not malice; against that there are 1. under `strict`, and 4.

Doubt = Literal["unlisted", "unapproved", "confirmed", "destructive", "unnamed", "undeclared", "unworded"]

WHY: Final[Mapping[Doubt, str]] = {
    "unlisted": "its server does not list it",
    "unapproved": "its definition is not approved as it is now",
    "confirmed": "it runs only after the user has said yes",
    "destructive": "its words, or its server, say that it may destroy something",
    "unnamed": "it is not among the tools that the operator says only read",
    "undeclared": "its server does not declare that it only reads",
    "unworded": "its name and description do not say that it only reads",
}


def doubt(
    tool: str, standing: Standing, rules: CallRules, judged: Judgement, reads: Reading, *, needs_yes: bool
) -> Doubt | None:
    """Return why a tool, by its server's own name for it, does not surely only read; None if it does."""
    if tool in standing.unpinned:
        return "unapproved"
    if needs_yes:
        return "confirmed"
    if judged.requires_confirmation or judged.safety == "dangerous":
        return "destructive"
    if rules.read_only is not None:
        return None if rules.names_as_reading(tool) else "unnamed"
    if not reads.declared:
        return "undeclared"
    return None if reads.worded else "unworded"


class NotReadOnly(SupervisorError, code=-31453, kind="not_read_only"):
    """`execute_read_only_mcp_tool` was asked for a tool that does not surely only read. Nothing was called:
    `execute_mcp_tool` runs it. `data.reason` says why."""

    def __init__(self, server: str, tool: str, path: str, why: Doubt) -> None:
        text = (
            f"{clean(path)[:200]} was not run by {READ_ONLY}: {WHY[why]}; nothing was called. Call {EXECUTE} with the "
            f"same tool_path and arguments"
        )
        super().__init__(text, server=server, details={"reason": why, "instead": EXECUTE})
        self.tool = tool

    def record(self, audit: Audit) -> None:
        audit.tally("tool.refuse", f"{self.server}:{self.tool}", outcome="refused", detail="not surely read-only")


UNKNOWN: Final = Judgement()
MAX_JUDGED: Final = 10_000
"""So many judgements are kept: those of tools that are called."""
MAX_BOUND: Final = 1000
"""So many calls, by who calls what, whose rules are kept. Names may be made up by clients, of 8 KiB each."""


class _Known(NamedTuple):
    """What is known of a tool, as long as it is this one."""

    tool: Tool | None = None
    judged: Judgement = UNKNOWN
    traits: Traits = Traits()
    reads: Reading = Reading()


_NOTHING: Final = _Known()


class CallSafety(NamedTuple):
    """What holds for somebody's calls of a tool: clients may call it; it `needs_yes`, which is refused at once."""

    exposed: bool
    needs_yes: bool
    refused: bool


class SafetyRules:
    """What holds now: of the newest deployment and the newest catalogue."""

    def __init__(self, deployment: Latest[Deployment], catalogue: Latest[Catalogue]) -> None:
        self._deployment = deployment
        self._catalogue = catalogue
        self._judged: dict[tuple[str, str], _Known] = {}
        self._people: tuple[People, dict[Principal, ConfirmRules]] = People(), {}
        self._bound: dict[tuple[Principal, str, str], CallSafety] = {}
        self._bound_at = -1, -1

    def of_call(self, principal: Principal, server: str, tool: str) -> CallSafety:
        """Return what holds now for a call of a tool, by its server's own name for it: looked for once after each
        change of the configuration or of the catalogue.

        The server is named by its launch, here and below: two of them may know other tools.
        """
        now = self._deployment.version, self._catalogue.version
        if self._bound_at != now or len(self._bound) >= MAX_BOUND:
            self._bound, self._bound_at = {}, now
        called = principal, server, tool
        if (bound := self._bound.get(called)) is None:
            needs_yes = self.confirms(principal, server, tool)
            refused = needs_yes and self.of_person(principal).mode == "refuse"
            rules = self._deployment.value.rules_of(server_of(server))
            exposed = rules.expose == "dangerous" or rules.exposes(self._judgement(server, tool))
            bound = self._bound[called] = CallSafety(exposed, needs_yes, refused)
        return bound

    def confirms(self, principal: Principal, server: str, tool: str) -> bool:
        """Say whether a tool, by its server's own name for it, runs for somebody only after they have said yes."""
        rules, person = self._deployment.value.rules_of(server_of(server)), self.of_person(principal)
        if person is NO_RULES_OF_ONES_OWN and rules.confirm_from == "none" and not rules.confirm:
            return False
        by_level = rules.confirm_from != "none" or person.level is not None
        judged = self._judgement(server, tool) if by_level else UNKNOWN
        return needs_yes(rules, person, server_of(server), tool, judged)

    def of_person(self, principal: Principal) -> ConfirmRules:
        """Return what somebody has to say yes to besides what everybody has."""
        identity = self._deployment.value.settings.identity
        people, known = self._people
        if people is not identity or len(known) >= MAX_JUDGED:
            self._people = _, known = identity, {}
        if (rules := known.get(principal)) is None:
            user = user_of(principal)
            known[principal] = rules = identity.confirm_rules(user) if user else NO_RULES_OF_ONES_OWN
        return rules

    def traits(self, server: str, tool: str) -> Traits:
        """Return what a tool, by its server's own name for it, is taken for."""
        return self._known(server, tool).traits

    def doubt(self, principal: Principal, server: str, tool: str) -> Doubt | None:
        """Return why a tool does not surely only read, of somebody's call of it; None if it does. See `reading`."""
        known, entry = self._known(server, tool), self._entry(server)
        if known.tool is None or entry is None:
            return "unlisted"
        needs = self.confirms(principal, server, tool)
        rules = self._deployment.value.rules_of(server_of(server))
        return doubt(tool, entry.standing, rules, known.judged, known.reads, needs_yes=needs)

    def _judgement(self, server: str, tool: str) -> Judgement:
        return self._known(server, tool).judged

    def _known(self, server: str, tool: str) -> _Known:
        """Return what is known of a tool that clients are shown."""
        entry = self._entry(server)
        listed = entry.by_own_name.get(tool) if entry is not None else None
        if listed is None:
            return _NOTHING
        known = self._judged.get((server, tool))
        if known is None or known.tool is not listed:
            if len(self._judged) >= MAX_JUDGED:
                self._judged.clear()
            known = _Known(listed, judge(listed), traits(server_of(server), listed), reading(listed))
            self._judged[server, tool] = known
        return known

    def _entry(self, server: str) -> Entry | None:
        return self._catalogue.value.of_launch(server)


class WithheldTool(UnknownTool):
    """A rule of the operator hides a tool from clients. They are told nothing else; the audit is."""

    def __init__(
        self,
        message: str,
        server: str,
        tool: str,
        details: Mapping[str, Any] | None = None,
        why: str = "hidden from clients",
    ) -> None:
        super().__init__(message, server=server, details=details)
        self.tool = tool
        self._why = why

    def record(self, audit: Audit) -> None:
        audit.tally("tool.refuse", f"{self.server}:{self.tool}", outcome="refused", detail=self._why)


def exposure_error(server: str, tool: str) -> UnknownTool:
    named = f"tool {clean(tool[:100])!r} of server {server!r}"
    why = "its safety level is over what the operator exposes (setting 'expose'); nothing was called, tell the user"
    return WithheldTool(f"{named} is not for clients: {why}", server, tool)


def exposes_all(deployment: Deployment) -> bool:
    """Say whether clients are shown every tool, whatever it does."""
    return all(rules.expose == "dangerous" for rules in deployment.rules.values())


async def expose(
    catalogue: Latest[Catalogue],
    deployment: Latest[Deployment],
    conditions: Conditions,
    *,
    task_status: trio.TaskStatus[Latest[Catalogue]],
) -> None:
    """Keep a cell with what clients are shown of the catalogue, with which it is started.

    Where that is everything, the cell has what the catalogue has, in the same moment.
    """
    exposure = Exposure()

    async def narrow() -> Catalogue:
        highest = {server: rules.expose for server, rules in deployment.value.rules.items()}
        return await trio.to_thread.run_sync(exposure.of, catalogue.value, highest)

    async def shown_now() -> Catalogue:
        return await persist(conditions, "exposure of tools", narrow)

    narrowed = not exposes_all(deployment.value)
    shown = Latest(await shown_now() if narrowed else catalogue.value)
    changed = trio.Event()

    def on_set() -> None:
        nonlocal narrowed
        if not narrowed and not exposes_all(deployment.value):
            narrowed = True
            exposure.begin_with(shown.value)
        if narrowed:
            changed.set()
        else:
            shown.set(catalogue.value)

    with catalogue.on_set(on_set), deployment.on_set(on_set):
        task_status.started(shown)
        while True:
            await changed.wait()
            changed = trio.Event()
            shown.set(await shown_now())

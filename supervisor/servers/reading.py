"""Which tools surely only read, so that `execute_read_only_mcp_tool` runs them. Pure; the one place that decides it.

Clients run what is annotated `readOnlyHint` without asking their users, and several at once. Here the annotation is
ours, on one tool for those of all servers, so we vouch for each of them, and what is in doubt is refused: it costs a
model one call of the other tool. In this order:

1. *Its definition is pinned* (`actors.catalogue.trust`): as it was approved, or as it was when the server was first
   seen. What is suspicious is pinned by nothing but an approval. Where trust is `open`, a change that is not suspicious
   is pinned as it comes: who wants to see it first sets `notice` or `strict`. The actor of the server compares the
   definition once more when it sends the call (`actors.server.calls.gate`).
2. *Nobody has to say yes to it*, by whichever rule: who is to be asked is not passed over by another name.
3. *Nothing says that it destroys*, neither its server nor its words. No setting overrules that.
4. *The operator names it* (`read_only` of the entry). Where there is such a list it alone decides, also an empty one:
   that is for servers whose words are worth nothing.
5. Without a list *two say so*: its server declares `readOnlyHint`, and its name and description read as such by our
   rules (`actors.catalogue.lists.inference`). One alone does not do. Among tools of published servers some that declare
   it write files, and of those whose names read some declare that they change something.

Both of these come from the server: that is trust in the one who wrote it, as whoever configures a server has it in
what it is then. It bounds mistakes, not malice; against that there are 1. under `strict`, and 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from actors.catalogue.metadata import Judgement, Reading
from actors.catalogue.trust import Standing
from actors.errors import SupervisorError
from supervisor.config.call_rules import CallRules
from supervisor.identity.audit import Audit
from supervisor.metatools.definitions import EXECUTE, READ_ONLY
from supervisor.metatools.texts import clean

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

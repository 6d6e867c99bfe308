"""What servers ask people, while it waits for an answer: what can be answered on a page of the daemon, and who is told.

A client that can be asked is asked by itself. Where it cannot, a person may answer here: a link leads there, which
whoever is shown it can follow. What is typed there goes to the server and nowhere else. Nobody who does not answer has
said yes: when the time is over, whoever waits for the answer gives it up, and the question is gone.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
import trio
from msgspec.structs import asdict

from actors.errors import CannotAsk, InvalidArguments
from actors.facts import FactLog
from actors.kit import Quota, Reply, Shares
from actors.launch import server_of
from actors.messages import Question
from actors.principal import Principal
from actors.protocol.agreement.capabilities import ELICIT
from actors.protocol.asking.forms import Form, read, wrong
from actors.protocol.asking.questions import refusal
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import RemoteError, encode
from supervisor.events.kinds import MAX_TEXT, ElicitationAsked, ElicitationEnded
from supervisor.identity.audit import NO_AUDIT, Audit, Outcome
from supervisor.metatools.questions import LASTING, is_yes, lasts
from supervisor.service.client import Client

log = logging.getLogger(__name__)

Action = Literal["accept", "decline", "cancel"]
Asked = Literal["client", "page"]
"""Who was asked: the client that made the call, or whoever opens the page."""

PAGES: Final = "/questions"
MAX_OPEN: Final = 1024
MAX_OPEN_OF_ONE: Final = 256
"""Of one principal, whose clients share it; see `actors.kit.fairness.quota`."""
_ID_BYTES: Final = 16


class Elicitation(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A question that a person may answer on its page. `about` is the tool, the prompt or the URI of the call; `plugin`
    is who asks, if that is not the server. `client` is what the program that made the call is called by itself.

    `tool` is the server's own name of the one that is called, if any. `confirms`: it is whether that may run, and the
    daemon asks; `repeats`: the call goes on once its client makes it again. `asked_at` and `expires` are moments of the
    trio clock.
    """

    id: str
    server: str
    about: str
    principal: Principal
    form: Form
    asked_at: float
    expires: float
    reply: Reply[msgspec.Raw]
    plugin: str = ""
    client: str = ""
    tool: str = ""
    confirms: bool = False
    repeats: bool = False


class Elicitations:
    """The open ones. `facts` has each that is asked or ended, `base` is the address of the daemon's pages."""

    def __init__(self, facts: FactLog, base: str = "", audit: Audit = NO_AUDIT) -> None:
        self._audit = audit
        self._facts = facts
        self.base = base
        self._open: dict[str, Elicitation] = {}
        self._places = Shares(MAX_OPEN)
        self._shared: dict[Principal, Quota] = {}

    def __len__(self) -> int:
        return len(self._open)

    def of(self, principal: Principal) -> list[Elicitation]:
        return [each for each in self._open.values() if each.principal == principal]

    def find(self, id_: str, principal: Principal) -> Elicitation | None:
        elicitation = self._open.get(id_)
        return elicitation if elicitation is not None and elicitation.principal == principal else None

    def address(self, id_: str = "") -> str:
        return f"{self.base}{PAGES}/{id_}" if id_ else f"{self.base}{PAGES}"

    def offer(
        self, call: CallElicitations, question: Question, reply: Reply[msgspec.Raw], *, repeats: bool = False
    ) -> str:
        """Let a person answer; return the address. It is gone once `reply` is settled, however that happens.

        `repeats`: the client has to make its call again then. Raises `CannotAsk` for what cannot be shown on a page, or
        if too many wait.
        """
        if question.method != ELICIT or (why := refusal(question.method, question.params)) is not None:
            raise CannotAsk("this cannot be asked on a page" if question.method != ELICIT else f"a server asked {why}")
        form = read(question.params)
        if form is None:
            raise CannotAsk("a form cannot be read, or is too large for a page")
        principal, program = call.client.principal, call.client.program
        shared = self._shared.get(principal) or Quota(MAX_OPEN_OF_ONE)
        if not self._places.has_place(principal) or not shared.has_room(program):
            raise CannotAsk(f"{shared.amount_of(program)} questions of this client wait for an answer already")
        shared.add(program)
        self._places.add(principal)
        self._shared[principal] = shared
        id_ = secrets.token_hex(_ID_BYTES)  # none begins with a hyphen, which a command would take for an option
        self._open[id_] = Elicitation(
            id=id_,
            server=call.server,
            about=call.about,
            principal=principal,
            form=form,
            asked_at=trio.current_time(),
            expires=trio.current_time() + call.timeout_s,
            reply=reply,
            plugin=call.plugin,
            client=call.client.name,
            tool=call.tool,
            confirms=call.confirms,
            repeats=repeats,
        )
        self._tell(call, form, reply, "page", id_)
        by = "the daemon" if call.confirms else who_asks(call.server, call.plugin)
        log.info("%s asks a user something: it can be answered at %s", by, self.address())
        return self.address(id_)

    def on_asked(self, call: CallElicitations, question: Question, reply: Reply[msgspec.Raw]) -> None:
        if question.method == ELICIT and (form := read(question.params)) is not None:
            self._tell(call, form, reply, "client", "")

    def answer(self, elicitation: Elicitation, action: Action, content: Mapping[str, Any]) -> None:
        """Answer for a person. Raises `InvalidArguments` with what is wrong with each field of an accepted form."""
        answer: dict[str, Any] = {"action": action}
        if action == "accept" and not elicitation.form.url:
            if problems := wrong(elicitation.form, content):
                told = "; ".join(f"{name[:100]}: {why}" for name, why in problems.items())
                raise InvalidArguments(
                    f"the form is not filled in as it should be: {told}", details={"fields": problems}
                )
            answer["content"] = content
        elicitation.reply.answer(msgspec.Raw(encode(answer)))

    def _tell(self, call: CallElicitations, form: Form, reply: Reply[msgspec.Raw], asked: Asked, id_: str) -> None:
        principal = call.client.principal
        told = ElicitationAsked(
            server_slug=server_of(call.server),
            tool_name=call.tool[:MAX_TEXT] or None,
            kind=form.kind,
            asked=asked,
            plugin=call.plugin or None,
            question_id=id_ or None,
        )
        self._facts.note(told, principal=principal)

        def end() -> None:
            if self._open.pop(id_, None) is not None:
                self._give_back(call.client)
            ended = ElicitationEnded(**asdict(told), action=_action_of(reply.value))
            self._facts.note(ended, principal=principal)
            self._note(call, form, reply)

        reply.on_settled(end)

    def _note(self, call: CallElicitations, form: Form, reply: Reply[msgspec.Raw]) -> None:
        """Record an answer, of whoever gives it, in the moment when it is given."""
        answer, target = reply.value, f"{call.server}:{call.tool}" if call.tool else call.server
        if call.confirms:
            if answer is not None and is_yes(answer):
                how = lasts(answer)
                self._audit.note("tool.confirm", target, detail="the user said yes" + (how and f", {LASTING[how]}"))
            elif answer is not None or isinstance(reply.failure, RemoteError):
                self._audit.note("tool.confirm", target, outcome="refused", detail="the user did not say yes")
        elif (action := _action_of(answer)) != "none":
            outcome: Outcome = "done" if action == "accept" else "refused"
            of = f", asked by plugin {call.plugin}" if call.plugin else ""
            self._audit.note("question.answer", target, outcome=outcome, detail=f"{action}, {form.kind}{of}")

    def _give_back(self, client: Client) -> None:
        shared = self._shared[client.principal]
        shared.remove(client.program)
        self._places.remove(client.principal)
        if not shared.used:
            del self._shared[client.principal]


class CallElicitations(msgspec.Struct, frozen=True):
    """What is asked during one call; `everyone`: on a page, too, where the client cannot be asked.

    `confirms`: it is asked whether the tool may run; `plugin` is who asks, if that is not the server. `tool`: it is of
    a call of that one, and events name it.
    """

    all: Elicitations
    server: str
    about: str = ""
    timeout_s: float = 0.0
    everyone: bool = False
    client: Client = Client()
    confirms: bool = False
    plugin: str = ""
    tool: str = ""

    def offer(self, question: Question, reply: Reply[msgspec.Raw], *, repeats: bool = False) -> str:
        return self.all.offer(self, question, reply, repeats=repeats)

    def on_asked(self, question: Question, reply: Reply[msgspec.Raw]) -> None:
        self.all.on_asked(self, question, reply)


def who_asks(server: str, plugin: str) -> str:
    """Return who asks something during a call of a server, in words."""
    return f"plugin {plugin}" if plugin else f"server {server}"


def _action_of(answer: msgspec.Raw | None) -> str:
    if answer is None:
        return "none"
    action = json.text_at(answer, "action")
    return action if action in ("accept", "decline", "cancel") else "unreadable"

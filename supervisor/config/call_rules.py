"""What holds for the calls of a server: of its entry, and of the daemon where that says nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TypeVar

import msgspec

from actors.catalogue.metadata import Judgement, Safety
from actors.protocol.asking.questions import Fallback
from supervisor.config.entry import ServerConfig
from supervisor.config.settings import Settings
from supervisor.config.values import Confirm
from supervisor.identity.people import ConfirmRules

T = TypeVar("T")


class CallRules(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the calls of one server; where a default is, it holds for those of a server that there is not.

    `timeout_s`: how long one may take, waiting for the server included; `max_s`: all questions to its client included.
    `task_max_s`: for how long a task of a client is known, from its beginning. `question_timeout_s`: how long a client
    may take to answer what the server asks, which else gets `question_fallback`; it may ask so many questions per call,
    and so many per minute during all calls. `asks`: it may ask anything at all, `asks_everyone`: also through the
    results of meta-tools, where a client cannot be asked. `confirm`: patterns of the tools that need a yes to run, and
    `confirm_from` the safety level that needs one, but for those of `confirm_except`; `confirm_within_s`: times for it
    by such patterns. `read_only`: patterns of the tools that only read by the operator's word, None without a word.
    `expose`: the highest level that clients see. `result_budgets`: the tokens that results may have. All patterns are
    of the server's own names.
    """

    timeout_s: float
    max_s: float
    task_max_s: float = 0.0
    question_timeout_s: float = 0.0
    question_fallback: Fallback = "cancel"
    questions_per_call: int = 0
    questions_per_min: int = 0
    asks: bool = False
    asks_everyone: bool = False
    confirm: tuple[str, ...] = ()
    confirm_except: tuple[str, ...] = ()
    confirm_from: Confirm = "none"
    confirm_within_s: Mapping[str, float] = {}
    read_only: tuple[str, ...] | None = None
    expose: Safety = "dangerous"
    result_budgets: Mapping[str, int] = {}

    def confirms(self, tool: str, judged: Judgement, *, for_person: bool = False) -> bool:
        """Say whether a tool runs only after a yes, by its name or by what is known of its safety.

        `for_person`: it is of a level from which on whoever calls is asked.
        """
        by_level = self.confirm_from != "none" and (judged.requires_confirmation or judged.reaches(self.confirm_from))
        if not (by_level or for_person) and not any(fnmatchcase(tool, each) for each in self.confirm):
            return False
        return not any(fnmatchcase(tool, each) for each in self.confirm_except)

    def exposes(self, judged: Judgement) -> bool:
        return self.expose == judged.safety or not judged.reaches(self.expose)

    def names_as_reading(self, tool: str) -> bool:
        """Say whether the operator names a tool as one that only reads."""
        return any(fnmatchcase(tool, each) for each in self.read_only or ())

    def confirmed_within_s(self, tool: str) -> float:
        """Return how long the user may take to say yes to a tool."""
        seconds = _first(self.confirm_within_s, tool)
        return self.question_timeout_s if seconds is None else seconds

    def result_budget(self, tool: str) -> int | None:
        """Return how many tokens the result of a tool may have; None: any number."""
        return _first(self.result_budgets, tool)


def needs_yes(rules: CallRules, person: ConfirmRules, server: str, tool: str, judged: Judgement) -> bool:
    """Say whether somebody's call of a tool runs only after a yes: the strictest of all rules says so.

    What a server never asks about (`confirm_except`) is asked where a person's rules name it. Nobody is asked who is
    not to be asked at all.
    """
    if person.mode == "run":
        return False
    return person.confirms(server, tool) or rules.confirms(tool, judged, for_person=person.reaches(judged))


def _first(by_pattern: Mapping[str, T], tool: str) -> T | None:
    """Return what the first pattern that fits a tool stands for."""
    return next((value for pattern, value in by_pattern.items() if fnmatchcase(tool, pattern)), None)


def rules_for(config: ServerConfig, settings: Settings) -> CallRules:
    timeout_s = config.deadline_s(settings)
    return CallRules(
        timeout_s=timeout_s,
        max_s=max(timeout_s, config.call_max_s),
        task_max_s=config.task_max_s,
        question_timeout_s=config.question_timeout_s,
        question_fallback=config.question_fallback,
        questions_per_call=config.max_questions_per_call,
        questions_per_min=config.max_questions_per_min,
        asks=config.ask != "none",
        asks_everyone=config.ask == "everyone",
        confirm=() if isinstance(config.confirm, str) else config.confirm,
        confirm_except=config.confirm_except,
        confirm_from=config.confirm if isinstance(config.confirm, str) else settings.confirm,
        confirm_within_s=config.confirm_within_s,
        read_only=config.read_only,
        expose=config.expose or settings.expose,
        result_budgets=_budgets(config.result_token_budget, settings.result_token_budget),
    )


def _budgets(own: int | Mapping[str, int] | None, usual: int | None) -> Mapping[str, int]:
    """Return the budgets by patterns of tools: those of the entry, and of all others that of the daemon."""
    of_all = own if isinstance(own, int) else usual
    by_name = {} if own is None or isinstance(own, int) else own
    return by_name if of_all is None or "*" in by_name else {**by_name, "*": of_all}

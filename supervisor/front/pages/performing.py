"""Operations performed over HTTP: a function is marked with what it performs, and becomes a page of the application.

- The first parameter of a function is the view, or what is made of the view once: a class whose constructor takes it.
- `query` has the parameters of the address, `body` what the body has: structs, which the reference lists. All other
  parameters are the arguments of the path.
- It returns what becomes JSON, JSON text (bytes), or a response of its own. It raises what is wrong.
- What takes a while is made for all who ask meanwhile (`SharedPage`).

What changes something is recorded, whatever becomes of it. What a function alone knows of that it says by `describe`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, Final, TypeVar, get_type_hints

import msgspec
import trio
from quart import Response, g, request
from quart_trio import QuartTrio

from actors.errors import SupervisorError
from supervisor.front.pages.app import json_response, status_of
from supervisor.front.pages.requests import check_from_here, check_key, decode, read_json
from supervisor.front.pages.view import View
from supervisor.identity.audit import Audit, Outcome
from supervisor.operations import SUBJECTS, Operation


class SharedPage:
    """A page that takes a while: everybody gets one whose making began after they asked, and few are made."""

    def __init__(self, make: Callable[[], Awaitable[bytes]]) -> None:
        self._make = make
        self._turn = trio.Lock()
        self._begun = 0
        self._made = 0
        self._page = b""

    async def get(self) -> bytes:
        """Return the page, made for all who asked before it was begun. A checkpoint."""
        wanted = self._begun + 1
        async with self._turn:
            if self._made < wanted:
                self._begun += 1
                number = self._begun
                self._page = await self._make()
                self._made = number
            return self._page


NO_ARGUMENTS: Final[Mapping[str, str]] = {}
Function = TypeVar("Function", bound=Callable[..., Awaitable[Any]])


class Performer:
    """Performs one operation for whoever asks for the present page."""

    def __init__(self, operation: Operation, function: Callable[..., Awaitable[Any]]) -> None:
        self.operation = operation
        self.function = function

    @cached_property
    def _types(self) -> dict[str, Any]:
        return get_type_hints(self.function)

    @property
    def query(self) -> type[msgspec.Struct] | None:
        return self._types.get("query")

    @cached_property
    def _subject(self) -> type[Any]:
        """What the function is given first: the view, or what there is one of for each view."""
        return self._types[next(iter(inspect.signature(self.function).parameters))]  # type: ignore[no-any-return]  # an annotation may be anything; of these it is a class

    @cached_property
    def _body(self) -> tuple[msgspec.json.Decoder[Any], str] | None:
        type_ = self._types.get("body")
        return None if type_ is None else (msgspec.json.Decoder(type_), getattr(type_, "HAS", ""))

    def row(self) -> dict[str, Any]:
        """Return what people are told of it: its text is the docstring of its function, on one line."""
        fields = msgspec.structs.fields(self.query) if self.query is not None else ()
        return {
            "method": self.operation.method,
            "path": self.operation.rule,
            "role": self.operation.role,
            "command": self.operation.command,
            "parameters": [field.encode_name for field in fields],
            "what": " ".join((inspect.getdoc(self.function) or "").split()),
        }

    def of(self, view: View, made: dict[type[Any], Any]) -> Perform:
        """Return what performs it for a view; `made` has what was made of that already, by its class."""
        if self._subject not in made:
            made[self._subject] = self._subject(view)
        return partial(self._perform, view, made[self._subject])

    async def _perform(
        self, view: View, subject: Any, given: Iterable[tuple[str, str]], arguments: Mapping[str, str]
    ) -> Any:
        act = partial(self._act, view, subject, given, arguments)
        if not self.operation.audit:
            return await act()
        return await record(view.audit, self.operation.audit, act, arguments)  # whoever asks: the dashboard does, too

    async def _act(
        self, view: View, subject: Any, given: Iterable[tuple[str, str]], arguments: Mapping[str, str]
    ) -> Any:
        more: dict[str, Any] = {**arguments}
        if self.query is not None:
            more["query"] = decode(given, self.query)
        operation = self.operation
        if operation.keyed:
            check_key(view.operator, operation.keyed, operation.command)
        elif operation.local:
            check_from_here(request.scope)
        if self._body is not None:
            more["body"] = await read_json(view.bench, *self._body)
        return await self.function(subject, **more)


Perform = Callable[[Iterable[tuple[str, str]], Mapping[str, str]], Awaitable[Any]]
"""Performs an operation with the parameters of an address and the arguments of a path. Raises what it does."""
PERFORMERS: Final[dict[Operation, Performer]] = {}
"""Each has one, once the modules of this folder are imported."""


def performs(operation: Operation) -> Callable[[Function], Function]:
    """Mark the function that performs an operation."""

    def add(function: Function) -> Function:
        PERFORMERS[operation] = Performer(operation, function)
        return function

    return add


def add_operations(view: View, app: QuartTrio) -> Mapping[Operation, Perform]:
    """Add the pages of all operations to an application, and return what performs each."""
    made: dict[type[Any], Any] = {View: view}
    performed = {each: PERFORMERS[each].of(view, made) for subject in SUBJECTS.values() for each in subject}
    for operation, perform in performed.items():
        add_page(app, operation, partial(_page, operation, perform))
    return performed


def add_page(app: QuartTrio, operation: Operation, page: Callable[..., Awaitable[Any]], *, strict: bool = True) -> None:
    """Add a page to an application; if it is not `strict`, a slash may follow its path."""
    app.add_url_rule(operation.rule, operation.route, page, methods=[operation.method], strict_slashes=strict)


async def _page(operation: Operation, perform: Perform, **arguments: str) -> Response:
    said = await perform(request.args.items(multi=True), arguments)
    return said if isinstance(said, Response) else json_response(said, operation.status)


def describe(target: str = "", detail: str = "") -> None:
    """Say of the page that is being made what it changes, where its path does not."""
    g.audit_target, g.audit_detail = target, detail


async def record(
    audit: Audit, action: str, act: Callable[[], Awaitable[Any]], arguments: Mapping[str, str] = NO_ARGUMENTS
) -> Any:
    """Do what is recorded as an action, whatever becomes of it. `arguments` are those of the path."""
    outcome: Outcome = "failed"
    try:
        answer = await act()
        outcome = "done"
    except trio.Cancelled:
        outcome = "unknown"
        raise
    except SupervisorError as error:
        outcome = outcome_of(error)
        raise
    finally:
        target = g.get("audit_target", "") or arguments.get("server", "")
        audit.note(action.format(**arguments), target, outcome=outcome, detail=g.get("audit_detail", ""))
    return answer


def outcome_of(error: SupervisorError) -> Outcome:
    """Return how an action ended that was answered with an error."""
    if error.outcome == "unknown":
        return "unknown"
    return "refused" if status_of(error) < 500 else "failed"

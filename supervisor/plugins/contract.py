"""What a plugin is: a class with hooks, which the daemon calls. The author of one imports this, and `questions` to ask.

A plugin is named by an entry point of the group `mcpvisor.plugins`, and by the configuration of the daemon. It derives
from `Plugin` and defines the hooks that it needs. Those that it does not define cost nothing.

- A hook is a plain function, which runs in a thread, or `async def`, which runs on trio's loop and must not block it.
- It has a deadline (`plugin_call_timeout_s`, `plugin_discovery_timeout_s`). A thread cannot be stopped: what a late one
  returns is dropped, and its place is taken until it ends.
- What it is given is frozen, and was written by others: clients, models and servers. What it raises is never shown to
  them.
- Hooks of several calls run at the same time. What a plugin keeps, it has to keep safe for threads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from actors.protocol.wire import json
from supervisor.identity.people import Viewer as Viewer
from supervisor.plugins.questions import GivenAnswer, T, UserAnswer, UserQuestion


class PluginOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of the options of a plugin: its fields are the keys, their types and defaults what the keys take.

    What is wrong with the values besides their types is a `ValueError` of `__post_init__`. Its text is shown to the
    operator, with file and line, and must not have the value.
    """


O = TypeVar("O", bound=PluginOptions)  # noqa: E741 - of the options


class Undecodable(ValueError):
    """What a client or a server wrote cannot be decoded. A hook may let it pass: that is no failure of the plugin."""


class Rejection(Struct, frozen=True):
    """A hook says no. `reason` is a short sentence, which operators read, and models where it is about a call."""

    reason: str


class ServerFacts(Struct, frozen=True, kw_only=True):
    """A server before its discovery. `kind` is `stdio`, `http`, `sse` or `ws`.

    Of a local server `command` and `args`, of a remote one the `host` of its address: neither environment nor headers.
    """

    name: str
    kind: str
    command: str = ""
    args: tuple[str, ...] = ()
    host: str = ""


class ToolDefinition(Struct, frozen=True, kw_only=True):
    """A tool as its server defines it: `text` is JSON, an object with `name`, `description`, `inputSchema` and more.

    `category` and `safety` (`safe`, `moderate`, `dangerous`) are what the daemon takes it for, by what is declared and
    by its words: a server that lies has lied here, too.
    """

    server: str
    name: str
    text: bytes
    category: str = "general"
    safety: str = "dangerous"

    def decode(self) -> dict[str, Any]:
        """Return the definition as values. Raises `Undecodable`."""
        return _object(self.text)

    def with_members(self, **members: Any) -> ToolDefinition:
        """Return the definition with other values of some members. Raises `Undecodable`."""
        return replace(self, text=msgspec.json.encode({**self.decode(), **members}))

    def with_meta(self, **members: Any) -> ToolDefinition:
        """Return the definition with other values of some members of its `_meta`. Raises `Undecodable`.

        `tags` and `category` there select tools, `requiresConfirmation` and more count as if the server declared them.
        """
        meta = self.decode().get("_meta")
        return self.with_members(_meta={**(meta if isinstance(meta, dict) else {}), **members})


class DiscoveryFacts(Struct, frozen=True, kw_only=True):
    """What came out of a discovery: the tools that plugins let pass, by the server's names, and why not the others."""

    server: str
    tools: tuple[str, ...] = ()
    rejected: dict[str, str] = {}


class ToolCall(Struct, frozen=True, kw_only=True):
    """A call of a tool, and who makes it.

    `user` is empty where nobody has to say who they are; `role` is `member`, `auditor` or `admin`. `teams` are
    those of the user, or the one that the token is for. `client` is what the program calls itself, which proves
    nothing. `tool` is the server's own name of it, `category` and `safety` are those of its `ToolDefinition`.
    `arguments` is JSON, an object that has each key once. `answers` are those to the plugin's own questions about this
    call, by their keys: see `answer`.
    """

    user: str
    role: str
    teams: frozenset[str]
    client: str
    server: str
    tool: str
    arguments: bytes
    category: str = "general"
    safety: str = "dangerous"
    answers: Mapping[str, GivenAnswer] = {}

    @property
    def path(self) -> str:
        """The tool as `server:tool`."""
        return f"{self.server}:{self.tool}"

    def decode_arguments(self) -> dict[str, Any]:
        """Return the arguments as values. Raises `Undecodable`."""
        return _object(self.arguments)

    def answer(self, question: UserQuestion[T]) -> UserAnswer[T] | None:
        """Return what somebody answered; None if they were not asked yet, which returning the question does."""
        return question.read(self.answers.get(question.key))


BeforeCall = Rejection | UserQuestion[Any] | dict[str, Any] | bytes | None
AfterCall = UserQuestion[Any] | dict[str, Any] | bytes | None


class Plugin(Generic[O]):
    """The base of all plugins. Each hook may be overridden, by a function or an `async def`.

    `options_type` are the options that it takes. `guards`: what it has to decide must not happen without it. What a
    hook of such a plugin cannot answer is refused; of any other plugin it goes on as if there were no plugin.

    One is made at the start, and again when its options change: the one before gets no more calls then.
    """

    options_type: ClassVar[type[PluginOptions]] = PluginOptions
    guards: ClassVar[bool] = False

    def __init__(self, options: O) -> None:
        """Keep what the plugin needs: not for long, and nothing that has to be closed."""
        self.options = options

    def before_discovery(self, server: ServerFacts) -> Rejection | Awaitable[Rejection | None] | None:
        """Say whether a server may be started and read: at the start of the daemon, and at each reload."""
        raise NotImplementedError(server)

    def transform_tool(
        self, tool: ToolDefinition
    ) -> ToolDefinition | Rejection | Awaitable[ToolDefinition | Rejection | None] | None:
        """Return what clients see of a tool, None for what they saw without this, or why they do not see it.

        The name stays. A call reaches the server's own tool, whatever is said of it here.
        """
        raise NotImplementedError(tool)

    def after_discovery(self, discovery: DiscoveryFacts) -> Awaitable[None] | None:
        """Hear what came out of a discovery."""
        raise NotImplementedError(discovery)

    def hide_tool(self, tool: ToolDefinition, viewer: Viewer) -> Rejection | Awaitable[Rejection | None] | None:
        """Say why somebody neither sees nor calls a tool, by what is given alone: the answer is kept as long as that is
        the same. Only a plugin that guards may have it, since whoever it cannot judge must see nothing.
        """
        raise NotImplementedError(tool, viewer)

    def before_call(self, call: ToolCall) -> BeforeCall | Awaitable[BeforeCall]:
        """Return other arguments for a call, None to leave them, why it is refused, which the model is told, or a
        question for whoever makes it: then this is called again with the answer.
        """
        raise NotImplementedError(call)

    def after_call(self, call: ToolCall, result: bytes) -> AfterCall | Awaitable[AfterCall]:
        """Return another result for a call, None to leave it, or a question, as `before_call` does. `result` is JSON:
        an object of MCP with `content`.
        """
        raise NotImplementedError(call, result)


def decode_result(result: bytes) -> dict[str, Any]:
    """Return the result of a call as values. Raises `Undecodable`."""
    return _object(result)


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.read(json.VALUE, text)
    except json.UnreadableJson:
        raise Undecodable("it cannot be decoded") from None
    if not isinstance(value, dict):
        raise Undecodable("it is no object")
    return value

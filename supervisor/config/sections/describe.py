"""The object `describe` of a configuration: whose model is asked for sentences by which people ask for tools. Pure.

A fault of it is one of the whole file: definitions would go where nobody meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from actors.errors import ConfigError
from actors.transport.redaction import Confidential
from supervisor.config.syntax.address import is_loopback
from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.limits import is_address, launch_faults
from supervisor.config.syntax.units import PositiveSeconds
from supervisor.config.syntax.values import Problem, read_members

DESCRIBE: Final = "describe"
CLIENTS: Final = "the model of a client"
"""What a model is called that is a client's."""


class DescribeSettings(Confidential, Struct, frozen=True, kw_only=True):
    """A model that writes sentences for tools which have none; see `docs/background/search-phrases.md`."""

    url: str = ""
    """The address of an OpenAI-compatible service, as `https://api.openai.com/v1`: what is asked is its
    `/chat/completions`. Variables are filled in."""
    model: str = ""
    """The name of the model there."""
    key: str = ""
    """What the service lets you in by, best as `${NAME}`. Empty: it asks for nothing."""
    insecure_http: bool = False
    """Allow an address on another machine without encryption: whoever reads along on the way reads the key."""
    command: tuple[str, ...] = ()
    """A program that is asked in place of a service, with its arguments; no shell reads them. Variables are filled
    in."""
    sampling: bool = False
    """Ask the models of clients in place of one of yours, where a client of an admin offers that."""
    tools_per_day: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    """For so many definitions the model is asked within 24 hours, at most. One takes some hundred tokens, about 1,000
    at the most, with its answer."""
    batch: Annotated[int, Meta(ge=1, le=50)] = 10
    """Definitions that it is asked for at once, with `sampling` 5 at the most; all are of one server."""
    timeout_s: PositiveSeconds = 120.0
    """Time for one answer; with `sampling` 20 seconds at the most."""

    @property
    def has_model(self) -> bool:
        """Whether a model is named."""
        return bool(self.url or self.command)

    @property
    def is_on(self) -> bool:
        """Whether there is anybody to ask."""
        return self.has_model or self.sampling

    @property
    def called(self) -> str:
        """Return what is asked as it may be shown."""
        return CLIENTS if self.sampling else self.model or self.command[0].rpartition("/")[2]


def read_describe(written: Mapping[str, Any], expand: Callable[[str], str], problem: Problem) -> dict[str, Any]:
    """Return the members of the object. `expand` may raise `ConfigError`; `problem` takes keys from `supervisor` on."""
    own = read_members(DescribeSettings, written, (DESCRIBE,), problem)
    try:
        own |= {name: expand(own[name]) for name in ("url", "model", "key") if name in own}
        if "command" in own:
            own["command"] = [expand(word) for word in own["command"]]
    except ConfigError as error:
        problem((DESCRIBE,), error.message, error.hint)
        return own
    for below, message, hint in _faults(own):
        problem((DESCRIBE, *below), message, hint)
    return own


def _faults(own: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, str]]:
    url, command, sampling = own.get("url", ""), own.get("command"), own.get("sampling")
    if own and not url and not command and not sampling:
        yield (), "asks nobody", 'add "url" and "model", "command", or "sampling": true'
    if sampling and (url or command):
        yield ("sampling",), "stands beside a model", "remove one of them"
    if url and command:
        yield ("command",), "stands beside a url", "remove one of them"
    if command is not None and not all(command):
        yield ("command",), "has an empty word", 'for example ["my-model", "--json"]'
    if url:
        parts = urlsplit(url)
        if not is_address(url, "http") or parts.query or parts.fragment or "@" in parts.netloc:
            yield ("url",), "is not an address", 'for example "https://api.openai.com/v1"'
        elif parts.scheme != "https" and not is_loopback(parts.hostname or "") and not own.get("insecure_http"):
            yield ("url",), "is not encrypted", 'begin it with https://, or set "insecure_http": true'
        if not own.get("model"):
            yield ("model",), "is missing", "name the model that the service is to use"
    if [*launch_faults({"headers": {"authorization": own.get("key", "")}})]:
        yield ("key",), "cannot be sent in a header", "write it on one line, in ASCII"

"""What the operating system, or HTTP, would refuse of an entry at every start (execve(2), RFC 9110). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from supervisor.config.syntax.expand import is_env_name
from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.units import Kind
from supervisor.config.syntax.values import Remark

MAX_STRING_BYTES = 131_071
"""Linux's limit of one argument or one `NAME=value` (MAX_ARG_STRLEN, less the terminating zero)."""

MAX_LAUNCH_BYTES = 1024 * 1024
"""Arguments and `env` of one server together; Linux takes 2 MiB with the usual stack limit."""

MAX_ADDRESS_CHARS = 64 * 1024
"""The longest address that our HTTP client takes."""

MAX_HOST_CHARS = 253
_BRACKETED = re.compile(r"\[[^\[\]]+\](:\d*)?")
"""An address of IPv6 where a host stands (RFC 3986 3.2.2); urlsplit takes the brackets in any order."""
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")
"""A part of a name that can be looked up (RFC 1035 2.3.4); names of services have underscores."""
_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token (RFC 9110 5.6.2)."""
_FIELD_VALUE = re.compile(r"(?:[!-~](?:[ -~\t]*[!-~])?)?")
"""What our HTTP client sends as it is (RFC 9110 5.5)."""

SCHEMES: Mapping[Kind, tuple[str, ...]] = {
    "http": ("http", "https"),
    "sse": ("http", "https"),
    "websocket": ("ws", "wss"),
}

_NAMED = {"\0": "a NUL character", "\n": "a line break", "\r": "a line break"}


def launch_faults(own: Mapping[str, Any]) -> Iterator[Remark]:
    """Yield what of an entry, given by our keys, cannot be passed on."""
    env: dict[str, str] = own.get("env", {})
    headers: dict[str, str] = own.get("headers", {})
    arguments: list[tuple[KeyPath, str]] = [(("command",), own.get("command", ""))]
    arguments += ((("args", at), text) for at, text in enumerate(own.get("args", ())))
    if own.get("command") is not None and not own.get("url") and not own["command"].strip():
        yield ("command",), "is blank", "write the program to start"
    for below, text in arguments:
        yield from _text(below, text, forbidden="\0\n")
    for name, text in env.items():
        if not is_env_name(name):
            yield ("env", name), "an environment variable cannot have this name", 'no "=", no blanks'
        yield from _text(("env", name), text, forbidden="\0")
    for name, text in headers.items():
        if not _FIELD_NAME.fullmatch(name):
            yield ("headers", name), "not a name of an HTTP header", "letters, digits and dashes"
        yield from _text(("headers", name), text, forbidden="\0\r\n")
        if not _FIELD_VALUE.fullmatch(text) and not set("\0\r\n") & set(text):
            hint = "ASCII without blanks around it; encode what is more, as its server wants it"
            yield ("headers", name), "is not the value of an HTTP header", hint
    yield from _text(("cwd",), own.get("cwd") or "", forbidden="\0")
    size = sum(len(text) + 1 for _, text in arguments)
    size += sum(len(text) + len(name) + 2 for name, text in env.items())
    if size > MAX_LAUNCH_BYTES:
        yield (), f"arguments and environment are over {MAX_LAUNCH_BYTES} bytes", "pass a file instead"


def _text(below: KeyPath, text: str, forbidden: str) -> Iterator[Remark]:
    for character in forbidden:
        if character in text:
            yield below, f"holds {_NAMED[character]}", "remove it; put longer texts and scripts into a file"
            return
    if len(text.encode(errors="surrogatepass")) > MAX_STRING_BYTES:
        yield below, f"is longer than {MAX_STRING_BYTES} bytes", "pass a file instead"


def is_address(url: str, kind: Kind) -> bool:
    """Say whether a remote server of that kind can be at an address, and a request be written for it."""
    try:
        parts = urlsplit(url)
        # urlsplit drops line breaks in silence; what would be sent has them.
        plain = len(url) <= MAX_ADDRESS_CHARS and min(url, default="") > " " and "\x7f" not in url
        place = parts.netloc.rpartition("@")[2]
        bracketed = _BRACKETED.fullmatch(place) is not None or not ("[" in place or "]" in place)
        named = bracketed and parts.port != 0 and _is_host(parts.hostname or "")
        return plain and parts.scheme in SCHEMES[kind] and named
    except ValueError:
        return False


def _is_host(host: str) -> bool:
    """Say whether a host can be looked up. Raises `ValueError` for what is neither an address nor a name."""
    if ":" in host:
        return ip_address(host.partition("%")[0]).version == 6
    if not host.isascii() or "xn--" in host:
        import idna  # it takes a while, and most names do without it

        host = idna.encode(idna.decode(host.lower())).decode()
    labels = host.removesuffix(".").split(".")
    if len(labels) == 4 and all(label.isdecimal() for label in labels):
        return ip_address(host).version == 4
    return len(host) <= MAX_HOST_CHARS and all(_LABEL.fullmatch(label) for label in labels)

"""Directories that servers are told of as roots (MCP 2025-11-25, client/roots). Pure."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from actors.errors import ConfigError

MAX_ROOTS: Final = 64
SCHEME: Final = "file://"


def root_uri(text: str, directory: PurePath) -> str:
    """Return the URI of a root; a relative path starts at `directory`. Raises `ConfigError` for another kind of URI."""
    if text.startswith(SCHEME):
        return text
    if "://" in text:
        raise ConfigError("a root is a directory, or a URI that begins with file://")
    path = directory / text
    if not path.is_absolute():
        raise ConfigError("a relative path needs a configuration file to start at: write an absolute path")
    return path.as_uri()


def roots_result(uris: tuple[str, ...]) -> dict[str, Any]:
    return {"roots": [{"uri": uri, "name": _name(uri)} for uri in uris]}


def _name(uri: str) -> str:
    path = unquote(urlsplit(uri).path).rstrip("/")
    return path.rpartition("/")[2] or "/"

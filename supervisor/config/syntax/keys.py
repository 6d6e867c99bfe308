"""The words of a configuration: server names, keys other programs write, and suggestions for misspelt ones.

Rules of this file:
- A server's name is the first half of `server:tool` and of `server|uri`, so it holds neither `:` nor `|`, and it
  appears in URLs, log lines and file names, so it holds no `/`, no control character and nothing outside ASCII.
- `FOREIGN` lists every key that other MCP clients write beside `command` and what becomes of it here. A key that is
  neither there nor a field of `ServerConfig` is an error: a misspelt key must not be ignored in silence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

import msgspec
from rapidfuzz import fuzz, process

MILLISECONDS_FROM = 10_000
"""A `timeout` of at least this is milliseconds: Cline's largest in seconds is 3600, Gemini CLI writes 600000."""

MAX_NAME_CHARS = 64

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_. -]*[A-Za-z0-9_.-])?")
_SUGGEST_ABOVE = 70.0
_MOST_NEAREST = 5

_SPELLINGS = {"serverUrl": "url", "httpUrl": "url", "timeout": "call_timeout_s", "enabled": "disabled"}
Treatment = Literal["used", "renamed", "ignored", "noted"]


class ForeignKey(msgspec.Struct, frozen=True):
    """A key that is not ours. `noted`: ignored, but the operator is told, since something they want does not happen."""

    name: str
    written_by: str
    treatment: Treatment
    effect: str


FOREIGN: dict[str, ForeignKey] = {
    key.name: key
    for key in (
        ForeignKey("type", "VS Code, Cursor, Cline", "used", "The transport; without it `command` or `url` decides."),
        ForeignKey("transport", "some clients", "renamed", "Read as `type`."),
        ForeignKey("transportType", "older Cline", "renamed", "Read as `type`."),
        ForeignKey("serverUrl", "Windsurf", "renamed", "Read as `url`."),
        ForeignKey("httpUrl", "Gemini CLI", "renamed", "Read as `url`."),
        ForeignKey("envFile", "VS Code, Cursor", "used", "`NAME=value` lines, read at load; `env` goes over them."),
        ForeignKey("enabled", "several clients", "used", "The opposite of `disabled`."),
        ForeignKey(
            "timeout",
            "Cline, Roo Code, Gemini CLI",
            "used",
            "Becomes `call_timeout_s`: seconds, and from 10000 on milliseconds, as Gemini CLI writes them.",
        ),
        ForeignKey("disabledTools", "Windsurf, Roo Code, Kiro", "used", "Added to `deny` of `tools`."),
        ForeignKey("excludeTools", "Gemini CLI", "used", "Added to `deny` of `tools`."),
        ForeignKey("disabled_tools", "Codex, Crush", "used", "Added to `deny` of `tools`."),
        ForeignKey("includeTools", "Gemini CLI, Amp", "used", "Becomes `allow` of `tools`, unless that is there."),
        ForeignKey("enabledTools", "Factory", "used", "Becomes `allow` of `tools`, unless that is there."),
        ForeignKey("enabled_tools", "Codex, Crush", "used", "Becomes `allow` of `tools`, unless that is there."),
        ForeignKey("sandboxEnabled", "VS Code", "noted", "Not applied: a sandbox of ours is `sandbox`."),
        ForeignKey("auth", "Cursor", "noted", "Not applied."),
        ForeignKey("headersHelper", "Claude Code", "noted", "Not applied."),
        ForeignKey("alwaysAllow", "Roo Code, older Cline", "used", "Added to `confirm_except`."),
        ForeignKey("autoApprove", "Cline, Kiro", "used", "Added to `confirm_except`."),
        ForeignKey(
            "trust", "Gemini CLI", "ignored", "As `true` or `false`: the client decides what it asks. Ours is a word."
        ),
        ForeignKey("networkTimeout", "some clients", "ignored", "Set `call_timeout_s` instead."),
        ForeignKey("watchPaths", "Roo Code", "ignored", "Nothing restarts on a changed file."),
        ForeignKey("dev", "VS Code", "ignored", "Development mode belongs to the editor."),
        ForeignKey("gallery", "VS Code", "ignored", "Where the entry was installed from."),
        ForeignKey("version", "VS Code", "ignored", "The version that was installed."),
        ForeignKey("name", "several clients", "ignored", "The key of the entry is its name."),
        ForeignKey("title", "several clients", "ignored", "A label for people."),
        ForeignKey("icon", "several clients", "ignored", "A picture for people."),
    )
}

TOP_LEVEL: dict[str, str] = {
    "mcpServers": "Servers by name, as most clients write them.",
    "servers": "Servers by name, as VS Code writes them.",
    "supervisor": "The settings of the daemon.",
    "$schema": "For editors; ignored.",
    "inputs": "VS Code's prompts; ignored with a note, as the daemon has nobody to ask.",
    "sandbox": "VS Code's sandbox; ignored with a note.",
    "globalShortcut": "Of Claude Desktop; ignored.",
    "preferences": "Of Claude Desktop; ignored.",
}
"""Every key of the outermost object and what becomes of it."""

CLIENT_FILES: Mapping[str, str] = {
    ".claude.json": "Claude Code",
    "claude_desktop_config.json": "Claude Desktop",
    "settings.json": "Gemini CLI, Qwen Code",
}
"""Files in which MCP clients keep servers beside settings of their own, by name: of those the servers are taken."""


def translate(
    members: Mapping[str, Any], ours: Collection[str], spellings: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the members under our keys, and for those spelt otherwise how the file spells them.

    Values are unchecked, as in the file. Where the file has our key and another program's, ours wins.
    """
    theirs = {key: name for name, key in spellings.items() if members.get(name) is not None and key not in members}
    own = {key: members[key] for key in ours if key in members}
    return own | {key: members[name] for key, name in theirs.items()}, theirs


def translate_entry(members: Mapping[str, Any], ours: Collection[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what `translate` does for the entry of a server, with the values that are meant."""
    own, spelled = translate(members, ours, _SPELLINGS)
    if "disabled" in spelled and isinstance(own["disabled"], bool):
        own["disabled"] = not own["disabled"]
    timeout = own.get("call_timeout_s")
    if "call_timeout_s" in spelled and isinstance(timeout, int | float) and timeout >= MILLISECONDS_FROM:
        own["call_timeout_s"] = timeout / 1000
    if isinstance(own.get("env"), dict):
        # VS Code's schema allows numbers here; every program gets text.
        own["env"] = {name: str(value) if type(value) is int else value for name, value in own["env"].items()}
    if isinstance(own.get("trust"), bool):
        del own["trust"]
    if isinstance(own.get("tools"), list):
        own["tools"] = {"allow": own["tools"]}
    if isinstance(own.get("sandbox"), str):
        own["sandbox"] = {"kind": own["sandbox"]}
    return own, spelled


def is_comment(key: str) -> bool:
    return key.startswith(("_", "//", "#"))


def nearest(word: str, known: Iterable[str]) -> str | None:
    options = {each: each.lower().replace("_", "") for each in known}
    closest = process.extractOne(
        word[:80].lower().replace("_", "").replace("-", ""), options, scorer=fuzz.ratio, score_cutoff=_SUGGEST_ABOVE
    )
    return str(closest[2]) if closest else None


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the names of servers that may be meant by one that is none, the most likely first."""
    folded = {each.casefold(): each for each in sorted(known)}
    return [folded[each] for each in difflib.get_close_matches(name[:100].casefold(), folded, _MOST_NEAREST)]


def name_fault(name: str) -> str | None:
    if not name:
        return "the name is empty"
    if len(name) > MAX_NAME_CHARS:
        return f"the name is longer than {MAX_NAME_CHARS} characters"
    if _NAME.fullmatch(name):
        return None
    if ":" in name or "|" in name:
        return 'the name holds ":" or "|", which end it in tool and resource paths'
    return 'a name is made of ASCII letters, digits, "_", "-", "." and inner spaces, and begins with no "-" or "."'


def suggest_name(name: str) -> str:
    """Return a valid name that resembles `name`: `github.com/acme/maps-mcp` gives `maps-mcp`."""
    last = next((part for part in reversed(re.split(r"[/\\]", name)) if re.search("[A-Za-z0-9]", part)), "")
    kept = re.sub(r"[^A-Za-z0-9_.]+", "-", last).strip("-.")
    return kept[:MAX_NAME_CHARS].rstrip("-.") or "server"

"""The words of a configuration: server names, keys other programs write, and suggestions for misspelt ones.

Rules of this file:
- A server's name is the first half of `server:tool` and of `server|uri`, so it holds neither `:` nor `|`, and it
  appears in URLs, log lines and file names, so it holds no `/`, no control character and nothing outside ASCII.
- Programs that install servers for teams name the entries `{slug}-{team}-{generated id}`, or
  `{slug}-{team}-{user}-{generated id}`; tools are called by the slug. A team of the second form is recognised by its
  name, `team` and a number: otherwise it could be the last word of the slug.
- What other MCP clients write beside `command`, and what becomes of it here, is in the rows of
  `supervisor/config/client_table.py`. A key that is neither there nor a field of `ServerConfig` is an error: a misspelt
  key must not be ignored in silence.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec
from rapidfuzz import fuzz, process

from supervisor.config.client_table import keys_by_name
from supervisor.config.clients import ClientKey, ClientProgram, Meaning

_MILLISECONDS_FROM = 10_000
"""A `timeout` of at least this is milliseconds where nobody knows whose file it is in: Cline's largest in seconds is
3600, Gemini CLI writes 600000."""

MAX_NAME_CHARS = 64

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_. -]*[A-Za-z0-9_.-])?")
_SUGGEST_ABOVE = 70.0
_MOST_NEAREST = 5

Treatment = Literal["used", "renamed", "ignored", "noted"]


class ForeignKey(msgspec.Struct, frozen=True):
    """A key that is not ours. `noted`: ignored, but the operator is told, since something they want does not happen."""

    name: str
    written_by: str
    treatment: Treatment
    effect: str


_TREATMENTS: Mapping[Meaning, Treatment] = {
    "renamed": "renamed",
    "unused": "noted",
    "label": "ignored",
}
_NOT_KEYS = {
    "type": "The transport; without it `command` or `url` decides.",
    "envFile": "`NAME=value` lines, read at load; `env` goes over them.",
}
"""What clients write under names that are ours, too, but no fields of an entry."""


def _foreign() -> dict[str, ForeignKey]:
    foreign = {}
    for name, keys in keys_by_name().items():
        key = next(iter(keys.values()))
        is_ours = any(each.meaning == "ours" for each in keys.values())
        if not is_ours or name in _NOT_KEYS:
            treatment = _TREATMENTS.get(key.meaning, "used")
            foreign[name] = ForeignKey(name, ", ".join(keys), treatment, _effect(name, keys))
    return foreign


def _effect(name: str, keys: Mapping[str, ClientKey]) -> str:
    key = next(iter(keys.values()))
    match key.meaning:
        case "renamed":
            group, dot, _ = name.rpartition(".")
            return f"Read as `{group}{dot}{key.to}`."
        case "time" if len({each.unit_s for each in keys.values()}) > 1:
            who = {unit_s: [title for title, each in keys.items() if each.unit_s == unit_s] for unit_s in (0.001, 1.0)}
            return (
                f"Becomes `{key.to}`. Milliseconds in a file of {', '.join(who[0.001])}; seconds in one of "
                f"{', '.join(who[1.0])}. In any other file seconds, and from {_MILLISECONDS_FROM} on milliseconds."
            )
        case "time":
            return f"Becomes `{key.to}`; in {'seconds' if key.unit_s == 1.0 else 'milliseconds'}."
        case "enabled":
            return "The opposite of `disabled`."
        case "allow":
            return "Becomes `allow` of `tools`, unless that is there."
        case "deny":
            return "Added to `deny` of `tools`."
        case "approve":
            return "Added to `confirm_except`."
        case "variable":
            return f"Names variables of the environment; their values go into `{key.to}`."
    return key.why or _NOT_KEYS[name]


FOREIGN: Mapping[str, ForeignKey] = _foreign()
"""Every key that other clients write and that is not ours, or is something else here."""


def names_with(meaning: Meaning, to: str = "") -> tuple[str, ...]:
    """Return the keys of other programs that mean this; `to`: only those that mean this key of ours."""
    wanted = ((name, key) for name, keys in keys_by_name().items() for key in keys.values() if key.meaning == meaning)
    return tuple(dict.fromkeys(name for name, key in wanted if to in ("", key.to)))


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


def translate(
    members: Mapping[str, Any], ours: Collection[str], spellings: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the members under our keys, and for those spelt otherwise how the file spells them.

    Values are unchecked, as in the file. Where the file has our key and another program's, ours wins.
    """
    theirs = {key: name for name, key in spellings.items() if members.get(name) is not None and key not in members}
    own = {key: members[key] for key in ours if key in members}
    return own | {key: members[name] for key, name in theirs.items()}, theirs


def translate_entry(
    members: Mapping[str, Any], ours: Collection[str], client: ClientProgram | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what `translate` does for the entry of a server, with the values that are meant.

    `client`: whose file the entry stands in, if that is known. What is null is not given: several clients write that.
    """
    own = {key: members[key] for key in ours if members.get(key) is not None}
    spelled: dict[str, str] = {}
    for name, key, value in _foreign_members(members, client):
        if key.to in ours and key.to not in own and key.meaning in ("renamed", "time"):
            own[key.to] = in_seconds(value, key, client) if key.meaning == "time" else value
            spelled[key.to] = name
        elif key.meaning == "enabled" and "disabled" not in own:
            own["disabled"] = not value if isinstance(value, bool) else value
            spelled["disabled"] = name
    for name, key, value in _foreign_members(members, client):
        if key.meaning == "variable" and isinstance(own.get(key.to, {}), dict):
            own[key.to] = {**of_variables(name, value), **own.get(key.to, {})}
            spelled.setdefault(key.to, name)
    if isinstance(own.get("env"), dict):
        # VS Code's schema allows numbers here, and null for what is not to be passed on; every program gets text.
        own["env"] = {
            name: str(value) if type(value) in (int, float) else value
            for name, value in own["env"].items()
            if value is not None
        }
    if isinstance(own.get("trust"), bool):
        del own["trust"]
    if isinstance(own.get("tools"), list):
        own["tools"] = {"allow": own["tools"]}
    if isinstance(own.get("sandbox"), str):
        own["sandbox"] = {"kind": own["sandbox"]}
    if isinstance(own.get("oauth"), bool):
        own["oauth"] = {"enabled": own["oauth"]}
    return own, spelled


def _foreign_members(members: Mapping[str, Any], client: ClientProgram | None) -> Iterator[tuple[str, ClientKey, Any]]:
    """Yield the members that are keys of clients, with what they mean; of an object of times its members."""
    for name, value in members.items():
        key = meaning_of(name, client)
        if key is None or value is None:
            continue
        if key.meaning == "time" and isinstance(value, dict):
            for each, time in value.items():
                if (part := meaning_of(f"{name}.{each}", client)) is not None:
                    yield name, part, time
        else:
            yield name, key, value


def meaning_of(name: str, client: ClientProgram | None = None) -> ClientKey | None:
    """Return what a key is, to its client if that is known, else to whoever writes it and means something by it."""
    if client is not None and (key := client.find(name)) is not None:
        return key
    known = list(_BY_NAME.get(name, {}).values())
    return next((key for key in known if key.meaning not in ("unused", "label")), known[0] if known else None)


_BY_NAME: Mapping[str, Mapping[str, ClientKey]] = keys_by_name()


def in_seconds(value: Any, key: ClientKey, client: ClientProgram | None) -> Any:
    """Return a time in seconds; what is no number stays as it is."""
    if type(value) not in (int, float):
        return value
    units = {each.unit_s for each in _BY_NAME[key.name].values()}
    if len(units) > 1 and (client is None or client.find(key.name) is None):
        return value / 1000 if value >= _MILLISECONDS_FROM else value
    try:
        seconds = round(value * key.unit_s, 3)
    except OverflowError:  # a whole number that no float holds
        return value
    return int(seconds) if seconds == int(seconds) else seconds


def of_variables(name: str, value: Any) -> dict[str, str]:
    """Return what Codex fills in from the environment as references to it."""
    match name, value:
        case "bearer_token_env_var", str(variable):
            return {"Authorization": f"Bearer ${{{variable}}}"}
        case "env_http_headers", dict(variables):
            return {header: f"${{{variable}}}" for header, variable in variables.items()}
        case "env_vars", list(variables):
            named = (each.get("name") if isinstance(each, dict) else each for each in variables)
            return {each: f"${{{each}}}" for each in named if isinstance(each, str)}
    return {}


def is_comment(key: str) -> bool:
    return key.startswith(("_", "//", "#"))


def nearest(word: str, known: Iterable[str]) -> str | None:
    options = {each: each.lower().replace("_", "") for each in known}
    closest = process.extractOne(
        word[:80].lower().replace("_", "").replace("-", ""), options, scorer=fuzz.ratio, score_cutoff=_SUGGEST_ABOVE
    )
    return str(closest[2]) if closest else None


def hint_of(word: str, known: Collection[str], otherwise: str | None = None) -> str:
    """Return which of the known words is probably meant, else what helps otherwise: all of them, if nothing is given,
    as who reads it has no other page at hand.
    """
    if likely := nearest(word, known):
        return f'did you mean "{likely}"?'
    return f"known are {', '.join(known)}" if otherwise is None else otherwise


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


_INSTALLATION = re.compile(r"(?P<slug>[a-z0-9._-]*?[a-z0-9])(?:-team[0-9]+)?-[a-z0-9]+-(?P<id>[a-z0-9]{6,32})")
_GENERATED = re.compile(r"(?=.*[a-z])(?:[a-z]*[0-9]){3}.*|(?=.{8})(?:[a-z]*[0-9]){2}[a-z].*")
"""Letters and digits, three of these; or two among the letters of a longer word."""
_TERM = re.compile(
    r"[a-z]+(?:19|20)[0-9]{2}"
    r"|(?:aes|amd|arm|base|es|float|gpt|int|iso|md|oauth|py|python|rsa|sha|uint|utf|web|win)[0-9].*"
)
"""Words with a year or a number in them that people give to things."""


def installation_slug(name: str) -> str | None:
    """Return the slug of an installation name, `filesystem` of `filesystem-john-abc123`; None for any other name."""
    match = _INSTALLATION.fullmatch(name)
    if match is None or not _GENERATED.fullmatch(match["id"]) or _TERM.fullmatch(match["id"]):
        return None
    return match["slug"]


def derived_slugs(names: Collection[str], taken: Iterable[str]) -> dict[str, str]:
    """Return the slug of each installation name among `names` that no other entry has or would get.

    `taken` are the names and slugs of all entries; capital letters do not tell names apart.
    """
    slugs = {name: slug for name in names if (slug := installation_slug(name)) is not None}
    wanted = Counter(slugs.values())
    others = {name.casefold() for name in taken}
    return {name: slug for name, slug in slugs.items() if wanted[slug] == 1 and slug not in others}

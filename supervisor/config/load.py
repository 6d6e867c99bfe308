"""Load the configuration file.

Rules of this file:
- A problem of the file as a whole (unreadable, not JSON, wrong top-level key, wrong `supervisor` setting) is raised:
  nothing of such a file is used. A problem of one server's entry is returned beside the servers that are fine.
- Every problem has file, line, key and what to do; none has a value of the file or of the environment.
- Two entries whose names, or slugs, are equal but for case are both refused: which one a call means would be a guess.
- `parse` is pure but for `read_file`, which reads `envFile`s, and `options_of`, which imports plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path, PurePath
from typing import Any

import msgspec
from msgspec.structs import replace

from actors.catalogue.tool_rules import NO_RULES, ToolRules
from actors.command_line import command
from actors.errors import ConfigError
from actors.kit.paths import absolute
from supervisor.config.clients.client import ClientProgram
from supervisor.config.clients.table import CLIENTS, client_of_file
from supervisor.config.entries.entry import ServerConfig
from supervisor.config.entries.presence import missing_of, trouble_with
from supervisor.config.entries.servers import read_server
from supervisor.config.entries.slugs import derived_slugs
from supervisor.config.given import given_remarks, note_lines
from supervisor.config.identity import identity_remarks
from supervisor.config.profiles import profile_remarks
from supervisor.config.sections.options import OptionsOf
from supervisor.config.sections.published import lay_below
from supervisor.config.settings import read_settings
from supervisor.config.structs import Settings
from supervisor.config.surroundings import Surroundings
from supervisor.config.syntax.address import is_loopback
from supervisor.config.syntax.environment import defaults, inherit
from supervisor.config.syntax.file import Stamp, digest_of, read_text, stamp
from supervisor.config.syntax.jsonc import ConfigText, KeyPath, read_document
from supervisor.config.syntax.keys import TOP_LEVEL, is_comment, nearest
from supervisor.config.syntax.origins import Origin, ValueLayer, overlay
from supervisor.config.syntax.values import Findings, Remark, keys_of, raise_together
from supervisor.plugins.loading import options_of

Place = tuple[str, str]
"""The key path of an entry: section and name."""

AGE = "catalogue_max_age_s"
"""A key of servers that is a setting of the daemon, too, for those that have none."""
_SERVER_KEYS = ("mcpServers", "servers")
FOUND_HERE = ".mcp.json"
"""A file of clients that `run` finds, too: it may well be written for us, so a key that is unknown is a slip."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """A usable configuration. `problems` has every fault of the entries that are left out, `.server` naming the entry.

    `notes` are remarks that stop nothing, in the same form. `path` is the file as it was given; `stamps` say of it and
    of the `envFile`s that were wanted with it, by their absolute paths, which state was read; `digest` is the beginning
    of the SHA-256 of the file, `published` that of what was published for its fleet, if that was read, too. `origins`
    are those of `Findings`, and `environ` is where variables were looked up.
    """

    settings: Settings
    servers: tuple[ServerConfig, ...]
    problems: tuple[ConfigError, ...] = ()
    notes: tuple[ConfigError, ...] = ()
    path: Path
    stamps: Mapping[Path, Stamp] = {}
    digest: str = ""
    published: str = ""
    origins: Mapping[tuple[str, KeyPath], Origin] = {}
    environ: Mapping[str, str] = {}

    @property
    def server_names(self) -> dict[str, str]:
        """Every name that a configured server can be called by, and the name its tools are shown under.

        That name itself, and the key of the entry where it is no other server's name; those of wrong entries, too.
        """
        broken = {problem.server: problem.server for problem in self.problems if problem.server}
        names = {server.name: server.path_name for server in self.servers}
        return {**broken, **names, **{shown: shown for shown in names.values()}}


def load(
    path: Path,
    environ: Mapping[str, str],
    listen: str | None = None,
    change: Callable[[str], str] = lambda text: text,
    published: Path | None = None,
) -> Configuration:
    """Read and parse the file; `listen` goes over its setting, `change` gives what is parsed in place of its text.

    `published` is the file of what was published for its fleet, which may be missing. Blocks. Raises `ConfigError` as
    `parse` does.
    """
    # Many servers have the same program, and our environment is slow to read.
    missing = partial(missing_of, environ=dict(environ), ask=cache(trouble_with))
    stamps: dict[Path, Stamp] = {}

    def read(file: PurePath) -> str:
        place = Path(absolute(str(file)))
        stamps[place] = stamp(place)  # before it is read: what changes meanwhile is noticed later
        return read_text(file)

    text, below = read(path), ""
    client = client_of_file(Path(absolute(str(path))))
    if client is not None and client.format == "toml":
        raise _of_a_client(client, path)
    document = read_document(change(text), str(path))
    if published is not None and stamp(published) is not None:
        below = read_text(published)
        document = lay_below(document, read_document(below, str(published)), str(published))
    parsed = parse(document, path, environ, read_file=read, missing=missing, listen=listen, client=client)
    digests = {"digest": digest_of(text), "published": digest_of(below) if below else ""}
    return replace(parsed, stamps=stamps, environ=environ, **digests)


def parse(
    text: str | ConfigText,
    path: Path,
    environ: Mapping[str, str],
    *,
    read_file: Callable[[PurePath], str] = read_text,
    missing: Callable[[Mapping[str, Any]], Iterable[Remark]] = lambda own: (),
    listen: str | None = None,
    options_of: OptionsOf = options_of,
    client: ClientProgram | None = None,
) -> Configuration:
    """Return the configuration of a text, or of a document that was read. `path` is named in problems, and relative
    paths start at its directory.

    `missing` looks for the program and the directory of an entry; see `Surroundings`. `options_of` imports a plugin.
    `client`: whose file it is, if it is one's.
    Raises `ConfigError` for problems of the file as a whole; `read_file` raises it for an unreadable `envFile`.
    """
    document = read_document(text, str(path)) if isinstance(text, str) else text
    findings = Findings(document, str(path))
    client = client or client_of_file(path)
    top = _top_level(document, path, findings, client)
    entries = _entries(top, findings)
    raise_together(_duplicates(document, findings))
    own = top.get("supervisor")
    usual = defaults(environ, findings, "" if listen is not None or "listen" in (own or {}) else Settings().listen)
    settings = read_settings(own, usual.daemon, path.parent, environ, findings, options_of)
    if listen is not None:
        settings = replace(settings, listen=listen)
        findings.origins["", ("listen",)] = Origin(source="derived", place="--listen")
    if not is_loopback(settings.address[0]):
        findings.note(("supervisor", "listen"), "the daemon can be reached from other machines")
    note_lines(settings.identity, findings)
    age = {AGE: origin} if (origin := findings.origins.get(("", (AGE,)))) is not None else {}
    for_all = ValueLayer(settings.env, {name: findings.origins["", ("env", name)] for name in settings.env})
    around = Surroundings(
        findings=findings,
        environ=environ,
        directory=path.parent,
        read_file=read_file,
        shared=overlay(inherit(settings.pass_env, environ, findings), for_all),
        defaults=overlay(usual.servers, ValueLayer({AGE: settings.catalogue_max_age_s}, age)),
        missing=missing,
        listen=settings.listen,
        client=client,
    )
    read = {}
    for section, name in entries:
        if server := read_server(name, top[section][name], (section, name), around):
            read[section, name] = server
    servers = _distinct(_with_slugs(read, top, findings), findings)
    if not servers and not findings.problems:
        findings.note((), "there are no servers", 'add them to "mcpServers"')
    there: dict[str, ToolRules] = {each.server: NO_RULES for each in findings.problems if each.server}
    there |= {server.path_name: server.tool_rules for server in servers}
    for below, message, hint in (
        *profile_remarks(settings.profiles, there),
        *identity_remarks(settings.identity, there),
        *given_remarks(settings.identity, {server.path_name: server for server in servers if not server.disabled}),
    ):
        findings.note(("supervisor", *below), message, hint)
    return Configuration(
        settings=settings,
        servers=servers,
        problems=tuple(sorted(findings.problems, key=lambda problem: problem.line or 0)),
        notes=tuple(findings.notes),
        path=path,
        origins=findings.origins,
    )


def _top_level(document: ConfigText, path: Path, findings: Findings, client: ClientProgram | None) -> dict[str, Any]:
    """Raises `ConfigError` for keys that the outermost object cannot have."""
    top = document.value
    if not isinstance(top, dict):
        raise findings.error((), "the outermost value must be an object", 'write {"mcpServers": {...}}')
    fatal: list[ConfigError] = []
    unknown: list[str] = []
    for key, value in top.items():
        if key not in TOP_LEVEL and not is_comment(key):
            unknown.append(key)
        elif key in (*_SERVER_KEYS, "supervisor") and not isinstance(value, dict):
            fatal.append(findings.error((key,), "must be an object", _object_hint(key, value)))
        elif key in ("inputs", "sandbox") and value:
            findings.note((key,), TOP_LEVEL[key])
    if client is not None and client.servers[0] in unknown:
        raise _of_a_client(client, path)
    if client is None or "mcpServers" not in top or path.name == FOUND_HERE:
        fatal += [findings.error((key,), "unknown key", _top_level_hint(key, top[key])) for key in unknown]
    else:
        here = f'this is a file of {client.title}: only "mcpServers" is read of it'
        findings.note((), here, "; ".join([*_other_places(top), f"`{command('import', client.name)}` takes them over"]))
    raise_together(fatal)
    return top


def _of_a_client(client: ClientProgram, path: Path) -> ConfigError:
    """Return what to do with a file that has servers as only its client writes them."""
    return ConfigError(
        f"this is a file of {client.title}, which keeps its servers in another form",
        path=str(path),
        hint=f"`{command('import', client.name)}` takes them over",
    )


def _other_places(top: Mapping[str, Any]) -> Iterator[str]:
    """Yield where else Claude Code keeps servers, which are not read."""
    projects = top.get("projects")
    entries = projects.values() if isinstance(projects, dict) else ()
    if any(isinstance(entry, dict) and entry.get("mcpServers") for entry in entries):
        yield 'not the servers of single projects, in "projects": copy them into "mcpServers" of a file of your own'


def _object_hint(key: str, value: object) -> str:
    if key in _SERVER_KEYS and isinstance(value, list) and value:
        return 'the name of a server is the key of its entry: write {"NAME": {"command": ...}, ...} instead of a list'
    return "write {} if there is nothing in it"


def _top_level_hint(key: str, value: object) -> str:
    if isinstance(value, dict) and value.keys() & set(_SERVER_KEYS):
        return "move what is in it to the top level, as in VS Code's mcp.json"
    if isinstance(value, dict) and (theirs := [client for client in CLIENTS if client.servers == (key,)]):
        names = " or ".join(f"`{command('import', client.name)}`" for client in theirs)
        return f"{' and '.join(client.title for client in theirs)} keep servers there: {names} takes them over"
    likely = nearest(key, TOP_LEVEL)
    if likely:
        return f'did you mean "{likely}"?'
    if isinstance(value, dict) and value.keys() & {"command", "url"}:
        return 'it looks like a server: put it into "mcpServers"'
    if key in keys_of(Settings):
        return 'put it into the "supervisor" object'
    return 'remove it, or copy "mcpServers" into a file of its own; our settings belong into the "supervisor" object'


def _entries(top: Mapping[str, Any], findings: Findings) -> list[Place]:
    """Return the places of the entries whose names are unique, in the file's order; record the others."""
    places = ((key, name) for key in _SERVER_KEYS for name in top.get(key) or {})
    entries = {
        place: place[1] for place in places if not is_comment(place[1]) or isinstance(top[place[0]][place[1]], dict)
    }
    return _unique(entries, "name", findings)


def _unique(names: Mapping[Place, str], what: str, findings: Findings) -> list[Place]:
    """Return who alone has its name or slug; record the others. Capital letters do not tell two apart."""
    groups: dict[str, list[Place]] = {}
    for where, name in names.items():
        groups.setdefault(name.casefold(), []).append(where)
    for same in groups.values():
        for where in same if len(same) > 1 else ():
            here, other = (findings.error(each, "") for each in (where, next(each for each in same if each != where)))
            place = f"line {other.line}" if here.path == other.path else f"line {other.line} of {other.path}"
            message = f"the {what} is used by another entry, too ({place}); capitals make no difference"
            findings.problem(where, message, "rename one of them", where[1])
    return [same[0] for same in groups.values() if len(same) == 1]


def _duplicates(document: ConfigText, findings: Findings) -> list[ConfigError]:
    """Record keys written twice inside an entry; return those that make the whole file ambiguous."""
    fatal: list[ConfigError] = []
    for path, line in document.duplicates:
        in_entry = len(path) > 1 and path[0] in _SERVER_KEYS
        message = f"the key is written twice (first on line {document.line(path)})"
        error = findings.error(path, message, "remove one of them", str(path[1]) if in_entry else None)
        error.line = line
        if in_entry:
            findings.record(error)
        else:
            fatal.append(error)
    return fatal


def _with_slugs(
    entries: Mapping[Place, ServerConfig], top: Mapping[str, Any], findings: Findings
) -> dict[Place, ServerConfig]:
    """Return the servers, those with an installation name under its slug, which is noted."""
    own = [server.slug for server in entries.values() if server.slug]
    taken = [name for key in _SERVER_KEYS for name in top.get(key) or {}]
    slugs = derived_slugs([server.name for server in entries.values() if not server.slug], [*taken, *own])
    servers = dict(entries)
    for where, server in entries.items():
        if slug := slugs.get(server.name):
            servers[where] = replace(server, slug=slug)
            findings.origins[server.name, ("slug",)] = Origin(source="derived", place="the name")
            findings.note(where, f'served as "{slug}", as its name says', 'set "slug" to call it otherwise', where[1])
    return servers


def _distinct(entries: Mapping[Place, ServerConfig], findings: Findings) -> tuple[ServerConfig, ...]:
    """Return the good servers whose tool paths cannot be confused; record the others, and drop broken entries."""
    broken = {problem.server for problem in findings.problems}
    good = {where: server for where, server in entries.items() if server.name not in broken}
    unique = _unique({where: server.path_name for where, server in good.items()}, "slug", findings)
    return tuple(good[where] for where in unique)

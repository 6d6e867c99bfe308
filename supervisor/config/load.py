"""Load the configuration file; of a node of a fleet, also what was published, below its own file.

Rules of this file:
- A problem of the file as a whole (unreadable, not JSON, wrong top-level key, wrong `supervisor` setting) is raised:
  nothing of such a file is used. A problem of one server's entry is returned beside the servers that are fine.
- Every problem has file, line, key and what to do; none has a value of the file or of the environment.
- Two entries whose names, or slugs, are equal but for case are both refused: which one a call means would be a guess.
- What is missing of a server on this machine is a remark and no problem: it may be there by the time the server is
  started, and the start says more.
- Of what was published counts what the own file does not have: an entry by its name or slug, a setting as a whole, of
  `profiles` each one. What is of one machine is never taken: where it is reached, where its files are, how it is a
  node.
- `parse` is pure but for `read_file`, which reads `envFile`s, `options_of`, which imports plugins, and `missing`, which
  looks for programs and directories.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path, PurePath
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from actors.catalogue.tool_rules import NO_RULES, ToolRules
from actors.command_line import command
from actors.errors import ConfigError, SpawnFailed
from actors.kit.paths import absolute, objection_to_directory
from actors.transport.redaction import without_secrets
from actors.transport.stdio.command import build_environment, is_whole_line, nearest_command, resolve_command
from actors.transport.stdio.remedies import how_to_provide
from actors.transport.stdio.sandbox import bwrap_program
from supervisor.config.address import is_loopback
from supervisor.config.client_table import CLIENTS, client_of_file
from supervisor.config.clients import ClientProgram
from supervisor.config.entry import ServerConfig
from supervisor.config.entry_reader import Surroundings, read_server
from supervisor.config.expansion import Origin, ValueLayer, overlay
from supervisor.config.file import Stamp, digest_of, read_text, stamp
from supervisor.config.given import given_remarks, note_lines
from supervisor.config.identity import identity_remarks, profile_remarks
from supervisor.config.jsonc import ConfigText, KeyPath, read_document
from supervisor.config.keys import TOP_LEVEL, derived_slugs, is_comment, nearest
from supervisor.config.sections import FLEET, OptionsOf
from supervisor.config.settings import Settings
from supervisor.config.settings_reader import defaults, inherit, read_settings
from supervisor.config.values import Findings, Remark, keys_of, raise_together
from supervisor.plugins.loading import options_of

OF_ONE_MACHINE: Final = frozenset(
    {
        *("listen", "public_url", "insecure_http", "trusted_proxies", "tls_certificate", "tls_key"),
        *("allowed_hosts", "allowed_origins", "data_dir", FLEET),
    }
)
"""Settings that are never taken."""
_SECTIONS: Final = (("mcpServers",), ("servers",))
_SUPERVISOR: Final = ("supervisor",)
_BY_MEMBER: Final = frozenset({*_SECTIONS, _SUPERVISOR, (*_SUPERVISOR, "profiles")})
"""Objects of which members are taken one by one; all others are, or are not."""


def lay_below(own: ConfigText, published: ConfigText, path: str) -> ConfigText:
    """Return what a node's own file says, and of what was published the rest. `path` is where that is kept.

    Raises `ConfigError` if that is no object.
    """
    if not isinstance(own.value, dict):  # which is said when it is read
        return own
    if not isinstance(published.value, dict):
        raise ConfigError("the outermost value must be an object", path=path, line=published.line(()))
    taken: list[KeyPath] = []
    value = _merge(own.value, published.value, frozenset(_names(own.value)), taken)
    others = dict.fromkeys(taken, path)
    lines = {at: line for at, line in published.lines.items() if _is_below(at, others)}
    again = [each for each in published.duplicates if each[0] in _BY_MEMBER or _is_below(each[0], others)]
    return ConfigText(
        value=value, lines={**lines, **own.lines}, duplicates=(*own.duplicates, *again), others={**own.others, **others}
    )


def _merge(
    own: Mapping[str, Any], published: Mapping[str, Any], names: Collection[str], taken: list[KeyPath], at: KeyPath = ()
) -> dict[str, Any]:
    """Return an object with the members that are taken, which are added to `taken`."""
    merged = dict(own)
    for key, theirs in published.items():
        where, mine = (*at, key), own.get(key, {})
        if where in _BY_MEMBER and isinstance(mine, dict) and isinstance(theirs, dict):
            merged[key] = _merge(mine, theirs, names, taken, where)
        elif key not in own and not _is_own(at, key, names):
            merged[key] = theirs
            taken.append(where)
    return merged


def _is_own(at: KeyPath, key: str, names: Collection[str]) -> bool:
    return key in OF_ONE_MACHINE if at == _SUPERVISOR else at in _SECTIONS and key.casefold() in names


def _names(own: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names and slugs of all entries of a file, in lower case: capitals do not tell two apart."""
    for (section,) in _SECTIONS:
        entries = own.get(section)
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            yield name.casefold()
            if isinstance(entry, dict) and isinstance(entry.get("slug"), str):
                yield entry["slug"].casefold()


def _is_below(at: KeyPath, others: Collection[KeyPath]) -> bool:
    return any(at[:depth] in others for depth in range(1, len(at) + 1))


_WORDS = (
    'leave its first word, and put each word after it into "args": "command": "npx", "args": ["-y", "some-package"]'
)


Trouble = tuple[str, str]
"""What is wrong, and what to do."""


def _missing_of(
    own: Mapping[str, Any], environ: Mapping[str, str], ask: Callable[[str, str, str], Trouble | None]
) -> Iterator[Remark]:
    """Yield a remark for a directory and for a program that cannot be used now. `own` are expanded keys of an entry.

    No text of the entry is repeated: it may be a secret. `ask` is `_trouble_with`, or remembers what that said.
    """
    cwd = absolute(own.get("cwd") or "")
    if objection := objection_to_directory(cwd):
        yield ("cwd",), f"the directory {objection}", "make it, or correct the path"
        return
    yield from _missing_for_sandbox(own)
    path = build_environment(own.get("env", {}), environ)["PATH"]
    if trouble := ask(own["command"], path, cwd):
        yield ("command",), *trouble


def _trouble_with(command: str, path: str, cwd: str) -> Trouble | None:
    """Return why a program cannot be started, None if it can. A search for a name that is like it takes 10 ms."""
    try:
        resolve_command(command, path=path, cwd=cwd)
    except SpawnFailed as error:
        if is_whole_line(command, path, cwd):
            return "the program cannot be started: this is a whole command line", _WORDS
        near = nearest_command(command, path) if "/" not in command and not error.hint else None
        shown = without_secrets(command)
        what = error.message.replace(f"command {shown!r}", "it").removeprefix(f"{shown}: ")
        return f"the program cannot be started: {what}", how_to_provide(command, error.hint, near)
    return None


def _missing_for_sandbox(own: Mapping[str, Any]) -> Iterator[Remark]:
    sandbox = own.get("sandbox", {})
    if sandbox.get("kind", "none") == "none":
        return
    try:
        bwrap_program()
    except SpawnFailed as error:
        yield ("sandbox",), f"the server cannot be started: {error.message}", error.hint
    for key in ("read", "write"):
        for at, place in enumerate(sandbox.get(key, ())):
            if objection_to_directory(place) == "does not exist":
                yield ("sandbox", key, at), "there is no such file or directory", "make it, or take it out of the list"


Place = tuple[str, str]
"""The key path of an entry: section and name."""

_AGE = "catalogue_max_age_s"
"""A key of servers that is a setting of the daemon, too, for those that have none."""
_SERVER_KEYS = ("mcpServers", "servers")
_FOUND_HERE = ".mcp.json"
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
    missing = partial(_missing_of, environ=dict(environ), ask=cache(_trouble_with))
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
    age = {_AGE: origin} if (origin := findings.origins.get(("", (_AGE,)))) is not None else {}
    for_all = ValueLayer(settings.env, {name: findings.origins["", ("env", name)] for name in settings.env})
    around = Surroundings(
        findings=findings,
        environ=environ,
        directory=PurePath(absolute(str(path.parent))),  # where it is wanted is not where it is read
        read_file=read_file,
        shared=overlay(inherit(settings.pass_env, environ, findings), for_all),
        defaults=overlay(usual.servers, ValueLayer({_AGE: settings.catalogue_max_age_s}, age)),
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
    if client is None or "mcpServers" not in top or path.name == _FOUND_HERE:
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

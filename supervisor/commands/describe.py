"""`describe`: by which sentences people ask for tools, where these come from, and pages of such sentences made."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec
import trio
from msgspec import structs
from rich.console import RenderableType

from actors.catalogue.offer import Tool
from actors.command_line import command
from actors.errors import ConfigError
from actors.protocol.wire.json import UnreadableJson, quoted
from actors.transport.stdio.containment import default_containment
from supervisor import operations
from supervisor.commands.common import (
    ask,
    below,
    console,
    daemon_options,
    plain,
    print_json,
    print_table,
    run,
    say,
    table,
)
from supervisor.commands.completion import complete_server
from supervisor.commands.outcomes import BadConfiguration, CommandFailed
from supervisor.commands.run import config_option, find_config, find_published
from supervisor.config import load
from supervisor.config.sections import DescribeSettings
from supervisor.daemon_client.client import DaemonClient
from supervisor.phrases.asking import Model, NoAnswer, messages_of, sentences_of
from supervisor.phrases.models import model_of
from supervisor.phrases.phrase_book import (
    MAX_FILE_BYTES,
    KnownTool,
    Page,
    faults_of,
    files_of,
    read_page,
    write_page,
)

SOURCES: Final = {"file": "FILE", "book": "BOOK", "model": "MODEL", "sampling": "SAMPLING", "none": "NONE"}
WORDS: Final = {
    "file": "your file",
    "book": "the phrase book",
    "model": "your model",
    "sampling": "the model of a client",
    "": "none",
}
CLOSE_S: Final = 1.0
Row = dict[str, Any]


@click.command()
@click.argument("names", nargs=-1, metavar="[SERVER]", shell_complete=complete_server)
@click.option(
    "--write",
    "place",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Ask the model of the configuration for the tools of SERVER now, and write what it says as a page.",
)
@click.option("--check", "checks", is_flag=True, help="Check pages: the names are files, or folders with some.")
@config_option
@daemon_options
def describe(
    *, names: tuple[str, ...], place: Path | None, checks: bool, config: Path | None, as_json: bool, url: str
) -> None:
    """Show which tools have sentences by which people ask for them, and where these come from.

    Of a tool all are of one source: the file of `phrases_file`, the phrase book, or the model of `describe` or of a
    client. With SERVER it shows the sentences. A page that --write makes can be the file of `phrases_file`.

    \b
    mcpvisor describe
    mcpvisor describe github
    mcpvisor describe github --write github.json
    mcpvisor describe --check github.json

    --write asks by the file that `run` would read, with the variables of this shell, beyond the budget of the daemon.
    """
    if checks:
        if place is not None or not names:
            raise click.UsageError("--check takes the names of files, and no --write")
        _check([Path(name) for name in names])
        return
    if len(names) > 1:
        raise click.UsageError("name one server")
    if place is not None and not names:
        raise click.UsageError("--write is about a server: name one")
    if place is not None:
        _write(names[0], place, config, url)
        return
    page = ask(url, lambda daemon: _page_of(daemon, *names))
    if as_json:
        print_json(page)
        return
    out = console()
    print_table(out, _servers(page["servers"]))
    if names:
        for row in page["tools"]:
            out.print(plain(f"{row['tool']}: {WORDS.get(row['source'], row['source'])}"))
            for sentence in row["sentences"]:
                out.print(below(plain(sentence)))
    elif page["describing"] is not None:
        out.print(plain(_progress(page["describing"])))


async def _page_of(daemon: DaemonClient, server: str = "", *, told: bool = False) -> dict[str, Any]:
    """Return the page, of a server with all its tools."""
    asked: dict[str, Any] = {"server": server, "told": str(told).lower()} if server else {}
    page = await daemon.perform(operations.PHRASES, asked)
    while server and len(page["tools"]) < page["total"]:
        following = await daemon.perform(operations.PHRASES, {**asked, "offset": len(page["tools"])})
        if not following["tools"]:
            break
        page["tools"] += following["tools"]
    return page


def _servers(servers: Sequence[Row]) -> RenderableType:
    rows = table("SERVER", "TOOLS", *SOURCES.values(), right=("TOOLS", *SOURCES.values()))
    for row in servers:
        rows.add_row(plain(row["server"]), f"{row['tools']}", *(f"{row[source]}" for source in SOURCES))
    return rows


def _progress(described: Row) -> str:
    asked = f"{described['model']} was asked for {described['asked']} tools within a day"
    text = f"{asked}, of {described['tools_per_day']} at most; {described['waiting']} wait"
    failures = described["failures"]
    return f"{text}; it failed {failures} times, last: {described['last_failure']}" if failures else text


# Pages ----------------------------------------------------------------------------------------------------------------


def _check(places: Sequence[Path]) -> None:
    """Say what is wrong with pages. Raises `CommandFailed` if anything is."""
    faults: list[str] = []
    count = 0
    for place in places:
        files = files_of(place)
        faults += [] if files else [f"{place}: there is no such file, nor a folder with files *.json"]
        for file in files:
            count += 1
            faults += [f"{file}: {fault}" for fault in _faults_in(file)]
    if faults:
        raise CommandFailed(_lines(faults))
    say(f"{count} page{'s are' if count != 1 else ' is'} as the book has them.")


def _lines(texts: Sequence[str]) -> str:
    return "\n".join(plain(text).plain for text in texts)


def _faults_in(file: Path) -> Iterator[str]:
    try:
        yield from faults_of(read_page(file))
    except (OSError, UnreadableJson) as error:
        yield str(error)


def _write(server: str, place: Path, config: Path | None, url: str) -> None:
    """Ask for all tools of a server, and write the page. Raises `CommandFailed`, `BadConfiguration`."""
    environ = dict(os.environ)
    try:
        path = find_config(config, environ)
        settings = load(path, environ, published=find_published(path, environ)).settings.describe
    except ConfigError as error:
        raise BadConfiguration(str(error)) from None
    if not settings.has_model:
        raise CommandFailed(f'there is no model to ask: add one to "describe" of "supervisor" in {path}')
    rows = ask(url, lambda daemon: _page_of(daemon, server, told=True))["tools"]
    usable = [row for row in rows if not row["suspicious"]]
    if len(usable) < len(rows):
        say(f"{len(rows) - len(usable)} tools are suspicious, and left out; see {command('tools', '--server', server)}")
    try:
        file = place.open("x", encoding="utf-8")  # before the model is asked, and paid
    except OSError as error:
        raise CommandFailed(f"the page cannot be written: {error}") from None
    model = model_of(settings, environ, default_containment())
    with file:
        tools, why = run(lambda: _ask_all(model, settings, usable))
        made = f"by the model {settings.called}, from the definitions alone"
        text, count = _page_that_fits(Page(server=server, package="", made=made, tools=tuple(tools)))
        file.write(text if tools else "")
    if not tools:
        place.unlink(missing_ok=True)
        raise CommandFailed(why or f"nothing that {settings.called} said is of use: no page was written")
    say(plain(f"{place}: {count} of {len(rows)} tools have sentences.").plain)
    if count < len(tools):
        say(f"A page has {MAX_FILE_BYTES} bytes at the most: {len(tools) - count} more tools are left out.")
    if why:
        raise CommandFailed(f"{why}; of the tools after that there is nothing in the page")


def _page_that_fits(page: Page) -> tuple[str, int]:
    """Return a page as files have it, with as many of its tools as there is room for, and how many these are."""
    text = write_page(page)
    while (size := len(text.encode())) > MAX_FILE_BYTES:
        page = structs.replace(page, tools=page.tools[: len(page.tools) * MAX_FILE_BYTES // (size + 1)])
        text = write_page(page)
    return text, len(page.tools)


async def _ask_all(model: Model, settings: DescribeSettings, rows: Sequence[Row]) -> tuple[list[KnownTool], str]:
    """Return what the model says, batch by batch, and why it says no more, empty if it was asked for all."""
    known: list[KnownTool] = []
    try:
        for first in range(0, len(rows), settings.batch):
            some = rows[first : first + settings.batch]
            tools = [_tool_of(row["told"]) for row in some]
            answer = await model.ask(messages_of(tools, secrets.token_hex(8), str))
            for at, sentences in sorted(sentences_of(answer, tools).items()):
                row = some[at]
                known.append(KnownTool(row["tool"], row["digest"], tuple(row["parameters"]), sentences))
            say(f"asked for {first + len(some)} of {len(rows)} tools")
    except NoAnswer as error:
        return known, f"{settings.called}: {error}"
    finally:
        with trio.move_on_after(CLOSE_S, shield=True):
            await model.close()
    return known, ""


def _tool_of(told: Row) -> Tool:
    """Return a tool of which a model is told the same."""
    properties = {name: {"description": described} for name, described in told["parameters"].items()}
    schema = msgspec.Raw(msgspec.json.encode({"properties": properties}))
    return Tool(name=told["name"], title=told["title"], described=quoted(told["description"]), input_schema=schema)

"""What the documentation says is what the code does: generated parts, commands, curl lines, links, scripts."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from actors.errors import SupervisorError
from docs import generate
from docs.commands import documented, full_help
from docs.routes import route_list
from supervisor.cli import GROUPS, cli
from supervisor.commands.common import DEFAULT_URL
from supervisor.config import Settings
from supervisor.front.application import application
from supervisor.front.pages.app import STATUSES
from supervisor.front.pages.events import STREAMS
from supervisor.metatools.definitions import DEFINITIONS
from tests.supervisor.front.pages.test_api import view

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")


def shell_lines(text: str) -> list[str]:
    """Every line of every block of shell."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


CURL = (ROOT / "docs" / "developers" / "curl.md").read_text(encoding="utf-8")
CURL_LINES = [line for line in shell_lines(CURL) if line.startswith("curl ")]


def test_no_generated_part_of_a_page_is_empty() -> None:
    """A marker that nothing fills stands there like one whose list has no items."""
    part = re.compile(r"^<!-- generated: (.+?) -->$(.*?)^<!-- end: \1 -->$", re.DOTALL | re.MULTILINE)
    found = [(page.name, name, text) for page in PAGES for name, text in part.findall(page.read_text(encoding="utf-8"))]
    assert len(found) > len(generate.parts())
    assert [(page, name) for page, name, text in found if not text.strip()] == []


@pytest.mark.parametrize("name", generate.parts())
def test_the_generated_parts_are_the_present_ones(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert generate.rewrite(text, generate.parts()[name]) == text, "run: python -m docs.generate"


def test_every_error_has_its_place() -> None:
    pages = (ROOT / "docs" / "reference" / "error-types.md", ROOT / "docs" / "developers" / "server-events.md")
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    for error in generate.shown_errors():
        retry = "retry" if error.retryable else "no retry"
        line = f"- **`{error.kind}`**, `{error.__name__}`: code {error.code}, HTTP {error.http_status}, {retry}."
        assert lines.count(line) == 1
        assert lines[lines.index(line) + 1].strip(), "it says what it means"


ELSEWHERE = {
    "FromElsewhere": "of pages, which say so by a status",
    "NoKey": "of pages, which say so by a status",
    "NotAsSeen": "of pages, which say so by a status",
    "NotKept": "of pages, which say so by a status",
    "SealBroken": "a session that is not found",
    "SeveralErrors": "of the configuration, to its operator",
    "UnsetVariable": "of the configuration, to its operator",
    "TooHeavy": "an answer that is too large, or no MCP",
    "Elsewhere": "between nodes of a fleet",
    "EngineSettling": "shown as EngineAway",
    "FeedLost": "between a node of a fleet and its engine",
    "NameTaken": "in the log of a node of a fleet",
    "TooManyQuestions": "to a server",
    "TooManyTokens": "of pages, which say so by a status",
    "TooManyValues": "of pages, which say so by a status",
    "UnknownValue": "of pages, which say so by a status",
    "ValueNotTaken": "of pages, which say so by a status",
    "WithheldTool": "a tool that is not found",
}
"""Errors that no client meets as such, and as what."""


def test_no_error_is_left_out() -> None:
    kinds: list[type[SupervisorError]] = [SupervisorError]
    for kind in kinds:
        kinds += [below for below in kind.__subclasses__() if below not in kinds]
    ours = {kind.__name__ for kind in kinds if kind.__module__.startswith(("actors.", "supervisor."))}
    assert ours == {error.__name__ for error in generate.shown_errors()} | ELSEWHERE.keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_an_error_is_called_by_its_type(page: Path) -> None:
    """What a program finds in `data.type` is no name of a class: `invalid`, not `invalid_arguments`. `server_error` is
    what a server itself answered.
    """
    errors = generate.shown_errors()
    classes = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error.__name__).lower() for error in errors}
    words = set(re.findall(r"`([a-z_]+)`", page.read_text(encoding="utf-8")))
    assert words & classes <= {"server_error", *(error.kind for error in errors)}


def test_the_command_writes_what_is_different(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in generate.parts():
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    generate.main()
    stale = tmp_path / "docs" / "reference" / "error-types.md"
    right = stale.read_text()
    stale.write_text(right.replace("`ShuttingDown`:", "`Other`:"))
    generate.main()
    generate.main()
    assert stale.read_text() == right
    assert capsys.readouterr().out == "wrote: docs/reference/error-types.md\n"
    with pytest.raises(ValueError, match="0 times instead of once"):
        generate.rewrite("nothing", {"errors": ""})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_documentation_exist(page: Path) -> None:
    code = "\n".join(code_of(page.read_text(encoding="utf-8")))
    for name in re.findall(r"(?<!\d\d )mcpvisor (?!https?:)([a-z]+)\b", code):  # in a log it is who wrote the line
        assert name in cli.list_commands(click.Context(cli))


def code_of(text: str) -> list[str]:
    """Everything between backticks, blocks included."""
    return re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in links_of(page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        linked = page.parent / name if name else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors_of(linked.read_text(encoding="utf-8")), target


def links_of(text: str) -> list[str]:
    """The targets of links and pictures within the checkout; what is code is no link."""
    for code in code_of(text):
        text = text.replace(code, "")
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in targets if not target.startswith("https://")]


def anchors_of(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_page_is_linked_from_the_start_page_and_every_link_of_it_is_a_page() -> None:
    start = ROOT / "docs" / "index.md"
    linked = {(start.parent / target).resolve() for target in links_of(start.read_text(encoding="utf-8"))}
    assert {page for page in PAGES if page != start} <= linked


def test_no_page_is_long() -> None:
    lengths = {page: len(page.read_text(encoding="utf-8").splitlines()) for page in ROOT.glob("docs/**/*.md")}
    assert not {page: length for page, length in lengths.items() if length > 250}


def test_the_default_address_is_the_same_everywhere() -> None:
    assert f"http://{Settings().listen}" == DEFAULT_URL
    for text in (README, CURL):
        assert {f"http://localhost:{Settings().address[1]}"} == set(re.findall(r"http://localhost:\d+", text))


def test_curl_lines_are_requests_for_tools_that_need_no_session() -> None:
    assert len(CURL_LINES) == 8
    called: list[str] = []
    for line in CURL_LINES[:-1]:
        words = shlex.split(line)
        assert words[:-1] == [
            *("curl", "-X", "POST", "http://localhost:3001/mcp"),
            *("-H", "Content-Type: application/json", "-d"),
        ]
        request = json.loads(words[-1])
        assert request["jsonrpc"] == "2.0"
        called.append(request["params"].get("name", request["method"]))
    meta_tools = [tool["name"] for tool in DEFINITIONS]
    assert called == ["tools/list", *meta_tools, "context7-resolve-library-id", "filesystem-read_file"]
    assert CURL_LINES[-1] == "curl http://localhost:3001/api/status/debug"


def routes_of_the_front() -> set[str]:
    """Every request that a page answers, as the documentation writes it."""
    app = application(view())
    requests = set()
    for rule in (each for each in app.url_map.iter_rules() if each.rule != "/"):
        before, _, choice = rule.rule.partition("<any(")
        names, _, after = choice.partition("):order>")
        for path in [f"{before}{name}{after}" for name in names.split(",")]:
            shown_path = re.sub(r"<(?:path:)?(\w+)>", r"{\1}", path)
            requests |= {f"{method} {shown_path}" for method in (rule.methods or {"GET"}) - {"HEAD", "OPTIONS"}}
    return requests | {route for route in STREAMS if route.startswith("GET ")}


def test_every_page_is_in_the_documentation_and_no_other() -> None:
    pages = ("http", "dashboard")
    text = "\n".join((ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8") for name in pages)
    assert set(re.findall(r"^(?:- |  )\*\*`([A-Z]+ /[^`]*)`\*\*", text, re.MULTILINE)) == routes_of_the_front()


def test_every_page_says_what_it_answers_and_which_parameters_it_takes() -> None:
    items = re.split(r"^- ", route_list(), flags=re.MULTILINE)[1:]
    routes = {item.split("`")[1]: item for item in items}
    assert all(re.search(r"`\*\*[^`]*\\\n  [A-Z].*\.$", item, re.DOTALL | re.MULTILINE) for item in items)
    assert "  Parameters: `lines` (default `100`), `since`, `grep`, `before`." in route_list()
    assert "Parameters: `servers`, `name`, `limit` (default `100`), `offset`." in routes["GET /api/tokens"]
    assert "deadline_s" in routes["POST /api/servers/{server}/restart"]
    assert "commands/servers.md#wake" in routes["POST /api/servers/{server}/restart"]


def test_every_status_of_a_failure_is_in_the_documentation() -> None:
    text = (ROOT / "docs" / "reference" / "http-requests.md").read_text(encoding="utf-8")
    assert {f"{status}" for _, status in STATUSES} == set(re.findall(r"^- \*\*(\d+)\*\*: ", text, re.MULTILINE))


def test_every_command_is_on_one_page_with_all_its_options() -> None:
    assert [name for group in GROUPS.values() for name in group] == cli.list_commands(click.Context(cli))
    for group in GROUPS:
        commands = dict(documented(group))
        page = (ROOT / "docs" / "reference" / "commands" / f"{group}.md").read_text(encoding="utf-8")
        sections = dict(re.findall(r"^## ([\w ]+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
        assert list(sections) == list(commands)
        for name, section in sections.items():
            command = commands[name]
            assert f"mcpvisor {name} " in section
            for option in command.params:
                if isinstance(option, click.Option) and not option.hidden:
                    assert all(f"{each}" in section for each in option.opts)


def test_what_a_help_text_shows_for_the_shell_is_a_block_of_it() -> None:
    text = full_help("clients")
    lines = "mcpvisor connect cursor\nmcpvisor connect cursor --door four\nmcpvisor connect cursor --undo"
    assert f"\n\n```sh\n{lines}\n```\n\n" in text
    assert "- **`-y, --yes`**: Write without asking." in text
    assert "(default `20`, 1 to 1000)" in full_help("tools")


def test_the_overview_of_commands_has_all_of_them_by_subject() -> None:
    printed = CliRunner().invoke(cli, ["--help"]).output
    subjects = re.findall(r"^(\w+):$", printed, re.MULTILINE)
    assert subjects == ["Options", *(group.capitalize() for group in GROUPS)]
    assert re.findall(r"^  (\w+) ", printed.partition("Daemon:")[2], re.MULTILINE) == cli.list_commands(
        click.Context(cli)
    )


def test_curl_lines_of_the_operators_are_for_pages_that_there_are() -> None:
    text = (ROOT / "docs" / "reference" / "http-requests.md").read_text(encoding="utf-8")
    lines = [shlex.split(line) for line in shell_lines(text) if line.startswith("curl ")]
    pages = routes_of_the_front()
    for words in lines:
        path = words[-1].removeprefix("http://localhost:3001").partition("?")[0].replace("/github", "/{server}")
        method = words[words.index("-X") + 1] if "-X" in words else "GET"
        assert f"{method} {path}" in pages
    assert len(lines) == 4


def test_the_scripts_are_executable_and_test_the_same_way() -> None:
    assert ".ci/test" in shell_lines(README)
    for name in ("run", "test", "coverage", "environment", "lint", "trio-lint", "site", "properties"):
        script = ROOT / ".ci" / name
        assert os.access(script, os.X_OK)
        assert script.read_text().startswith("#!/usr/bin/env bash\n")
        assert "set -euo pipefail" in script.read_text()
    run = (ROOT / ".ci" / "run").read_text()
    assert "\n.ci/test || " in run


def test_every_dependency_is_pinned() -> None:
    lines = (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", pin) for pin in pins)
    pinned = {normalised(pin.partition("==")[0]) for pin in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [name for extra in project["optional-dependencies"].values() for name in extra]
    wanted = {normalised(re.split(r"[<>=]", name)[0]) for name in [*project["dependencies"], *extras]}
    assert wanted <= pinned


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

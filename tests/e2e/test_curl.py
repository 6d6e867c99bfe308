"""The requests that documents show, as a shell would send them: no session, no `Accept`, `localhost`."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import httpx2
import pytest
import trio

from tests.e2e.daemons import ROOT, Daemon, running, stand_in, text

pytestmark = pytest.mark.e2e

POST = 'curl -X POST http://localhost:3001/mcp -H "Content-Type: application/json" -d '
NAMES = ("context7", "filesystem", "github", "excalidraw")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Stand-ins under the names that the documents use, on every address of localhost."""
    servers = {name: stand_in(name) for name in NAMES}
    with running(tmp_path_factory.mktemp("curl"), servers, "localhost:0") as daemon:
        trio.run(daemon.ready)
        yield daemon


def with_curl(words: list[str]) -> bytes:
    """Run a line with the real program."""
    quiet = [words[0], "--silent", "--show-error", "--fail-with-body", "--max-time", "20", *words[1:]]
    return subprocess.run(quiet, capture_output=True, check=True).stdout


def with_httpx2(words: list[str]) -> bytes:
    """Send what curl would send: its own `Accept: */*`, and nothing else of the library's."""
    url = next(word for word in words if word.startswith("http://"))
    headers = {"accept": "*/*", "user-agent": "curl/8.0"}
    content = None
    for option, value in pairwise(words):
        if option == "-H":
            name, _, given = value.partition(": ")
            headers[name] = given
        elif option == "-d":
            content = value.encode()
    method = "POST" if content else "GET"
    with httpx2.Client(verify=False, trust_env=False, timeout=30) as client:
        request = httpx2.Request(method, url, headers=headers, content=content)
        return client.send(request).raise_for_status().content


def fetch(daemon: Daemon, line: str) -> Any:
    """Run one line of a document, with the daemon's port in place of the default one."""
    send: Callable[[list[str]], bytes] = with_curl if shutil.which("curl") else with_httpx2
    return json.loads(send(shlex.split(line.replace(":3001/", f":{daemon.port}/"))))


def test_tools_list_shows_the_four_meta_tools(daemon: Daemon) -> None:
    answer = fetch(daemon, POST + """'{"jsonrpc":"2.0","id":"1","method":"tools/list","params":{}}'""")
    assert answer["id"] == "1"
    names = [tool["name"] for tool in answer["result"]["tools"]]
    assert names == ["discover_mcp_tools", "execute_mcp_tool", "list_mcp_resources", "read_mcp_resource"]


def test_a_tool_runs_under_its_namespaced_name(daemon: Daemon) -> None:
    answer = fetch(
        daemon,
        POST + """'{"jsonrpc":"2.0","id":"2","method":"tools/call","params":{"name":"context7-resolve-library-id","""
        """"arguments":{"libraryName":"react"}}}'""",
    )
    assert (answer["id"], text(answer)) == ("2", "/libraries/react")


def test_a_file_is_read_under_its_namespaced_name(daemon: Daemon) -> None:
    answer = fetch(
        daemon,
        POST + """'{"jsonrpc":"2.0","id":"3","method":"tools/call","params":{"name":"filesystem-read_file","""
        """"arguments":{"path":"/tmp/test.txt"}}}'""",
    )
    assert (answer["id"], text(answer)) == ("3", "contents of /tmp/test.txt")


def test_the_debug_page_shows_tools_by_transport_and_by_server(daemon: Daemon) -> None:
    page = fetch(daemon, "curl http://localhost:3001/api/status/debug")
    assert page["tools_by_transport"] == {"stdio": len(NAMES) + 1}  # the one of files has two
    assert set(page["tools_by_server"]) == set(page["processes"]) == set(NAMES)


DISCOVER = """
{
  "jsonrpc": "2.0",
  "id": "1",
  "method": "tools/call",
  "params": {
    "name": "discover_mcp_tools",
    "arguments": {
      "query": "github create issue",
      "limit": 5
    }
  }
}"""
EXECUTE = """
{
  "jsonrpc": "2.0",
  "id": "2",
  "method": "tools/call",
  "params": {
    "name": "execute_mcp_tool",
    "arguments": {
      "tool_path": "github:create_issue",
      "arguments": {
        "repo": "deploystackio/deploystack",
        "title": "Test issue",
        "body": "Test body"
      }
    }
  }
}"""
LIST = """
{
  "jsonrpc": "2.0",
  "id": "3",
  "method": "tools/call",
  "params": {
    "name": "list_mcp_resources",
    "arguments": {}
  }
}"""
READ = """
{
  "jsonrpc": "2.0",
  "id": "4",
  "method": "tools/call",
  "params": {
    "name": "read_mcp_resource",
    "arguments": {
      "uri": "excalidraw|ui://excalidraw/mcp-app.html"
    }
  }
}"""


def test_discover_answers_with_paths_schemas_and_the_query(daemon: Daemon) -> None:
    answer = fetch(daemon, POST + shlex.quote(DISCOVER))
    found = json.loads(text(answer))
    first = found["tools"][0]
    assert found["query"] == "github create issue"
    assert (first["tool_path"], first["server_name"], first["transport"]) == ("github:create_issue", "github", "stdio")
    assert found["total_found"] >= 1
    assert found["search_time_ms"] >= 0


def test_execute_runs_the_discovered_tool(daemon: Daemon) -> None:
    answer = fetch(daemon, POST + shlex.quote(EXECUTE))
    assert (answer["id"], text(answer)) == ("2", "created 'Test issue' in deploystackio/deploystack")


def test_the_resources_are_listed_under_namespaced_uris(daemon: Daemon) -> None:
    found = json.loads(text(fetch(daemon, POST + shlex.quote(LIST))))
    row = found["resources"][0]
    assert (row["uri"], row["server"]) == ("excalidraw|ui://excalidraw/mcp-app.html", "excalidraw")
    assert (found["total_resources"], found["total_templates"]) == (1, 0)


def test_a_resource_is_read_by_its_namespaced_uri(daemon: Daemon) -> None:
    answer = fetch(daemon, POST + shlex.quote(READ))
    assert text(answer).startswith("<!DOCTYPE html><html>")


def test_what_the_two_ways_of_sending_get_is_the_same(daemon: Daemon) -> None:
    line = shlex.split((POST + shlex.quote(EXECUTE)).replace(":3001/", f":{daemon.port}/"))
    answers = [json.loads(with_httpx2(line))]
    if shutil.which("curl"):
        answers.append(json.loads(with_curl(line)))
    assert all(text(answer) == "created 'Test issue' in deploystackio/deploystack" for answer in answers)


def lines_of_the_page() -> list[str]:
    page = (ROOT / "docs" / "developers" / "curl.md").read_text(encoding="utf-8")
    return [line for line in page.splitlines() if line.startswith("curl ")]


@pytest.mark.parametrize("line", lines_of_the_page())
def test_a_line_of_the_page_works_as_it_is_written(daemon: Daemon, line: str) -> None:
    answer = fetch(daemon, line)
    if line.startswith("curl -X POST"):
        assert answer["result"].get("isError", False) is False
        assert answer["id"] == json.loads(shlex.split(line)[-1])["id"]
    else:
        assert answer["processes"].keys() == set(NAMES)

"""Makes docs/pictures, the dashboard in light and dark: `python -m docs.pictures`, after `.ci/environment`.

A daemon with published servers of time and git, and one that cannot be started, is called a few times; then Chromium
looks at each page.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2

ROOT = Path(__file__).parents[1]
PICTURES = Path(__file__).with_name("pictures")
SCRIPT = ROOT / "tests" / "e2e" / "browser" / "pictures.cjs"
PACKAGES = ROOT / ".cache" / "browser"
WIDTH = 1100
PAGES = (
    "/ui",
    "/ui/servers",
    "/ui/servers/git",
    "/ui/tools?query=what+time+is+it+in+Tokyo",
    "/ui/tool?path=time:convert_time",
    "/ui/calls",
    "/ui/usage",
    "/ui/changes",
    "/ui/people",
)
NAMES = ("overview", "servers", "server", "tools", "tool", "calls", "usage", "changes", "people")
SERVERS = {
    "git": {"command": sys.executable, "args": ["-m", "mcp_server_git"]},
    "time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]},
    "tickets": {"command": "ticket-server", "description": "Tickets of the team"},
}
CALLS = (
    ("time:get_current_time", {"timezone": "Europe/Berlin"}),
    ("time:get_current_time", {"timezone": "Asia/Tokyo"}),
    ("time:get_current_time", {"timezone": "Nowhere"}),
    ("git:git_status", {"repo_path": str(ROOT)}),
    ("git:git_log", {"repo_path": str(ROOT), "max_count": 3}),
)


def main() -> int:
    """Make all pictures; return the exit code."""
    node = shutil.which("node")
    if node is None:
        print("Node.js is needed for the browser", file=sys.stderr)
        return 1
    with TemporaryDirectory() as directory:
        process, url = start(Path(directory))
        try:
            call_some(url)
            PICTURES.mkdir(exist_ok=True)
            for scheme in ("light", "dark"):
                command = [node, str(SCRIPT), str(PACKAGES), str(PICTURES), url, str(WIDTH), scheme, *PAGES]
                subprocess.run([*command, "--names", *NAMES], check=True)
        finally:
            process.terminate()
            process.wait()
    return 0


def start(directory: Path) -> tuple[subprocess.Popen[str], str]:
    config = directory / "mcp.json"
    config.write_text(json.dumps({"mcpServers": SERVERS, "supervisor": {"data_dir": str(directory / "data")}}))
    command = [sys.executable, "-m", "supervisor", "run", "--config", str(config), "--listen", "127.0.0.1:0"]
    usual = {**os.environ, "PATH": os.defpath}  # a page shows it
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT, env=usual
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, "http://" + line.split("http://")[1].split("/mcp")[0].strip()


def call_some(url: str) -> None:
    while not httpx2.get(f"{url}/readyz").json()["ready"]:
        time.sleep(0.1)  # noqa: TID251 - nothing runs beside it
    for _ in range(6):
        for path, arguments in CALLS:
            params = {"name": "execute_mcp_tool", "arguments": {"tool_path": path, "arguments": arguments}}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            httpx2.post(f"{url}/mcp", json=body, timeout=60)


if __name__ == "__main__":
    sys.exit(main())

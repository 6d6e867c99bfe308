"""The benchmark of equal tools runs on files of the form it documents, and shows use where there are equals."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import ties


def test_use_helps_where_servers_are_there_twice_and_nowhere_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = [
        {"server": "disk", "name": "read_file", "description": "Read a file."},
        {"server": "post", "name": "send_mail", "description": "Send a mail."},
    ]
    queries = [
        {"id": 1, "query": "read a file", "groups": [[["disk", "read_file"]]]},
        {"id": 2, "query": "mail it", "groups": [[["post", "send_mail"]]]},
        {"id": 3, "query": "zzqx", "kind": "garbage", "groups": []},
    ]
    catalog, asked = tmp_path / "tools.jsonl", tmp_path / "queries.jsonl"
    catalog.write_text("\n".join(map(json.dumps, tools)))
    asked.write_text("\n".join(map(json.dumps, queries)))
    told = {}
    for more in ([], ["--twice"]):
        monkeypatch.setattr(sys, "argv", ["ties", str(catalog), str(asked), *more])
        ties.main()
        *lines, cost = capsys.readouterr().out.splitlines()
        told[len(more)] = {line[:11].strip(): line.split("hit@1")[1].split()[0] for line in lines}
        assert cost.startswith("search: p50 ")
    assert told[0] == dict.fromkeys(told[0], "100.0")
    assert [told[1][use] for use in ("off", "right", "one loved", "all broken", "worst")] == [
        *("0.0", "100.0", "0.0", "0.0", "0.0")
    ]

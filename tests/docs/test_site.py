"""The site: built without a warning, whole without another host, and readable on a phone."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import environments

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
BUILD_S = 180.0
PHONE = 390
"""CSS pixels: the width of common phones."""


@dataclass(frozen=True, slots=True)
class Site:
    directory: Path
    said: str

    @property
    def diagrams_are_text(self) -> bool:
        return "diagrams stay text" in self.said

    def pages(self) -> list[Path]:
        """All but the root, which leads to the start page."""
        return [page for page in sorted(self.directory.rglob("*.html")) if page != self.directory / "index.html"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    directory = tmp_path_factory.mktemp("built") / "site"
    built = subprocess.run(
        [str(ROOT / ".ci" / "site"), str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    assert built.returncode == 0, built.stdout
    return Site(directory, built.stdout)


class Loads(HTMLParser):
    """Collects what a browser fetches for a page by itself, not what a reader may follow."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        loading = {"src", "srcset", "data", "poster", "style"} | ({"href"} if tag == "link" else set())
        self.found += [value or "" for name, value in attrs if name in loading]

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is not None:  # the text of a script or a style
            self.found.append(data)


def test_the_site_is_built_without_a_warning(site: Site) -> None:
    assert not [line for line in site.said.splitlines() if not line.startswith("site: ")]
    assert len(site.pages()) > len(list(ROOT.glob("docs/*/*.md")))


def test_no_page_loads_anything_from_another_host(site: Site) -> None:
    for page in site.pages():
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        assert loads.found, page
        assert not [text for text in loads.found if re.search(r"(https?:)?//[\w-]+\.\w", text)], page
    for sheet in site.directory.rglob("*.css"):
        assert not re.search(r"@import|url\([\"']?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_every_diagram_is_a_picture_of_the_site(site: Site) -> None:
    if site.diagrams_are_text:
        pytest.skip(f"not run: {site.said}")
    written = [page for page in ROOT.glob("docs/*/*.md") if "\n```mermaid\n" in page.read_text(encoding="utf-8")]
    assert written
    for page in written:
        built = site.directory / page.relative_to(ROOT).with_suffix(".html")
        drawn = re.findall(r'<object data="([^"]+\.svg)"', built.read_text(encoding="utf-8"))
        assert len(drawn) == page.read_text(encoding="utf-8").count("\n```mermaid\n"), page
        for picture in drawn:
            text = (built.parent / picture).read_text(encoding="utf-8")
            assert text.startswith("<svg ")
            assert not re.search(r"(src|href)=\"?https?:|url\(\"?https?:", text)


@pytest.fixture(scope="module")
def views(site: Site) -> list[dict[str, Any]]:
    """What a browser of the width of a phone shows, page by page."""
    pages: list[dict[str, Any]] = environments.browse("pages.cjs", site.directory.as_uri(), PHONE)["pages"]
    assert len(pages) == len(site.pages())
    return pages


def test_a_browser_asks_no_other_host(views: list[dict[str, Any]]) -> None:
    assert not [f"{page['page']}: {page['loaded']}" for page in views if page["loaded"]]


def test_no_page_scrolls_sideways_on_a_phone(views: list[dict[str, Any]]) -> None:
    assert not [page["page"] for page in views if page["sideways"]]


def test_every_table_fits_a_phone(views: list[dict[str, Any]]) -> None:
    wide = [f"{page['page']}, {table}" for page in views for table in page["tables"]]
    assert not wide, "\n".join(["wider than a phone:", *wide])

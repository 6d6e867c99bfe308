"""How the pages become a site: Sphinx with MyST, which reads the Markdown that is read beside the code. See `.ci/site`.

- The sources are those of the whole checkout, so that a link from a page to the README is one of the site.
- The order of the pages is that of the links in index.md, so that no list is kept twice.
- The diagram is drawn by mermaid in the reader's browser, from jsdelivr, on its page only; without it, it is text.
- Every warning is an error: a link or an anchor that leads nowhere ends the build.
"""

from __future__ import annotations

import re
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx

project = "mcpvisor"
version = release = version_of("mcpvisor")
root_doc = "docs/index"
include_patterns = ["docs/*.md", "docs/*/*.md", "README.md", "CHANGELOG.md", "examples/README.md"]
exclude_patterns = [".*", "actors", "benchmarks", "build", "dist", "supervisor", "tests"]
extensions = ["myst_parser", "sphinxcontrib.mermaid"]
html_theme = "furo"
html_title = f"mcpvisor {version}"
html_copy_source = False
nitpicky = True
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
LINKED = re.compile(r"\]\((?P<page>[\w./-]+\.md)\)")
REDIRECT = '<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=docs/index.html">\n'


def setup(app: Sphinx) -> None:
    """Give the start page its table of contents, and the site a page at its root."""
    app.connect("source-read", add_contents)
    app.connect("build-finished", add_root)


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Append what the start page links to as a hidden table of contents."""
    if page == root_doc:
        names = "\n".join(dict.fromkeys(LINKED.findall(source[0])))
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def add_root(app: Sphinx, failure: Exception | None) -> None:
    """Lead from the root of the site to the start page."""
    if failure is None:
        (Path(app.outdir) / "index.html").write_text(REDIRECT, encoding="utf-8")

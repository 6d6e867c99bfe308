"""How the pages become a site: Sphinx with MyST, which reads the Markdown that is read beside the code. See `.ci/site`.

- The sources are those of the whole checkout, so that a link from a page to the README is one of the site.
- The order of the pages is that of the links in index.md, so that no list is kept twice.
- Diagrams are drawn as SVG, by mermaid in the Chromium of `.ci/clients.sh`; where it cannot run they stay text.
- No page loads anything from another host.
- Every warning is an error: a link or an anchor that leads nowhere ends the build.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator
from sphinxcontrib.mermaid import html_visit_mermaid, mermaid

ROOT = Path(__file__).parents[1]
BROWSER = ROOT / ".cache" / "browser"

project = "mcpvisor"
version = release = version_of("mcpvisor")
root_doc = "docs/index"
include_patterns = ["docs/*.md", "docs/*/*.md", "docs/*/*/*.md", "README.md", "CHANGELOG.md", "examples/README.md"]
exclude_patterns = [".*", "actors", "benchmarks", "build", "dist", "supervisor", "tests"]
extensions = ["myst_parser", "sphinxcontrib.mermaid"]
html_theme = "furo"
html_title = f"mcpvisor {version}"
html_copy_source = False
nitpicky = True
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
mermaid_output_format = "svg"
mermaid_cmd = shlex.join(["node", str(ROOT / "docs" / "diagram.cjs"), str(BROWSER)])
LINKED = re.compile(r"\]\((?P<page>[\w./-]+\.md)\)")
REDIRECT = '<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=docs/index.html">\n'


def setup(app: Sphinx) -> None:
    """Give the start page its table of contents, the site a page at its root, and diagrams room."""
    app.connect("source-read", add_contents)
    app.connect("build-finished", add_root)
    app.add_node(mermaid, override=True, html=(visit_diagram, None))
    if not can_draw():
        app.connect("source-read", keep_diagrams)


def can_draw() -> bool:
    """Whether the browser for the diagrams starts; what is missing is said."""
    node = shutil.which("node")
    probe = [node or "", str(ROOT / "tests" / "e2e" / "browser" / "chromium.cjs"), str(BROWSER)]
    if node is None:
        why = "there is no Node.js"
    elif not (BROWSER / "node_modules" / "@mermaid-js").is_dir():
        why = f"{BROWSER.relative_to(ROOT)} is not made: run .ci/clients.sh"
    elif subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode:
        why = "Chromium does not start here"
    else:
        return True
    print(f"site: diagrams stay text: {why}", file=sys.stderr)
    return False


def keep_diagrams(app: Sphinx, page: str, source: list[str]) -> None:
    """Leave the diagrams of a page as they are written."""
    source[0] = source[0].replace("```mermaid\n", "```text\n")


def visit_diagram(writer: HTML5Translator, node: nodes.Element) -> None:
    """Let a diagram that is wider than a phone scroll by itself, and stay as large as it can be read."""
    writer.body.append('<div class="diagram" style="overflow-x: auto">')
    try:
        html_visit_mermaid(writer, node)
    finally:  # it leaves by an exception of docutils
        writer.body.append("</div>\n")


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Append what the start page links to as a hidden table of contents."""
    if page == root_doc:
        names = "\n".join(dict.fromkeys(LINKED.findall(source[0])))
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def add_root(app: Sphinx, failure: Exception | None) -> None:
    """Lead from the root of the site to the start page."""
    if failure is None:
        (Path(app.outdir) / "index.html").write_text(REDIRECT, encoding="utf-8")

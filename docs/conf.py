"""How the pages become a site: Sphinx with MyST, which reads the Markdown that is read beside the code. See `.ci/site`.

- The sources are those of the whole checkout, so that a link from a page to the README is one of the site.
- The order of the pages is that of the links in index.md, so that no list is kept twice.
- Diagrams are drawn as SVG, by mermaid in the Chromium of `.ci/clients.sh`; where it cannot run they stay text.
- No page loads anything from another host.
- Every warning is an error: a link or an anchor that leads nowhere ends the build.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from functools import cache
from hashlib import sha1
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.writers.html5 import HTML5Translator
from sphinxcontrib.mermaid import mermaid

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
mermaid_output_format = "svg"  # else its pages load a script that draws
LINKED = re.compile(r"\]\((?P<page>[\w./-]+\.md)\)")
REDIRECT = '<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=docs/index.html">\n'


def setup(app: Sphinx) -> None:
    """Give the start page its table of contents, the site a page at its root, and diagrams room."""
    app.connect("source-read", add_contents)
    app.connect("build-finished", add_root)
    app.connect("html-page-context", drop_tree, priority=400)  # the theme has 500
    app.connect("html-page-context", list_pages, priority=600)
    app.add_node(mermaid, override=True, html=(visit_diagram, None))
    written: dict[str, str] = {}
    app.connect("doctree-read", lambda app, doctree: written.update(diagrams_of(doctree)))
    app.connect("env-updated", lambda app, env: draw(app, written))


def diagrams_of(doctree: nodes.document) -> dict[str, str]:
    """Return the diagrams of a page by the names of their pictures."""
    return {picture_of(node): node["code"] for node in doctree.findall(mermaid)}


def picture_of(node: nodes.Element) -> str:
    """Return the name of the picture of a diagram."""
    return f"diagram-{sha1(node['code'].encode(), usedforsecurity=False).hexdigest()}.svg"


def draw(app: Sphinx, written: dict[str, str]) -> None:
    """Draw diagrams, all in one browser; what is missing for that is said."""
    node = shutil.which("node")
    if node is None:
        why = "there is no Node.js"
    elif not (BROWSER / "node_modules" / "@mermaid-js").is_dir():
        why = f"{BROWSER.relative_to(ROOT)} is not made: run .ci/clients.sh"
    else:
        pictures = Path(app.outdir) / "_images"
        pictures.mkdir(exist_ok=True)
        command = [node, str(ROOT / "docs" / "diagram.cjs"), str(BROWSER), str(pictures)]
        done = subprocess.run(command, input=json.dumps(written), stdout=subprocess.PIPE, text=True, check=True)
        if "missing" not in json.loads(done.stdout):
            return
        why = "Chromium does not start here"
    print(f"site: diagrams stay text: {why}", file=sys.stderr)


def visit_diagram(writer: HTML5Translator, node: nodes.Element) -> None:
    """Let a diagram that is wider than a phone scroll by itself, and stay as large as it can be read."""
    picture, text = picture_of(node), writer.encode(node["code"])
    if (Path(writer.builder.outdir) / "_images" / picture).is_file():
        shown = f'<object data="{writer.builder.imgpath}/{picture}" type="image/svg+xml"><p>{text}</p></object>'
    else:
        shown = f"<pre>{text}</pre>"
    writer.body.append(f'<div class="diagram" style="overflow-x: auto">{shown}</div>\n')
    raise nodes.SkipNode


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Append what the start page links to as a hidden table of contents."""
    if page == root_doc:
        names = "\n".join(dict.fromkeys(LINKED.findall(source[0])))
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def drop_tree(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.Node | None) -> None:
    """Keep the theme from making its tree of pages: for each page it would copy the headings of all others."""
    context.pop("toctree", None)


def list_pages(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.Node | None) -> None:
    """Give the theme the list of all pages that it would make, in half of the time of the build."""
    rows = []
    for each in app.env.toctree_includes[root_doc]:
        here, current = (" current current-page", "current ") if each == page else ("", "")
        uri = app.builder.get_relative_uri(page, each) or "#"
        link = f'<a class="{current}reference internal" href="{uri}">'
        rows.append(f'<li class="toctree-l1{here}">{link}{title_of(app, each)}</a></li>\n')
    context["furo_navigation_tree"] = f"<ul>\n{''.join(rows)}</ul>\n"


@cache
def title_of(app: Sphinx, page: str) -> str:
    """Return the title of a page as HTML."""
    assert isinstance(app.builder, StandaloneHTMLBuilder)
    return app.builder.render_partial(app.env.titles[page])["title"]


def add_root(app: Sphinx, failure: Exception | None) -> None:
    """Lead from the root of the site to the start page."""
    if failure is None:
        (Path(app.outdir) / "index.html").write_text(REDIRECT, encoding="utf-8")

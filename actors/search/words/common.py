"""Function words, low-information words, verbs and file extensions. Data of this project, under its licence.

Written for this project from general knowledge of English and of what people type at tools; no list was copied.
"""

from __future__ import annotations

_STOP_WORDS = """
a about above actually after again against all also am an and another any anything are aren as at basically be
because been before being below between both but by can could couldn d dear did didn do does doesn doing don done
down during each either else etc every everything for from further give given gives gonna got had hadn has hasn have
haven having he hello help her here hey hi him his how i if in into is isn it its just kindly let lets like ll m may
maybe me might mine more most must my need needs neither no nor not of off ok okay on once only onto or other our
ours out over own per please pls re really s same shall she should shouldn so some somebody somehow someone
something such t tell than thank thanks that the their theirs them then there these they this those through to too
under up us use used using ve very via wanna want wants was wasn we were weren what when where which while who whom
whose why will with without won would wouldn yes you your yours
"""

STOP_WORDS: frozenset[str] = frozenset(_STOP_WORDS.split())
"""Words that say nothing about a tool. They count only in names of tools and servers."""

_LOW_INFORMATION = """
all available best bit called complete content contents current data detail detailed details different entire
existing following full given good great important info information kind latest lot many more much multiple named
new now own part recent related report result results several sort specific stuff thing things today tomorrow upcoming
various way whole yesterday
"""

LOW_INFORMATION: frozenset[str] = frozenset(_LOW_INFORMATION.split())
"""Words that fit nearly every tool: they count a little less."""

_VERBS = {
    "read": (
        "get list show read fetch view search find query describe retrieve display lookup inspect check see count"
    ),
    "create": ("create add new insert make generate build post send write upload append start install deploy compose"),
    "update": "update edit modify patch set change rename move assign revise replace format resize",
    "delete": "delete remove drop erase clear purge destroy uninstall stop cancel terminate kill",
}

VERB_CLASS: dict[str, str] = {word: name for name, text in _VERBS.items() for word in text.split()}
"""Verb to what it does with a thing: read, create, update or delete."""

_FILE_EXTENSIONS = """
pdf=pdf:1
docx=docx:1 word:0.8
doc=word:0.8
xlsx=excel:1 spreadsheet:0.4
xls=excel:1
csv=csv:1
pptx=powerpoint:0.9 presentation:0.6
ppt=powerpoint:0.9 presentation:0.6
png=image:0.8
jpg=image:0.8
jpeg=image:0.8
gif=image:0.8
svg=svg:1 image:0.4
mp3=audio:0.9
wav=audio:0.9
mp4=video:0.9
md=markdown:0.5
json=json:0.6
html=html:0.6
txt=text:0.4
py=python:0.4
zip=zip:0.8
yaml=yaml:0.4
yml=yaml:0.4
sql=sql:0.6
ics=calendar:0.8
parquet=parquet:1
"""

FILE_EXTENSIONS: dict[str, tuple[tuple[str, float], ...]] = {
    line.partition("=")[0]: tuple(
        (word, float(weight)) for word, _, weight in (hint.partition(":") for hint in line.partition("=")[2].split())
    )
    for line in _FILE_EXTENSIONS.strip().splitlines()
}
"""File extension to the (word, weight) pairs it hints at."""

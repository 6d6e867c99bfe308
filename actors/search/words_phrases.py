"""Turns of phrase that mean a verb or noun they do not contain. Data of this project, under its licence.

Written for this project. A pattern is searched in the query in lower case; its words become one more query term.
Every repetition in a pattern is bounded, so that a long query cannot make it slow.
"""

from __future__ import annotations

PHRASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\bgo to\b|\bhead to\b", ("navigate", "visit")),
    (r"\blook(ing)? up\b|\blook(ing)? for\b", ("search", "find")),
    (r"\bget rid of\b", ("delete", "remove")),
    (r"\bset up\b", ("create", "setup")),
    (r"\b(sign|log) ?in\b", ("login",)),
    (r"\bturn(ed|ing)? .{0,40}\binto\b", ("convert",)),
    (r"\bhow many\b", ("count",)),
    (r"\bwork out\b|\bfigure out\b", ("calculate",)),
    (r"\bwhat time\b", ("time",)),
    (r"\bremind me\b", ("reminder", "task")),
    (r"\bto-?do\b", ("todo", "task")),
    (r"\be-mails?\b", ("email", "mail")),
    (r"\bstep by step\b", ("sequential", "thinking")),
    (r"\bpull request", ("pr",)),
    (r"\bmerge request", ("mr",)),
    (r"^(what|which)\b.{0,60}\b(are|is|exist|have|has)\b", ("list", "get")),
    (r"^(who)\b", ("user", "member")),
    (r"^(where)\b", ("location", "find")),
    (r"\bhow (far|long)\b", ("distance", "duration")),
    (r"\bhow much\b", ("price", "cost")),
    (r"\bhow (do|can) i get from\b", ("directions", "route")),
    (r"\bkick off\b", ("start", "run")),
    (r"\bcarry out\b", ("execute", "run")),
    (r"\bput .{0,40}\b(in|into|on)\b", ("add", "insert")),
    (r"\bwrite down\b|\bjot\b", ("note", "write")),
    (r"\bpull down\b", ("download",)),
    (r"\bkeep an eye\b", ("monitor", "watch")),
    (r"\broll(ing)? back\b|\bundo\b", ("rollback", "revert", "reset")),
    (r"\bword document|\bdocx?\b", ("document", "word")),
    (r"\bslide ?(deck|show)s?\b", ("presentation", "slide")),
    (r"\bprevious(ly)? (version|revision)|\bearlier version", ("history", "revision")),
    (r"\bout of office\b|\bon vacation\b|\bauto ?-?reply\b", ("automatic", "reply", "office")),
    (r"\bnear(by| me)\b|\bclose to\b|\baround here\b", ("nearby", "local", "places")),
    (r"\bmachine translation|\btranslate\b", ("translate", "translation")),
    (r"\bpeople\b.{0,30}\b(cite|citing)\b|\bciting\b", ("citation",)),
    (r"\bstatus code\b", ("status",)),
    (r"\bpick up where\b", ("context", "resume")),
    (r"\bread (it |this |text )?(aloud|out loud)\b", ("speech", "tts")),
    (r"\bsource code\b", ("code",)),
    (r"\bschedule\b.{0,40}\bmeeting", ("event", "calendar")),
)

"""Turns of phrase that mean a verb or noun they do not contain. Data of this project, under its licence.

Written for this project. A pattern is searched in the query in lower case; its words become one more query term.
Every repetition in a pattern is bounded, so that a long query cannot make it slow.
"""

from __future__ import annotations

PHRASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\bgo to\b|\bhead to\b", ("navigate", "visit")),
    (r"\blook(ing)? up\b|\blook(ing)? for\b", ("search", "find")),
    (r"\b(file|raise|log|submit|report) an? .{0,20}\b(bug|issue|ticket|defect|problem)", ("create",)),
    (r"\bget rid of\b", ("delete", "remove")),
    (r"\bset up\b", ("create", "setup")),
    (r"\b(sign|log) ?in\b", ("login",)),
    (r"\bturn(ed|ing)? .{0,40}\binto\b", ("convert",)),
    (r"\bhow many\b", ("count",)),
    (r"\bwork out\b|\bfigure out\b", ("calculate",)),
    (r"\bwhat time\b", ("time",)),
    (r"\bremind me\b(?! (what|who|how|where|which|why|of)\b)", ("reminder", "task")),
    (r"\bto-?do\b", ("todo", "task")),
    (r"\be-mails?\b", ("email", "mail")),
    (r"\bstep by step\b", ("sequential", "thinking")),
    (r"\bpull request", ("pr",)),
    (r"\bmerge request", ("mr",)),
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
    (r"\b(put|set) .{0,40}\baside\b", ("stash", "save")),
    (r"\blet .{1,40}\bknow\b(?! if)|\btell (?!me\b|us\b)\w+", ("send", "message", "notify")),
    (r"\bfill (in|out)\b", ("fill", "write", "update")),
    (r"\bclean(ing)? up\b|\bthrow (away|out)\b", ("delete", "remove", "cleanup")),
    (r"\bcome up with\b|\bput together\b|\bspin(ning)? up\b", ("create", "generate")),
    (r"\btear(ing)? down\b|\bshut(ting)? down\b", ("delete", "stop")),
    (r"\bback(ing)? up\b", ("backup",)),
    (r"\bbring(ing)? back\b", ("restore",)),
    (r"\broll(ing)? out\b", ("deploy", "rollout")),
    (r"\b(mark|tick|check|cross)\b.{0,40}\b(as done|as complete|off|finished)\b", ("complete", "update")),
    (
        r"\bfree (slot|time|at|on|for)\b|\bboth (free|available)\b|\b(is|are) .{1,40}\bavailable\b",
        ("availability", "freebusy"),
    ),
    (r"\bwho (wrote|changed|edited|touched)\b", ("blame", "author", "history")),
    (r"\bwhat (has |have |had )?changed\b", ("diff", "changes")),
    (r"\bkeep track\b", ("track", "monitor")),
    (r"\bmake .{1,40}\b(disappear|go away)\b", ("delete", "expire", "hide")),
    (r"\bwhat files\b|\bwhich files\b", ("list", "directory", "files")),
    (r"\bfrom (the |my |a )?(disk|disc|hard drive)\b|\bon (the |my )?(disk|disc|hard drive)\b", ("filesystem",)),
    (r"\b(pictures?|photos?|images?)\b.{0,40}\b(online|on the (web|internet))\b", ("image", "search")),
    (r"\bpull up\b|\bbring up\b", ("open", "get")),
    (r"\bdo (i|we) have\b|\b(is|are) there\b", ("list", "search")),
    (r"\b(take|grab) (a )?(picture|photo|snapshot) of\b", ("screenshot", "capture")),
    (r"\btext of\b", ("content", "text")),
    (r"\bswap(ping)? out\b", ("replace",)),
    (r"\btake (a )?notes?\b|\bnote down\b|\bwrite .{1,30} down\b", ("note", "create")),
    (r"\b(recording|audio|voice|speech|podcast)\b.{0,40}\b(in)?to (a )?text\b", ("transcribe", "speech")),
    (r"\bspeak\b|\bsay\b.{0,40}\b(aloud|voice)\b", ("speech",)),
    (r"\bwork in progress\b|\bwithout committing\b", ("stash",)),
    (r"\bhow (big|large)\b|\bsize of\b", ("size", "info")),
    (r"\bhow (tall|high)\b", ("elevation", "height")),
    (r"\bhow long\b.{0,40}\b(drive|walk|fly|travel|get (to|from))\b", ("directions", "distance")),
    (r"\b(download|copy|get)\b.{0,20}\brepo(sitory)?\b", ("clone",)),
    (r"\bmove\b.{0,30}\bto (in progress|done|review|to ?do|closed|open|backlog)\b", ("transition", "status")),
    (r"\bstep through\b|\bthink through\b", ("thinking", "sequential")),
    (r"\bsign(ing)? (out|off)\b|\blog ?(out|off)\b", ("logout",)),
    (r"\bshare\b.{0,40}\bwith\b", ("permission", "access", "share")),
    (r"\bat the same time\b|\bat once\b|\bin one go\b", ("multiple", "batch")),
    (r"\bright now\b|\bat the moment\b", ("current",)),
    (r"\bhow much (does|do|is|are|would|will)\b", ("price", "cost")),
)

OPENINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"(what|which)\b.{0,60}\b(are|is|exist|have|has)\b", ("list", "get")),
    (r"(who)\b", ("user", "member")),
    (r"(where)\b", ("location", "find")),
)
"""The same for the beginning of a sentence."""

COURTESY = (
    r"\W{0,8}("
    r"hi|hey|hello|dear|good (morning|afternoon|evening|day)|greetings|thanks?|many thanks|cheers|sorry|apologies"
    r"|let me know|feel free|looking forward|no (rush|hurry|worries)|please (keep|be|feel|note)"
    r"|i(('d| would) (really )?(be|appreciate)|('m| am|'ve| have| was)\b)|we('re| are|'ve| have)\b|my\b|the team\b"
    r"|as (we|i|you|discussed)\b|so,? (i|we|my|our)\b|if (there|you|any|that|it|this)\b|it('s| is| was)\b|this is\b"
    r"|just so\b|btw\b|by the way\b|not sure\b|honestly\b|basically,? (i|we)\b"
    r")"
)
"""How a sentence begins that greets, thanks, or tells the circumstances of what is asked."""

"""What in a definition is an attack, or may be one: the rules, as data, and how they are applied to all of its texts.
Pure.

- A rule is a row: its code (a key of `findings.RULES`), words without which the pattern is not tried, and the pattern.
  Texts come in lower case, with single spaces, and letters of other alphabets as those that they are taken for.
- Rules are few and narrow: real servers write "always call X first" and take passwords of files. Who is flagged for
  nothing teaches people to approve everything.
- A pattern begins with fixed texts and has bounded gaps, so it is linear; it spans `OVERLAP_CHARS` at most.
- What a rule does not know is not found. These findings help a reader; what protects is that a change is held.
- Patterns are tried in pieces of `PIECE_CHARS`, as other threads cannot run meanwhile. More text than `MAX_CHARS` is
  not read, which is a finding itself.

Sources: the attacks published as tool poisoning, shadowing, line jumping and hidden text (Invariant Labs 2025-04, Trail
of Bits 2025-04 and 2025-07).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from actors.catalogue.findings import LOOKALIKES, Finding, found, is_confusable, levels, quote, text_findings

OVERLAP_CHARS: Final = 400


class Rule(msgspec.Struct, frozen=True):
    """`needles`: the pattern is tried only on a text that has one of each group."""

    code: str
    needles: tuple[tuple[str, ...], ...]
    pattern: re.Pattern[str]

    def may_fit(self, read: str) -> bool:
        """Say whether a text has one needle of each group; loops, as nearly every text is done with after this."""
        for group in self.needles:
            for needle in group:
                if needle in read:
                    break
            else:
                return False
        return True


def _rule(code: str, *parts: str) -> Rule:
    """Return a rule: groups of needles between `;`, and the pattern last."""
    *needles, pattern = parts
    return Rule(code, tuple(tuple(group.split(";")) for group in needles), re.compile(pattern))


_APOSTROPHE: Final = "['\u2019]"
_THE_USER: Final = r"(?:the (?:human )?user|the human|the person|anyone|anybody|them about this)\b"
_TELL: Final = (
    r"(?:tell|telling|mention|mentioning|inform|informing|notify|notifying|alert|alerting|reveal|revealing"
    r"|disclose|disclosing|warn|warning)"
)
_USE: Final = r"(?:use|using|call|calling|invoke|invoking|run|running)"
_KEPT: Final = (
    r"(?:conversation|chat history|system prompt|previous messages|environment variables|api keys?|passwords?"
    r"|access tokens?|credentials)\b"
)
_SECRET_FILES: Final = (
    r"(?:\.ssh/|id_rsa|id_ed25519|id_ecdsa|\.aws/credentials|\.netrc|\.git-credentials|/etc/shadow|/etc/passwd"
    r"|\.kube/config|\.cursor/mcp\.json|claude_desktop_config\.json|\.gnupg)"
)

TEXT_RULES: Final = (
    _rule(
        "text-instructs",
        "ignore;disregard;forget;override",
        "previous;prior;earlier;above;preceding;existing;system",
        r"(?:ignore|disregard|forget|override) (?:any |all |the |of |your |my |other ){0,4}"
        r"(?:previous|prior|earlier|above|preceding|existing|system)"
        r" (?:\w{1,20} ){0,2}(?:instruction|prompt|rule|guideline|message|direction|context)",
    ),
    _rule(
        "text-instructs",
        "<",
        "important>;system>;instruction>;instructions>;secret>;critical>;hidden>;reminder>;assistant>",
        r"<(?:important|system|instructions?|secret|critical|hidden|system-reminder|assistant)>",
    ),
    _rule(
        "text-instructs",
        "[system];[inst];[/inst];<<sys>>;<|im_start|>",
        r"(?:\[system\]|\[/?inst\]|<<sys>>|<\|im_start\|>)",
    ),
    _rule(
        "text-instructs",
        "any tool;any other tool;another tool;every tool;every other tool;all tools;all other tools",
        rf"(?:before|after|whenever|when|each time|every time) (?:you )?{_USE} (?:any|another|every|all)(?: other)?"
        r" tools?,? (?:\w{1,20},? ){0,4}(?:must|always|first|call|read|send|include|pass|run)",
    ),
    _rule(
        "text-instructs",
        "you are now;you must now act;new instructions;from now on",
        r"(?:you are now (?:in |an? |the )|you must now act as|from now on,? you (?:are|must|will)"
        r"|(?:follow|obey|execute) (?:these|the following) new instructions)",
    ),
    _rule(
        "text-conceals",
        "tell;mention;inform;notify;alert;reveal;disclos;warn",
        "user;human;person;anyone;anybody;about this",
        "not ;n't;n\u2019t;never;without",
        rf"(?:do not|don{_APOSTROPHE}t|never|must not|should not|without) (?:ever |first )?{_TELL}"
        rf"(?: (?:this|it|that|any of this|anything))?(?: to)? {_THE_USER}",
    ),
    _rule(
        "text-conceals",
        "from the user;from the human;secretly;silently ;covertly",
        r"(?:hide|conceal|keep) (?:this|it|that|these steps) (?:\w{1,20} ){0,3}from (?:the user|the human)"
        r"|(?:secretly|covertly) (?:send|include|read|copy|forward|pass|collect)"
        r"|silently (?:send|forward|copy|upload|exfiltrate)",
    ),
    _rule(
        "text-exfiltrates",
        ".ssh/;id_rsa;id_ed25519;id_ecdsa;.aws/cred;.netrc;.git-cred;/etc/shadow;/etc/passwd;.kube/config;mcp.json"
        ";claude_desktop;.gnupg",
        r"(?:read|open|cat|load|access|include|pass|send|copy|attach|get|provide|contents?) [^\x01]{0,40}"
        + _SECRET_FILES,
    ),
    _rule(
        "text-exfiltrates",
        "conversation;chat history;system prompt;previous messages;environment variables;api key;password"
        ";access token;credentials",
        "send;forward;upload;post;copy;leak;transmit;exfiltrate;append;include",
        r"(?:send|forward|upload|post|copy|leak|transmit|exfiltrate|append|include) "
        rf"(?:(?:all|any|the|your|their|its|users?{_APOSTROPHE}s?|full|entire|whole|complete|of|every|our|this|previous)"
        r" ){1,5}" + _KEPT,
    ),
)
"""What a text says that is not for a reader who wants to call the tool."""

PARAMETER_RULES: Final = (
    _rule(
        "schema-secrets",
        "your;user",
        "password;passphrase;private key;seed phrase;ssh key;credit card;cookies;secret key",
        rf"(?:your|(?:the |current )?users?{_APOSTROPHE}?s?) (?:\w{{1,20}} ){{0,2}}"
        r"(?:password|passphrase|private key|seed phrase|ssh key|credit card|cookies|secret key)\b"
        r"(?! (?:policy|hint|reset))",
    ),
    _rule(
        "schema-context",
        "conversation;chat history;system prompt;verbatim;other tool;previous tool;earlier tool;your instructions"
        ";chain of thought;reasoning so far",
        r"(?:(?:entire|full|whole|complete|previous|all of the|verbatim) (?:\w{1,20} ){0,2}"
        r"(?:conversation|chat history|system prompt)"
        rf"|users?{_APOSTROPHE}?s? (?:\w{{1,20}} ){{0,3}}(?:message|prompt|request|question) verbatim"
        r"|(?:results?|outputs?|responses?|contents?) (?:of|from) (?:any |all |every |the )?"
        r"(?:other|previous|earlier) tools?\b"
        r"|your (?:system prompt|instructions|chain of thought|reasoning so far))",
    ),
)
"""What the description of a parameter asks for."""

NAME_RULES: Final = {
    "schema-secrets": re.compile(
        r"(?:.{1,30}_)?(?:private_key|secret_key|secret_access_key|ssh_key|ssh_private_key|seed_phrase|recovery_phrase"
        r"|mnemonic(?:_phrase)?|master_password|credit_card(?:_number)?|card_number|cvv|cvc|ssn|social_security_number"
        r"|environment_variables|browser_cookies|session_cookies?|users?_password|login_password|account_password"
        r"|keychain|wallet_key)"
    ),
    "schema-context": re.compile(
        r"(?:full_|entire_|whole_|complete_|all_|prior_|previous_|user_)?(?:conversation|chat|message|dialog|dialogue)"
        r"_(?:history|log|transcript|so_far|context)"
        r"|(?:full|entire|whole|complete)_(?:conversation|chat|context|transcript)"
        r"|(?:previous|prior|earlier|other|all)_(?:messages|tool_results?|tool_outputs?|tool_responses?|tool_calls)"
        r"|(?:results?|outputs?)_of_(?:other|previous|all)_tools?|tool_results?|tool_outputs?|chain_of_thought"
        r"|(?:your|model|assistant|llm)_(?:system_prompt|instructions)"
    ),
}
"""What the name of a parameter asks for, written with `_` between its words."""

AS_TEXT: Final = repr(
    [
        *((rule.code, rule.needles, rule.pattern.pattern) for rule in TEXT_RULES + PARAMETER_RULES),
        *((code, pattern.pattern) for code, pattern in NAME_RULES.items()),
    ]
)
"""All rules, to be told from those of another version."""


PIECE_CHARS: Final = 8 * 1024
MAX_CHARS: Final = 256 * 1024
_BETWEEN: Final = "\x01"
"""Between two texts: no pattern spans it."""
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")
_FOREIGN: Final = re.compile("[" + "".join(map(chr, LOOKALIKES)) + "]")
_MAX_NAME_CHARS: Final = 100


def findings_of(definition: dict[str, Any]) -> Iterator[Finding]:
    """Yield what is suspicious about a definition that was decoded, each code once. Raises nothing."""
    told: dict[str, Finding] = {}
    for finding in _findings(definition):
        told.setdefault(finding.code, finding)
    yield from told.values()


def alarms_of(definition: dict[str, Any]) -> tuple[str, ...]:
    """Return the codes of what is suspicious about a definition."""
    return tuple(sorted(finding.code for finding in findings_of(definition)))


def _findings(definition: dict[str, Any]) -> Iterator[Finding]:
    said, members = _strings(definition)
    text = "\n".join(said)
    if len(text) > MAX_CHARS:
        yield found("text-unread", f"over {MAX_CHARS}")
        return
    yield from text_findings([("the definition", text)])
    name = definition.get("name")
    if isinstance(name, str) and is_confusable(name):
        yield found("name-confusable", quote(name))
    read = _as_it_looks(_BETWEEN.join(said))
    for rule, matched in _matches(TEXT_RULES, read):
        yield found(rule.code, matched)
    asks = any(_matches(PARAMETER_RULES, read))
    for name, described in _parameters(definition) if asks or any(map(_asked_by, members)) else ():
        if code := _asked_by(name):
            yield found(code, quote(name))
        for rule, _ in _matches(PARAMETER_RULES, _as_it_looks(described)) if asks else ():
            yield found(rule.code, quote(name))


def _strings(value: Any) -> tuple[list[str], set[str]]:
    """Return each string in a JSON value, and the names of members, which are among them.

    A loop, as it is done for each tool.
    """
    said: list[str] = []
    members: set[str] = set()
    waiting = [value]
    while waiting:
        level = waiting.pop()
        if type(level) is dict:
            members.update(level)
            level = level.values()
        for child in level:
            if type(child) is str:
                said.append(child)
            elif type(child) is dict or type(child) is list:
                waiting.append(child)
    said += sorted(members)
    return said, members


def _parameters(definition: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and description of each property of the input schema, however deep."""
    for level, _ in levels(definition.get("inputSchema")):
        properties = level.get("properties") if isinstance(level, dict) else None
        if isinstance(properties, dict):
            for name, value in properties.items():
                described = value.get("description") if isinstance(value, dict) else None
                yield name, described if isinstance(described, str) else ""


@lru_cache(maxsize=4096)
def _asked_by(parameter: str) -> str:
    """Return the code of what a parameter asks for by its name; empty for nothing."""
    if len(parameter) > _MAX_NAME_CHARS:
        return ""
    asked = _NO_WORD.sub("_", _CAMEL.sub("_", parameter).lower()).strip("_")
    return next((code for code, pattern in NAME_RULES.items() if pattern.fullmatch(asked)), "")


def _as_it_looks(text: str) -> str:
    read = " ".join(text.lower().split())
    return read if read.isascii() or not _FOREIGN.search(read) else read.translate(LOOKALIKES)


def _matches(rules: tuple[Rule, ...], read: str) -> Iterator[tuple[Rule, str]]:
    """Yield each rule that fits, with what it fits, quoted."""
    for rule in rules:
        if rule.may_fit(read):
            for start in range(0, len(read), PIECE_CHARS - OVERLAP_CHARS):
                if match := rule.pattern.search(read, start, start + PIECE_CHARS):
                    yield rule, quote(match[0])
                    break

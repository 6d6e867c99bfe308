"""What is written in a way of its own, and so says what it is: the key of a ticket, the name of a channel. Data.

People name the thing and leave out what it is: "PLAT-2231 is stuck", "what's new in #deploys". Written for this project
from what trackers, hosts of code, chats and clouds say of their names; no list was copied. The abbreviations before the
names of Azure resources are those that Microsoft's Cloud Adoption Framework recommends.
"""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    """What is written so: an `example`, and its `pattern`, which begins where a word does and is bounded, as a query is
    anybody's; the `hints` that it gives (words with weights, 0..1), and a `noun` that stands for it where meanings are
    compared.
    """

    example: str
    pattern: str
    hints: tuple[tuple[str, float], ...]
    noun: str


_STANDARDS = "AES|BASE|COVID|CVE|DIN|EN|FIPS|GPT|HTTP|IEEE|INT|ISO|MD|PEP|RFC|SHA|TLS|USB|UTF"
"""Before a hyphen and a number these make no key of a ticket."""

SHAPES: dict[str, Shape] = {
    "ticket": Shape(
        "PLAT-2231",
        rf"(?!(?:{_STANDARDS})-)[A-Z][A-Z0-9]{{1,9}}-\d{{1,6}}\b(?!-)",
        (("issue", 0.8), ("jira", 0.5)),
        "jira issue",
    ),
    "merge": Shape("!1207", r"(?<!!)!\d{1,6}\b", (("merge", 0.8), ("request", 0.6)), "merge request"),
    "issue": Shape("#4711", r"(?<![\#&/])\#\d{1,6}\b", (("issue", 0.4), ("pull", 0.3)), "issue"),
    "channel": Shape(
        "#deploys",
        r"(?<![\#&/])\#(?=[a-z])(?![0-9a-f]{3}(?:[0-9a-f]{3})?\b)[a-z][\w\-]{1,40}",
        (("channel", 0.8),),
        "slack channel",
    ),
    "paper": Shape(
        "1706.03762",
        r"(?<![.$])(?:arXiv:)?\d\d(?:0[1-9]|1[0-2])\.\d{4,5}\b(?![.%])",
        (("paper", 0.8), ("arxiv", 0.6)),
        "arxiv paper",
    ),
    "phone": Shape(
        "+44 7700 900123", r"(?<!\+)\+\d[\d()\-\ ]{7,18}\d\b", (("phone", 0.6), ("sms", 0.4)), "phone number"
    ),
    "bucket": Shape("s3://logs/2026", r"s3://[\w./\-]{1,200}", (("s3", 0.8), ("bucket", 0.5)), "s3 bucket"),
    "record": Shape(
        "recXk29fLq0bQ7d1a", r"rec[A-Za-z0-9]{14}\b", (("record", 0.8), ("airtable", 0.6)), "airtable record"
    ),
    "group": Shape(
        "rg-prod",
        r"(?<!-)rg-[a-z][\w\-]{1,60}",
        (("resource", 0.6), ("group", 0.6), ("azure", 0.5)),
        "azure resource group",
    ),
    "vault": Shape(
        "kv-prod",
        r"(?<!-)kv-[a-z][\w\-]{1,60}",
        (("keyvault", 0.9), ("vault", 0.6), ("azure", 0.5)),
        "azure key vault",
    ),
    "machine": Shape(
        "vm-build-03", r"(?<!-)vm-[a-z][\w\-]{1,60}", (("vm", 0.8), ("azure", 0.5)), "azure virtual machine"
    ),
    "key": Shape(
        "signup:9931",
        r"(?<![:/.])(?!https?:|arn:)[a-z][\w\-]{1,30}:(?:\d{3,}|\d{1,2}(?=:)|\*|[\w\-]{1,40}:)[\w:*\-]{0,60}",
        (("key", 0.4), ("redis", 0.4)),
        "redis key",
    ),
}
"""Shapes by name: what is a `ticket` here is `#ticket` in a rule of paraphrase."""

"""The reference of all metrics, made of the table of families."""

from __future__ import annotations

from supervisor.metrics.families import FAMILIES, Family
from supervisor.reference.configuration import bullet


def metric_list() -> str:
    """Return an item for each metric, by subject."""
    lines: list[str] = []
    for title, families in FAMILIES.items():
        lines += [f"### {title}\n", *(bullet(_described(family)) for family in families), ""]
    return "\n".join(lines).rstrip("\n")


def _described(family: Family) -> str:
    labels = f", by {', '.join(f'`{label}`' for label in family.labels)}" if family.labels else ""
    bounds = f" Up to {', '.join(f'{bound:g}' for bound in family.buckets)} s." if family.buckets else ""
    return f"**`{family.name}`** ({family.kind}{labels}): {family.help}{bounds}"

"""Equal entries of launches are one; how many different ones are looked at is bounded."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from actors.catalogue.lists import tool
from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Entry
from actors.registry.sharing import MAX_VARIANTS, Variants


def offering(*names: str, read_at: float = 0.0) -> Offer:
    raws = (msgspec.Raw(msgspec.json.encode({"name": name, "inputSchema": {}})) for name in names)
    return Offer(tools=tuple(map(tool, raws)), read_at=read_at)


def entry(*names: str, available: bool = True) -> Entry:
    return Entry.make("forge", "stdio", offering(*names), available=available)


class Registered:
    """Entries of launches, as the registry has them."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.variants = Variants(self.entries)

    def put(self, launch: str, made: Entry) -> Entry:
        shared = self.entries[launch] = self.variants.share(launch, made)
        return shared


def test_equal_entries_of_launches_are_one_whenever_they_were_read() -> None:
    registered = Registered()
    first = registered.put("forge~1", entry("read"))
    assert registered.put("forge~2", entry("read")) is first
    assert registered.put("forge~3", entry("write")) is not first
    assert registered.variants.find("forge~4", offering("read", read_at=7.0)) is first
    assert registered.put("forge~4", entry("read", available=False)) is not first
    assert registered.variants.find("forge~5", offering("delete")) is None
    assert registered.variants.find("diary~1", offering("read")) is None


def test_what_all_share_is_its_own_and_its_launches_may_be_equal_to_it() -> None:
    registered = Registered()
    launch = registered.put("forge~1", entry("read"))
    usual = registered.put("forge", entry("read"))
    assert usual is not launch
    assert registered.put("forge~2", entry("read")) is usual


def test_what_was_forgotten_or_is_another_one_by_now_stands_for_nothing() -> None:
    registered = Registered()
    first = registered.put("forge~1", entry("read"))
    del registered.entries["forge~1"]
    assert registered.put("forge~2", entry("read")) is not first
    registered.entries["forge~2"] = replace(registered.entries["forge~2"], available=False)
    assert registered.put("forge~3", entry("read")).available
    for launch in ("forge~1", "forge~2", "forge~3", "forge~3", "diary~1"):
        registered.variants.forget(launch)
    assert registered.variants.find("forge~4", offering("read")) is None


def test_so_many_different_ones_are_looked_at() -> None:
    registered = Registered()
    first = registered.put("forge~0", entry("read"))
    for number in range(1, MAX_VARIANTS):
        registered.put(f"forge~{number}", entry(f"read_{number}"))
    assert registered.put("forge~x", entry("read")) is first
    registered.put("forge~y", entry("write"))
    assert registered.put("forge~z", entry("read")) is not first

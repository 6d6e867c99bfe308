"""The arguments for bwrap: nothing that is not listed is written or shown, and what bwrap says is understood."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.transport.stdio.sandbox import (
    PRIVATE_TMP,
    SYSTEM,
    Bound,
    Sandbox,
    Sight,
    arguments,
    is_within,
    objection_to_place,
    trouble_of,
    wrap,
)

NAMES = st.text(st.sampled_from("ab -~é"), min_size=1, max_size=3)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
SIGHTS = st.builds(
    Sight,
    bound=st.lists(st.builds(Bound, PATHS, PATHS, st.booleans()), max_size=5).map(tuple),
    home=PATHS,
    network=st.booleans(),
)


def binds(words: list[str]) -> list[tuple[str, str, str]]:
    """Option, place and path of all that is bound, in its order."""
    options = {"--bind", "--ro-bind", "--ro-bind-try", "--dev-bind"}
    return [(word, *words[at + 1 : at + 3]) for at, word in enumerate(words) if word in options]  # type: ignore[misc]  # three words each


@given(SIGHTS)
def test_only_what_is_listed_is_bound_and_only_what_is_listed_as_writable_is_written(sight: Sight) -> None:
    bound = binds(arguments(sight))
    listed = {(each.place, each.at) for each in sight.bound}
    assert {(place, at) for option, place, at in bound if option == "--bind"} == {
        (each.place, each.at) for each in sight.bound if each.writable
    }
    others = {(option, place, at) for option, place, at in bound if (place, at) not in listed}
    assert all(
        option == "--ro-bind-try" and place == at and (place in SYSTEM or place.startswith("/etc/"))
        for option, place, at in others
    )


@given(SIGHTS)
def test_what_is_nearest_decides_who_writes(sight: Sight) -> None:
    """What lies deeper comes later, and covers what is above it; where both are listed, it is written."""
    order = [at for option, _, at in binds(arguments(sight)) if option in ("--bind", "--ro-bind")]
    assert not any(is_within(before, after) and before != after for before, after in pairwise(order))
    last = {at: option for option, _, at in binds(arguments(sight))}
    writable = {each.at for each in sight.bound if each.writable}
    assert all((last[each.at] == "--bind") == (each.at in writable) for each in sight.bound)


@given(SIGHTS)
def test_the_rest_is_private_and_the_root_is_sealed_in_the_end(sight: Sight) -> None:
    words = arguments(sight)
    assert ("--unshare-net" in words) is not sight.network
    assert {"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"} <= {*words}
    assert words[words.index("--cap-drop") + 1] == "ALL"
    assert words.index("--tmpfs") < words.index("--ro-bind-try")
    assert words[-4:] == ["--remount-ro", "/", "--chdir", PRIVATE_TMP]


@given(st.lists(PATHS, min_size=1), st.dictionaries(NAMES, NAMES))
def test_a_program_gets_its_arguments_and_its_environment(argv: list[str], environment: dict[str, str]) -> None:
    words, outside = wrap("/usr/bin/bwrap", Sight(), argv, environment)
    assert words[-len(argv) :] == argv
    assert outside == environment


def test_what_loads_code_into_programs_does_not_reach_bwrap() -> None:
    words, outside = wrap("/b", Sight(), ["/p"], {"LD_PRELOAD": "/evil.so", "LANG": "C", "TMPDIR": "/var/tmp"})
    assert outside == {"LANG": "C", "TMPDIR": "/var/tmp"}
    at = words.index("--setenv")
    assert words[at : at + 6] == ["--setenv", "LD_PRELOAD", "/evil.so", "--setenv", "TMPDIR", PRIVATE_TMP]


@pytest.mark.parametrize("path", ["/", "/home", "/home/ada", "/proc", "/proc/1", "/dev/shm"])
def test_what_would_show_too_much_is_no_place_for_a_sandbox(path: str) -> None:
    assert objection_to_place(path, "/home/ada")


@pytest.mark.parametrize("path", ["/home/ada/x", "/home/adam", "/srv", "/process"])
def test_what_is_a_place_for_a_sandbox(path: str) -> None:
    assert objection_to_place(path, "/home/ada") == ""


def test_what_is_denied_is_told_in_words() -> None:
    assert Sandbox().denial("") == "no network; writes only in a /tmp of its own; reads nothing but system files"
    assert Sandbox(read=("/r",), write=("/w",), network=True).denial("/c") == (
        "writes only in /c, /w, a /tmp of its own; reads nothing but system files and /r, /c, /w"
    )


@pytest.mark.parametrize(
    ("said", "reason", "hinted", "scarce"),
    [
        ("bwrap: No permissions to create a new namespace, likely\n", "No permissions to create", True, False),
        ("bwrap: setting up uid map: Permission denied\n", "setting up uid map: Permission denied", True, False),
        ("noise\nbwrap: Can't find source path /x: No such file\n", "Can't find source path /x", False, False),
        ("bwrap: Creating new namespace failed: Resource temporarily unavailable", "Creating", False, True),
        ("sh: not found\n", "sh: not found", False, False),
        ("", "bwrap ended without a word", False, False),
    ],
)
def test_what_bwrap_says(said: str, reason: str, hinted: bool, scarce: bool) -> None:
    trouble = trouble_of(said)
    assert trouble.reason.startswith(reason)
    assert (bool(trouble.hint), trouble.scarce) == (hinted, scarce)

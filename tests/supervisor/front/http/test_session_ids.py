"""Sealed session ids: what is sealed comes back, everything else is refused with one error."""

from __future__ import annotations

import string
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actors.principal import LOCAL
from supervisor.front.http.sessions import (
    MAX_CAPABILITIES_BYTES,
    MAX_PRINCIPAL_BYTES,
    MAX_TOKEN_CHARS,
    SealBroken,
    Sealer,
    SessionClaims,
    _mac,
)
from supervisor.front.messages import MAX_NAME_BYTES

KEY = bytes(range(32))
NOW = 1_800_000_000.0
TOKEN_ALPHABET = string.ascii_letters + string.digits + "-_."


def claims(**changes: Any) -> SessionClaims:
    plain = SessionClaims(
        nonce=bytes(16),
        version="2025-11-25",
        client_name="inspector",
        client_version="1.2.3",
        capabilities=msgspec.Raw(b'{"roots":{"listChanged":true}}'),
        principal=LOCAL,
        issued_at=NOW,
        expires_at=NOW + 60,
    )
    return msgspec.structs.replace(plain, **changes)


def resealed(**changes: Any) -> SessionClaims:
    token = Sealer(KEY).seal(claims(**changes))
    assert len(token) <= MAX_TOKEN_CHARS
    assert all("\x21" <= character <= "\x7e" for character in token)
    return Sealer(KEY).unseal(token, NOW)


def test_sealed_claims_come_back_unchanged() -> None:
    assert resealed() == claims()


@given(
    name=st.text(max_size=300),
    client_version=st.text(max_size=300),
    capabilities=st.dictionaries(
        st.text(max_size=20), st.recursive(st.booleans() | st.integers(), st.lists), max_size=9
    ),
)
def test_whatever_a_client_says_of_itself_fits(name: str, client_version: str, capabilities: dict[str, Any]) -> None:
    raw = msgspec.Raw(msgspec.json.encode(capabilities)) if all_encodable(capabilities) else msgspec.Raw(b"{}")
    found = resealed(client_name=name, client_version=client_version, capabilities=raw)
    assert name.startswith(found.client_name) or "?" in found.client_name
    assert isinstance(msgspec.json.decode(found.capabilities), dict)


def all_encodable(value: dict[str, Any]) -> bool:
    try:
        msgspec.json.encode(value)
    except (OverflowError, UnicodeEncodeError):
        return False
    return True


def test_the_largest_claims_still_fit_into_the_limit() -> None:
    big = msgspec.json.encode({"experimental": "x" * (MAX_CAPABILITIES_BYTES - 19)})
    assert len(big) == MAX_CAPABILITIES_BYTES
    found = resealed(
        nonce=bytes([255]) * 32,
        version="v" * 32,
        client_name="\x00" * 500,
        client_version="é" * 500,
        capabilities=msgspec.Raw(big),
        principal="p" * MAX_PRINCIPAL_BYTES,
        issued_at=NOW + 0.123456,
        expires_at=NOW + 59.123456,
    )
    assert bytes(found.capabilities) == big
    assert len(msgspec.json.encode(found.client_name)) - 2 <= MAX_NAME_BYTES


def test_too_many_capabilities_are_reduced_to_the_known_ones() -> None:
    capabilities = {
        "sampling": {"tools": {"why": "x" * 2000}, "unknown": {}},
        "elicitation": {},
        "roots": {"listChanged": True},
        "tasks": {"requests": {"elicitation": {"create": {}}}, "list": "odd"},
        "experimental": {"x": 1},
    }
    found = resealed(capabilities=msgspec.Raw(msgspec.json.encode(capabilities)))
    assert msgspec.json.decode(found.capabilities) == {
        "sampling": {"tools": {}},
        "elicitation": {},
        "roots": {"listChanged": True},
        "tasks": {"requests": {"elicitation": {"create": {}}}, "list": {}},
    }


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"null", b"{", b'{"x":"\\ud800"}', b"\xff", b'{"x":' + b"[" * 100_000, b'{"x":%d}' % 2**80]
)
def test_capabilities_that_are_no_usable_object_count_as_none(raw: bytes) -> None:
    capabilities = msgspec.json.decode(resealed(capabilities=msgspec.Raw(raw)).capabilities)
    assert capabilities in ({}, {"x": 2**80}, {"x": float(2**80)})


def test_deeply_nested_capabilities_are_reduced() -> None:
    raw = b'{"roots":{},"x":' + b"[" * 600 + b"]" * 600 + b"}"
    assert bytes(resealed(capabilities=msgspec.Raw(raw)).capabilities) == b'{"roots":{}}'


def test_half_a_surrogate_pair_in_a_name_is_replaced() -> None:
    assert resealed(client_name="a\ud800b").client_name == "a?b"


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": bytes(15)},
        {"nonce": bytes(33)},
        {"version": "v" * 33},
        {"principal": "p" * 257},
        {"principal": "\ud800"},
    ],
)
def test_what_we_say_ourselves_is_never_cut_but_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"nonce|version|principal|surrogates"):
        Sealer(KEY).seal(claims(**changes))


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Sealer(b"short")


@given(place=st.integers(min_value=0), character=st.sampled_from(TOKEN_ALPHABET + "=+/ \n\x00é"))
@example(place=-1, character="A")
def test_any_flipped_character_breaks_the_seal(place: int, character: str) -> None:
    token = Sealer(KEY).seal(claims())
    place %= len(token)
    if token[place] == character:
        character = "~"
    with pytest.raises(SealBroken):
        Sealer(KEY).unseal(token[:place] + character + token[place + 1 :], NOW)


def test_every_single_character_of_a_token_is_covered() -> None:
    token = Sealer(KEY).seal(claims())
    for place, character in enumerate(token):
        flipped = "A" if character != "A" else "B"
        with pytest.raises(SealBroken):
            Sealer(KEY).unseal(token[:place] + flipped + token[place + 1 :], NOW)


@given(garbage=st.one_of(st.text(max_size=200), st.text(alphabet=TOKEN_ALPHABET, max_size=200)))
@example(garbage="")
@example(garbage=".")
@example(garbage="\ud800")
@example(garbage="A" * 100_000)
def test_garbage_raises_nothing_but_a_broken_seal(garbage: str) -> None:
    with pytest.raises(SealBroken):
        Sealer(KEY).unseal(garbage, NOW)


@given(extra=st.text(alphabet=TOKEN_ALPHABET + "=", min_size=1, max_size=5), before=st.booleans())
def test_a_token_with_something_added_is_another_token(extra: str, before: bool) -> None:
    token = Sealer(KEY).seal(claims())
    with pytest.raises(SealBroken):
        Sealer(KEY).unseal(extra + token if before else token + extra, NOW)


def test_a_token_of_another_key_is_refused() -> None:
    with pytest.raises(SealBroken):
        Sealer(KEY).unseal(Sealer(KEY[::-1]).seal(claims()), NOW)


def test_the_daemons_key_itself_does_not_seal_sessions() -> None:
    sealer = Sealer(KEY)
    body = sealer.seal(claims()).partition(".")[0]
    with pytest.raises(SealBroken):
        sealer.unseal(f"{body}.{_mac(KEY, body, '')}", NOW)


@pytest.mark.parametrize("body", ["", "e30", "!!!!", "A", "AAAA"])
def test_claims_of_another_shape_are_refused_even_with_a_good_seal(body: str) -> None:
    sealer = Sealer(KEY)
    with pytest.raises(SealBroken):
        sealer.unseal(f"{body}.{_mac(sealer._keys[0], body, '')}", NOW)


def test_a_token_expires_at_its_time() -> None:
    token = Sealer(KEY).seal(claims())
    assert Sealer(KEY).unseal(token, NOW + 59.9).principal == LOCAL
    for late in (NOW + 60, NOW + 1e9):
        with pytest.raises(SealBroken):
            Sealer(KEY).unseal(token, late)


def test_while_a_key_is_changed_ids_of_the_older_one_are_good_and_new_ones_are_of_the_newest() -> None:
    older, newer = Sealer(KEY), Sealer(bytes(32), KEY)
    assert newer.unseal(older.seal(claims()), NOW) == claims()
    with pytest.raises(SealBroken):
        older.unseal(newer.seal(claims()), NOW)
    with pytest.raises(SealBroken):
        Sealer(bytes(32)).unseal(older.seal(claims()), NOW)


def test_an_id_says_in_which_process_of_a_fleet_its_session_lives() -> None:
    sealer, alone = Sealer(KEY), claims(nonce=b"n" * 16)
    here = claims(nonce=b"n" * 16, life="0123456789abcdef")
    assert sealer.unseal(sealer.seal(here), NOW).life == "0123456789abcdef"
    assert "0123456789abcdef" not in sealer.seal(alone)
    assert sealer.unseal(sealer.seal(alone), NOW).life == ""

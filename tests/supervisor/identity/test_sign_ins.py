"""A cookie stands for a credential, for some hours, and for so many browsers."""

from __future__ import annotations

import pytest

from supervisor.identity import requester as module
from supervisor.identity.people import Person
from supervisor.identity.requester import LIFE_S, MAX_OF_ONE, Requester, SignIns
from supervisor.identity.tokens import SavedToken


def requester(user: str, digest: bytes = b"d") -> Requester:
    return Requester(
        person=Person(user=user), credential="c", token=SavedToken(digest=digest, user=user, role="member")
    )


def test_whoever_signs_in_is_known_until_the_time_is_over_or_they_sign_out() -> None:
    ins, ana = SignIns(), requester("ana")
    cookie = ins.open(ana, 0.0)
    assert ins.find(cookie, LIFE_S - 1) is ana
    assert ins.find(cookie, LIFE_S) is None
    other = ins.open(ana, LIFE_S)
    ins.close(other)
    assert ins.find(other, LIFE_S) is None
    assert ins.find("", 0.0) is ins.find("\udce4" * 9999, 0.0) is None


def test_a_token_that_is_revoked_signs_out_its_browsers_and_no_others() -> None:
    ins = SignIns()
    first, second = ins.open(requester("ana", b"1"), 0.0), ins.open(requester("ana", b"2"), 0.0)
    ins.revoke(b"1")
    assert ins.find(first, 1.0) is None
    assert ins.find(second, 1.0) is not None


def test_so_many_browsers_are_signed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    ins = SignIns()
    cookies = [ins.open(requester("ana"), 0.0) for _ in range(MAX_OF_ONE + 1)]
    assert [ins.find(cookie, 1.0) is None for cookie in cookies] == [True] + [False] * MAX_OF_ONE
    monkeypatch.setattr(module, "MAX_OPEN", MAX_OF_ONE)
    ben = ins.open(requester("ben"), 0.0)
    assert ins.find(ben, 1.0) is not None
    assert ins.find(cookies[1], 1.0) is None

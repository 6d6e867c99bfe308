"""What a server wants that refuses a request."""

from __future__ import annotations

import pytest

from supervisor.oauth.issuers.metadata import MAX_SCOPES, Challenge, challenge_of, words_of

PLACE = "https://a.example/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("headers", "challenge"),
    [
        ([], Challenge()),
        (["Basic realm=x"], Challenge()),
        (["Bearer"], Challenge()),
        ([f'Bearer resource_metadata="{PLACE}"'], Challenge(resource_metadata=PLACE)),
        ([f"bearer resource_metadata={PLACE} , scope=one"], Challenge(resource_metadata=PLACE, scope=("one",))),
        (
            ["Negotiate", 'Basic realm="a, b", Bearer error="invalid_token", scope="a b a", Digest scope="c"'],
            Challenge(error="invalid_token", scope=("a", "b")),
        ),
        (['Bearer error="insufficient_scope", error="other"'], Challenge(error="insufficient_scope")),
        ([r'Bearer scope="a\"b \c"'], Challenge(scope=("c",))),
        (["Bearers scope=a"], Challenge()),
    ],
)
def test_the_first_bearer_challenge_counts(headers: list[str], challenge: Challenge) -> None:
    assert challenge_of(headers) == challenge
    assert challenge_of(headers).insufficient is (challenge.error == "insufficient_scope")


def test_a_scope_has_words_of_the_standard_and_not_too_many() -> None:
    assert words_of('read  write "quoted" ü back\\slash read') == ("read", "write")
    assert len(words_of(" ".join(f"s{number}" for number in range(1000)))) == MAX_SCOPES
    assert challenge_of(["x" * 9000 + ", Bearer scope=a"]) == Challenge()

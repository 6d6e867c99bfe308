"""What plugins ask: each kind that is built is read back as that kind, and an answer is what fits it, or none."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.agreement.capabilities import ELICIT
from actors.protocol.asking import forms
from actors.protocol.asking.questions import refusal
from supervisor.plugins.questions import (
    ConfirmationInput,
    FileInput,
    FormInput,
    GivenAnswer,
    MultiselectInput,
    QuestionInput,
    SecretInput,
    SelectInput,
    TextInput,
    UserAnswer,
    UserQuestion,
)

WORDS = st.text("abcdefgh ", max_size=12)
"""No word of a secret can be made of them."""
NAMES = st.text("abcdefgh", min_size=1, max_size=8)
ABOUT: dict[str, Any] = {"title": WORDS, "description": WORDS, "required": st.booleans()}
VALUES = st.lists(st.text(max_size=8), min_size=1, max_size=6, unique=True)
CHOICES = VALUES.map(tuple) | VALUES.flatmap(lambda values: st.fixed_dictionaries(dict.fromkeys(values, WORDS)))
SINGLE: dict[str, st.SearchStrategy[QuestionInput[Any]]] = {
    "confirmation": st.builds(ConfirmationInput, **ABOUT),
    "text": st.builds(TextInput, min_chars=st.integers(0, 3), max_chars=st.none() | st.integers(3, 9), **ABOUT),
    "secret": st.builds(SecretInput, **ABOUT),
    "file": st.builds(FileInput, **ABOUT),
    "select": st.builds(SelectInput, choices=CHOICES, **ABOUT),
    "multiselect": st.builds(MultiselectInput, choices=CHOICES, **ABOUT),
}
FORMS = st.dictionaries(NAMES, st.one_of(*SINGLE.values()), min_size=2, max_size=5)
KINDS = {**SINGLE, "form": st.builds(FormInput, fields=FORMS)}
KIND_AND_INPUT = st.sampled_from([*KINDS]).flatmap(lambda kind: st.tuples(st.just(kind), KINDS[kind]))
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.just("answer"), inner, max_size=3),
    max_leaves=8,
)


def form_of(question: UserQuestion[Any]) -> forms.Form:
    form = forms.read(msgspec.Raw(question.params))
    assert form is not None
    return form


def filled(data: st.DataObject, field: forms.FormField) -> Any:
    match field.kind:
        case "boolean":
            return data.draw(st.booleans())
        case "file":
            return base64.b64encode(data.draw(st.binary(max_size=20))).decode()
        case "select":
            return data.draw(st.sampled_from([each.const for each in field.choices]))
        case "multiselect":
            return data.draw(st.lists(st.sampled_from([each.const for each in field.choices]), unique=True))
    least, most = int(field.least or 0), None if field.most is None else int(field.most)
    return data.draw(st.text(min_size=least, max_size=20 if most is None else most))


@given(KIND_AND_INPUT, st.text(min_size=1, max_size=50))
def test_each_kind_is_read_back_as_that_kind(drawn: tuple[str, QuestionInput[Any]], message: str) -> None:
    kind, given_input = drawn
    question = UserQuestion("key", message, given_input)
    form = form_of(question)
    assert (form.kind, form.message) == (kind, message)
    assert refusal(ELICIT, msgspec.Raw(question.params)) is None
    assert [field.required for field in form.fields] == (
        [each.required for each in given_input.fields.values()]
        if isinstance(given_input, FormInput)
        else [given_input.required]
    )


@given(st.data())
def test_what_fits_the_form_is_its_value_and_of_its_type(data: st.DataObject) -> None:
    kind, given_input = data.draw(KIND_AND_INPUT)
    question = UserQuestion("key", "Why?", given_input)
    content = {field.name: filled(data, field) for field in form_of(question).fields}
    answer = question.read(GivenAnswer("accept", json.dumps(content).encode()))
    assert answer is not None
    assert answer.accepted
    match kind:
        case "file":
            assert answer.value == base64.b64decode(content["answer"])
        case "multiselect":
            assert answer.value == tuple(content["answer"])
        case "form":
            assert isinstance(answer.value, dict)
            assert answer.value.keys() == content.keys()
        case _:
            assert answer.value == content["answer"]


@given(KIND_AND_INPUT, JSON)
def test_whatever_is_sent_is_an_answer_that_fits_or_none(drawn: tuple[str, QuestionInput[Any]], sent: Any) -> None:
    question = UserQuestion("key", "Why?", drawn[1])
    answer = question.read(GivenAnswer("accept", json.dumps(sent).encode()))
    fits = isinstance(sent, dict) and not forms.wrong(form_of(question), sent)
    assert answer is not None
    assert answer.action == ("accept" if fits else "cancel")
    assert fits or answer.value is None


@pytest.mark.parametrize("action", ["decline", "cancel", "none"])
def test_what_is_not_accepted_has_no_value(action: Any) -> None:
    question = UserQuestion("key", "Why?", TextInput())
    assert question.read(GivenAnswer(action, b'{"answer":"x"}')) == UserAnswer(action)
    assert question.read(None) is None


def test_a_choice_that_may_be_left_out_has_no_value_then() -> None:
    question = UserQuestion("key", "Why?", SelectInput(choices=("a",), required=False))
    assert question.read(GivenAnswer("accept", b"{}")) == UserAnswer("accept", None)


@pytest.mark.parametrize(
    ("key", "message", "answered"),
    [
        ("", "Why?", TextInput()),
        ("a b", "Why?", TextInput()),
        ("x" * 65, "Why?", TextInput()),
        ("key", "", TextInput()),
        ("key", "Why?", FormInput(fields={})),
        ("key", "Why?", FormInput(fields={f"f{at}": TextInput() for at in range(forms.MAX_FIELDS + 1)})),
        ("key", "Why?", SelectInput(choices=[str(at) for at in range(forms.MAX_CHOICES + 1)])),
        ("key", "x" * 70_000, TextInput()),
    ],
)
def test_what_nobody_could_be_asked_is_no_question(key: str, message: str, answered: QuestionInput[Any]) -> None:
    with pytest.raises(ValueError, match=r"a key has|a form has"):
        UserQuestion(key, message, answered)


def test_no_answer_is_shown_where_it_is_written_into_a_log() -> None:
    given_answer = GivenAnswer("accept", b'{"answer":"s3cr3t"}')
    answer = UserQuestion("key", "The password?", SecretInput()).read(given_answer)
    assert "s3cr3t" not in f"{given_answer!r} {answer!r} {given_answer} {answer}"

"""What cards and modals say in the cases that the samples leave out."""

from __future__ import annotations

from typing import Any

import pytest

from agents.core.codec import Json
from bot.layout.arguments import Budget, list_arguments
from bot.layout.data import same
from bot.layout.parts import approvers_words
from bot.questions.drawing import drawn_question
from bot.questions.shown import answers_of, questions_of
from bot.records.approval import Approval, Status
from bot.slack.cards.agent_text import MOST, reply_cards, split_text
from bot.slack.cards.card_for import card_for
from slack_sandbox.blockkit.rules import message_errors, view_errors
from tests.unit.bot.asked import answer_modal, details_of
from tests.unit.bot.slack.cards.samples import (
    a_doubt,
    a_question,
    an_approval,
    an_escalated,
    decided,
)
from tests.unit.bot.slack.cards.test_properties import walk


def shown(blocks: object) -> str:
    """All texts below each other."""
    texts = [part["text"] for part in walk(blocks) if isinstance(part.get("text"), str)]
    return "\n".join(texts)


def test_obstacle_to_editing_is_named() -> None:
    long = an_approval(
        arguments={"note": "x" * 30_001},
        form={"type": "object", "properties": {"note": {"type": "string"}}},
    )
    said = shown(card_for(long, approvers_text="").blocks)
    assert "This can't be edited here. Nothing in it can be changed." in said
    assert "Edit…" not in said


def test_hidden_characters_are_counted_and_can_be_opened() -> None:
    long = an_approval(title="t" * 300, why="w" * 2_000, arguments={"a": "b"}, form=None)
    said = shown(card_for(long, approvers_text="").blocks)
    assert "*150 more characters.* Approve… opens the full text first." in said
    short = an_approval(title="t" * 151, arguments={"a": "b"})
    assert "more character" in shown(card_for(short, approvers_text="").blocks)


def test_words_that_nobody_agrees_to_are_cut_and_not_counted() -> None:
    said = shown(card_for(an_approval(why="w" * 2_000), approvers_text="").blocks)
    assert f"{'w' * 160}…" in said
    assert "more character" not in said


def test_edit_that_hides_changes_says_so() -> None:
    done = decided(
        an_approval(arguments={"a": "x" * 900, "b": 1}),
        Status.APPROVED,
        arguments={"a": "y" * 900, "b": 1},
    )
    said = shown(card_for(done, approvers_text="").blocks)
    assert said.count("860 more characters") == 2


def test_many_arguments_are_counted() -> None:
    budget = Budget(whole=10_000, value=100, names=2)
    listed = list_arguments([("a", "1"), ("b", "x"), ("cc", "yyy")], budget)
    assert len(listed.elements) == 2
    assert listed.hidden == 5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", '""'),
        ("true", '"true"'),
        (" a", '" a"'),
        ("5", '"5"'),
        (True, "true"),
        (None, "null"),
        (5, "5"),
        ("5.", "5."),
        ("1.4.2", "1.4.2"),
        ("-1e5", '"-1e5"'),
        ('"5"', '"\\"5\\""'),
        ("NaN", '"NaN"'),
    ],
)
def test_texts_that_look_like_other_values_have_quotes(value: object, text: str) -> None:
    listed = list_arguments([("a", value)], Budget(whole=1_000, value=100))
    assert listed.elements[0]["elements"][1]["text"] == text


def test_long_nested_values_are_laid_out() -> None:
    listed = list_arguments([("a", {"b": ["x" * 60, "y" * 60]})], Budget(whole=1_000, value=500))
    assert listed.elements[1]["elements"][0]["text"].startswith('{\n  "b": [\n')


def test_same_is_strict() -> None:
    assert same([1], [1])
    assert not same([1], [True])
    assert not same(1, 1.0)
    assert not same({"a": 0}, {"a": False})


@pytest.mark.parametrize(
    ("arguments", "questions"),
    [
        ({"questions": ["a", 5, ""]}, ["a", "5", '""']),
        ({"questions": []}, ["2 questions about the deploy"]),
        ({"questions": "a"}, ["2 questions about the deploy"]),
        ({}, ["2 questions about the deploy"]),
    ],
)
def test_questions_are_read_carefully(arguments: dict[str, Any], questions: list[str]) -> None:
    assert questions_of(a_question(arguments=arguments)) == questions


@pytest.mark.parametrize(
    ("answer", "answers"), [(None, []), (["a", 1], ["a", "1"]), ("a", ["a"]), ([], [])]
)
def test_answers_are_read_carefully(answer: Json, answers: list[str]) -> None:
    assert answers_of(decided(a_question(), Status.ANSWERED, answer=answer)) == answers
    assert answers_of(a_question()) == []


def test_long_question_can_be_opened_and_answered() -> None:
    long = a_question(arguments={"questions": ["q" * 6_000]})
    said = shown(card_for(long, approvers_text="").blocks)
    assert "Details" in said
    assert "more characters" in said
    view = answer_modal(long)
    assert view_errors(view) == []
    assert "Question 1" in shown(view["blocks"])


@pytest.mark.parametrize(
    "answer",
    [
        {"choice": "again", "result": ""},
        {"choice": "ran", "result": 5},
        {"choice": "maybe", "result": "x"},
        None,
    ],
)
def test_doubt_is_read_carefully(answer: Json) -> None:
    question = drawn_question(decided(a_doubt(), Status.APPROVED, answer=answer))
    assert question.answered() == ""


def test_expired_doubt_says_that_nobody_answered() -> None:
    card = card_for(decided(a_doubt(), Status.EXPIRED, by=""), approvers_text="")
    said = shown(card.blocks)
    assert "·  no one decided" in said
    assert "It's unknown whether this ran" in said


def test_card_says_who_else_was_asked_and_since_when() -> None:
    words = "Since <!date^"
    assert words not in shown(_drawn(an_approval(backups=("U0BEN",))))
    assert words not in shown(_drawn(an_escalated(backups=("channel",))))
    many = an_escalated(backups=tuple(f"U0BEN{number:04}" for number in range(200)))
    assert not message_errors({"text": "x", "blocks": _drawn(many)})


def _drawn(approval: Approval) -> list[dict[str, Any]]:
    return card_for(approval, approvers_text="<@U0ADA>").blocks


def test_approvers_in_words() -> None:
    assert approvers_words(["channel", "U1", "S1", "x"]) == (
        "the members of this channel, <@U1>, <!subteam^S1>, x"
    )
    assert approvers_words([]) == "no one"


def test_record_without_title_or_tool_has_a_title() -> None:
    bare = an_approval(title=" ", tool="", rule="", arguments={})
    card = card_for(bare, approvers_text="")
    assert card.blocks[1]["text"]["text"] == "Untitled"


def test_details_show_long_names_and_texts_whole() -> None:
    name = "n" * 5_000
    view = details_of(an_approval(arguments={name: "v", "w": "x" * 200}))
    assert view_errors(view) == []
    said = shown(view["blocks"]).replace("\n", "")
    assert name in said
    assert "x" * 200 in said


@pytest.mark.parametrize("text", ["", " \n ", "```\n```"])
def test_empty_reply_is_still_a_message(text: str) -> None:
    [card] = reply_cards(text)
    assert shown(card.blocks) == "…"


def test_long_reply_is_split_between_lines() -> None:
    lines = [f"line {index} & more" for index in range(600)]
    cards = reply_cards("\n".join(lines))
    assert len(cards) > 2
    assert all(len(card.text) <= MOST for card in cards)
    said = "\n".join(card.text for card in cards)
    assert said.split("\n") == [line.replace("&", "&amp;") for line in lines]


def test_line_that_is_too_long_is_split_inside() -> None:
    cards = reply_cards("<" * 5_000)
    assert all(len(card.text) <= MOST for card in cards)
    assert sum(shown(card.blocks).count("<") for card in cards) == 5_000


def test_split_code_is_opened_again() -> None:
    parts = split_text("```\n" + "x = 1\n" * 1_200 + "```\nend")
    assert len(parts) > 2
    assert all(part.startswith("```") for part in parts)
    assert all(part.count("```") == 2 for part in parts)
    kinds = [card.blocks[0]["elements"][0]["type"] for card in reply_cards("\n\n".join(parts))]
    assert set(kinds) == {"rich_text_preformatted"}


def test_open_code_ends_with_the_reply() -> None:
    [card] = reply_cards("before\n~~~\ncode *not bold*\n``` not the end")
    kinds = [part["type"] for part in card.blocks[0]["elements"]]
    assert kinds == ["rich_text_section", "rich_text_preformatted"]
    assert "*not bold*" in shown(card.blocks)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("2 * 3 * 4", [{"type": "text", "text": "2 * 3 * 4"}]),
        ("snake_case_name", [{"type": "text", "text": "snake_case_name"}]),
        (
            "a `*b*`",
            [
                {"type": "text", "text": "a "},
                {"type": "text", "text": "*b*", "style": {"code": True}},
            ],
        ),
        (
            "https://good.example@evil.example",
            [
                {"type": "link", "url": "https://good.example", "text": "https://good.example"},
                {"type": "text", "text": "@evil.example"},
            ],
        ),
        (
            "<https://evil.example|good>",
            [
                {"type": "text", "text": "<"},
                {"type": "link", "url": "https://evil.example", "text": "https://evil.example"},
                {"type": "text", "text": "|good>"},
            ],
        ),
    ],
)
def test_inline_marks(text: str, parts: list[dict[str, Any]]) -> None:
    [card] = reply_cards(text)
    assert card.blocks[0]["elements"] == [{"type": "rich_text_section", "elements": parts}]


def test_quotes_join_and_an_empty_one_is_left_out() -> None:
    [card] = reply_cards(">\n> a\n>\n> b\n5. five")
    first, second = card.blocks[0]["elements"]
    assert shown(first) == "a\n\n\n\n\nb"
    assert second["offset"] == 4


@pytest.mark.parametrize(
    "text", ["*" * 30_000, "_a" * 15_000, "`" * 30_000, "# " + " " * 9_000, "[" * 9_000]
)
def test_marks_take_no_time(text: str) -> None:
    assert reply_cards(text)


def test_the_why_that_stands_right_above_is_not_said_again() -> None:
    said = an_approval(why="Rosa wants it live.", why_said=True)
    assert "Rosa wants it live." not in shown(card_for(said, approvers_text="").blocks)
    unsaid = said.changed(why_said=False)
    assert "Rosa wants it live." in shown(card_for(unsaid, approvers_text="").blocks)

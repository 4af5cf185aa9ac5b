"""The part of a kind of question for the card: its text and its buttons.

`bot/slack/cards/` has the parts that all cards share. `drawing.py` has the actions of the buttons.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from bot.layout.action_ids import ActionId, encode
from bot.layout.arguments import Budget, Listed, list_arguments
from bot.layout.blocks import Block, button, line, literal, numbered
from bot.layout.sentences import title_hidden, title_of
from bot.layout.text import more, show
from bot.questions.base import RecordQuestion, question_of
from bot.questions.yes import Proof
from bot.records.approval import Approval, Decision, Status
from bot.redaction.call import mask_call, written
from bot.redaction.mask import mask_text
from bot.redaction.masks import Words
from bot.words import say

MOST_QUESTIONS = 10
"""Maximum number of questions on a card. The details show the others."""
QUESTION = 3_000
SHOWN = Budget(whole=2_400, value=700)


class ShownQuestion(RecordQuestion):
    """The question of an approval, as its card shows it.

    The record may be damaged, so rendering never raises.
    """

    # Text of the card.

    def needs(self, about: Mapping[str, str]) -> tuple[str, str]:
        """Return what the approval waits for: the first line of its card, and the notification.

        Args:
            about: Values for the catalog's texts: `title`, `who` and `when`.
        """
        return say("status.needs_answer"), say("notify.answer", **about)

    def ended(self, who: str, time: str) -> tuple[str, str]:  # noqa: ARG002 - a port
        """Return how people decided, if that runs nothing: a symbol and a text.

        Args:
            who: Mentions of the people who decided.
            time: The time of the decision.

        Returns:
            The symbol and the text. Empty texts mean the usual text of the status.
        """
        return "", ""

    def asked(self) -> list[str]:
        """Return the questions, in order."""
        return questions_of(self.approval)

    def content(self) -> tuple[Listed, ...]:
        """Return the question's content for its card."""
        return (self._questions(), self.below())

    def of_call(self) -> Listed:
        """Return the question about a call, for the place below its arguments."""
        return Listed()

    def only_text(self) -> str:
        """Return the question as text, if the card shows it in place of arguments; else empty."""
        return ""

    def small(self) -> list[Block]:
        """Return the small print below the content."""
        return []

    def who_can(self, who: str) -> str:
        """Return who can answer a question, and whether a reply in the thread can.

        Args:
            who: Beginning of the sentence, with mentions.
        """
        return say("line.can_fill", who=who)

    def answered(self) -> str:
        """The answer as lines, masked; empty if there is none, or the status already says it."""
        return ""

    def final(self, decision: Decision) -> Approval:
        """Return the approval with the title, preview and arguments of the call that was approved.

        If people changed arguments and the tool gave no title for them, a default title replaces
        the old one, which described another call.
        """
        if decision.arguments is None:
            return self.approval
        return self.approval.changed(
            arguments=decision.arguments,
            title=self.edited_title(decision),
            preview=decision.preview,
            digest=decision.digest or self.approval.digest,
        )

    def edited_title(self, decision: Decision) -> str:
        """Return the default title of a call with edited arguments."""
        return decision.title or say("card.other_arguments", tool=tool_of(self.approval))

    def laid_out(self) -> frozenset[str]:
        """The arguments that the details do not show as JSON."""
        return frozenset()

    def more_details(self) -> Iterator[tuple[str, Words]]:
        """Yield further parts of the details, each with its name."""
        yield from ()

    # Buttons.

    def notes(self) -> Iterator[str]:
        """Yield mrkdwn lines that say what is not possible here, and why."""
        yield from ()

    def agree(self, proof: Proof) -> Iterator[Block]:  # noqa: ARG002 - a port
        """The buttons that approve what the card shows.

        Args:
            proof: Whether the reader knows the whole call; see `bot.questions.yes`.
        """
        yield from ()

    def yes(self) -> Iterator[Block]:
        """The other buttons that do not refuse."""
        yield from ()

    def no(self) -> Iterator[Block]:
        """The buttons that refuse."""
        yield from ()

    def last(self) -> Iterator[Block]:
        """Yield the buttons after the refusing ones."""
        yield from ()

    def more(self) -> Iterator[tuple[str, ActionId]]:
        """Yield further entries of the question's menu: label and action."""
        yield from ()

    def emergency(self) -> Iterator[Block]:
        """Yield the break-glass button, even if no approver can decide."""
        yield from ()

    def can_withdraw(self) -> bool:
        """Whether the card has a withdraw button. The requester's refusal also withdraws."""
        return True

    # Helpers.

    def button(self, label: str, action: str, style: str = "") -> Block:
        """Return a button of this card."""
        value = encode(self.approval.approval_id, self.approval.digest)
        return button(label, action, value, of=title_of(self.approval), style=style)

    def below(self) -> Listed:
        """Return the values to show below the question."""
        values = self.arguments.get("shown")
        return list_arguments(values.items(), SHOWN) if isinstance(values, dict) else Listed()

    @property
    def stored(self) -> Mapping[str, object]:
        """The answer as an object; empty without an answer, or if the answer is no object."""
        answer = self.approval.decision.answer if self.approval.decision else None
        return answer if isinstance(answer, dict) else {}

    @property
    def is_call(self) -> bool:
        """Whether the question is about a call of a tool."""
        return bool(self.approval.tool)

    def in_title(self, text: str) -> bool:
        """Whether the card's title contains the whole text."""
        is_whole = not title_hidden(self.approval)
        return is_whole and title_of(self.approval) == written(mask_call(text)).strip()

    def _questions(self) -> Listed:
        """The questions: a numbered list of several, or nothing if the only one is the title."""
        questions = self.asked()
        if len(questions) == 1 and self.in_title(questions[0]):
            return Listed()
        count = min(len(questions), MOST_QUESTIONS)
        elements: list[Block] = []
        hidden = sum(map(len, questions[MOST_QUESTIONS:]))
        masked = altered = turned = False
        for question in questions[:MOST_QUESTIONS]:
            clean = mask_text(question)
            view = show(clean, QUESTION // count, lines=20)
            elements.append(line(literal(view.text or "…"), *rest_of(view.hidden)))
            hidden += view.hidden
            masked, altered = masked or clean != question, altered or view.altered
            turned = turned or view.turned
        made = tuple(elements) if count == 1 else (numbered(elements),)
        return Listed(elements=made, hidden=hidden, masked=masked, altered=altered, turned=turned)


def shown_question(approval: Approval) -> ShownQuestion:
    """Return the question of an approval, as its card shows it."""
    question = question_of(approval)
    if not isinstance(question, ShownQuestion):
        raise TypeError(f"{type(question).__name__} cannot be shown")
    return question


def what_runs(approval: Approval) -> Approval:
    """Return the approval with the call that was decided in place of the requested one."""
    if approval.decision is None or approval.status not in {Status.APPROVED, Status.ANSWERED}:
        return approval
    return shown_question(approval).final(approval.decision)


def questions_of(approval: Approval) -> list[str]:
    """Read the questions of an approval, in order; one line of text if they cannot be read."""
    questions = approval.arguments.get("questions")
    if not isinstance(questions, list) or not questions:
        return [approval.title or "?"]
    return [
        item if isinstance(item, str) and item.strip() else json.dumps(item) for item in questions
    ]


def answers_of(approval: Approval) -> list[str]:
    """Read the answers of a decided question, in order; empty without answers."""
    if approval.decision is None or approval.decision.answer is None:
        return []
    answers = approval.decision.answer
    if not isinstance(answers, list):
        answers = [answers]
    return [item if isinstance(item, str) else json.dumps(item) for item in answers]


def tool_of(approval: Approval) -> str:
    """Return the default title of a call: the name of its tool."""
    return approval.tool.strip() or say("card.untold_tool")


def rest_of(hidden: int) -> list[Block]:
    """Return how much of a text is hidden; empty if the whole text is shown."""
    return [literal(f" {more(hidden)}", "italic")] if hidden else []

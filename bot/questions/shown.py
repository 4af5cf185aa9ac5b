"""A kind of question on a card: its text and its buttons.

All that every card has is in `bot/slack/cards/`; what people do with buttons is in `drawing.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from bot.approvals.model import Approval, Decision, Status
from bot.layout.action_ids import ActionId, encode
from bot.layout.arguments import Budget, Listed, list_arguments
from bot.layout.blocks import Block, button, line, literal, numbered
from bot.layout.sentences import title_hidden, title_of
from bot.layout.text import more, show
from bot.questions.base import RecordQuestion, question_of
from bot.questions.yes import Proof
from bot.redaction.call import mask_call, written
from bot.redaction.mask import mask_text
from bot.redaction.masks import Words
from bot.words import say

MOST_QUESTIONS = 10
"""More are in Details; the agent's own tool allows fewer."""
QUESTION = 3_000
SHOWN = Budget(whole=2_400, value=700)


class ShownQuestion(RecordQuestion):
    """The question of a record, as its card shows it.

    The record may be damaged: what is drawn of it never raises.
    """

    # What the card says.

    def needs(self, about: Mapping[str, str]) -> tuple[str, str]:
        """Say what it waits for: as the first line of its card, and as a notification.

        Args:
            about: The values `title`, `who` and `when` of the catalogue's texts.
        """
        return say("status.needs_answer"), say("notify.answer", **about)

    def ended(self, who: str, time: str) -> tuple[str, str]:  # noqa: ARG002 - a port
        """Say how people decided it where nothing runs by that: a symbol and words.

        Args:
            who: Mentions of who decided.
            time: When.

        Returns:
            Empty words where it is as usual.
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
        """Return the question in place of arguments, as text; empty when there are arguments."""
        return ""

    def small(self) -> list[Block]:
        """Return small print of ours, right below the content."""
        return []

    def who_can(self, who: str) -> str:
        """Say in our own words who can answer a question, and whether a reply will do.

        Args:
            who: As the beginning of a sentence, with mentions.
        """
        return say("line.can_fill", who=who)

    def answered(self) -> str:
        """People's answer as lines, masked; empty where the outcome says it all, or nobody did."""
        return ""

    def final(self, decision: Decision) -> Approval:
        """The record with the title, the preview and the arguments of what a yes lets run.

        Where people changed arguments and the tool had no words for that, the title says so: the
        old one is of a call that nobody runs.
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
        """The title of a call with edited arguments."""
        return decision.title or say("card.other_arguments", tool=tool_of(self.approval))

    def laid_out(self) -> frozenset[str]:
        """Names of arguments that the details show in another way than as JSON."""
        return frozenset()

    def more_details(self) -> Iterator[tuple[str, Words]]:
        """Yield further parts of the details, each with its name."""
        yield from ()

    # Its buttons.

    def notes(self) -> Iterator[str]:
        """Say in mrkdwn what is not possible here, and why."""
        yield from ()

    def agree(self, proof: Proof) -> Iterator[Block]:  # noqa: ARG002 - a port
        """The buttons that agree to what the card shows.

        Args:
            proof: What the reader of the surface knows of it; see `bot.questions.yes`.
        """
        yield from ()

    def yes(self) -> Iterator[Block]:
        """The other buttons of all that is not a no."""
        yield from ()

    def no(self) -> Iterator[Block]:
        """The buttons of what refuses."""
        yield from ()

    def last(self) -> Iterator[Block]:
        """Yield the buttons behind the no."""
        yield from ()

    def more(self) -> Iterator[tuple[str, ActionId]]:
        """Yield further choices of the menu of a question: the label, and what it does."""
        yield from ()

    def emergency(self) -> Iterator[Block]:
        """Yield the buttons of who may let it run alone, also where nobody else can decide."""
        yield from ()

    def can_withdraw(self) -> bool:
        """Whether the card has a button that takes it back: a no of who asked does the same."""
        return True

    # Parts for those.

    def button(self, label: str, action: str, style: str = "") -> Block:
        """A button of this card."""
        value = encode(self.approval.approval_id, self.approval.digest)
        return button(label, action, value, of=title_of(self.approval), style=style)

    def below(self) -> Listed:
        """Return the values that a question shows below it."""
        found = self.arguments.get("shown")
        return list_arguments(found.items(), SHOWN) if isinstance(found, dict) else Listed()

    @property
    def stored(self) -> Mapping[str, object]:
        """The answer as an object; empty if there is none, or another kind of answer."""
        answer = self.approval.decision.answer if self.approval.decision else None
        return answer if isinstance(answer, dict) else {}

    @property
    def is_call(self) -> bool:
        """Whether it is about a call of a tool."""
        return bool(self.approval.tool)

    def in_title(self, text: str) -> bool:
        """Whether the title of the card shows all of a text."""
        is_whole = not title_hidden(self.approval)
        return is_whole and title_of(self.approval) == written(mask_call(text)).strip()

    def _questions(self) -> Listed:
        """The questions: a numbered list of several; nothing of one that is the title."""
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
    """The question of a record, as its card shows it."""
    question = question_of(approval)
    if not isinstance(question, ShownQuestion):
        raise TypeError(f"{type(question).__name__} cannot be shown")
    return question


def what_runs(approval: Approval) -> Approval:
    """The same record with what a decision lets run in place of what was asked for first."""
    if approval.decision is None or approval.status not in {Status.APPROVED, Status.ANSWERED}:
        return approval
    return shown_question(approval).final(approval.decision)


def questions_of(approval: Approval) -> list[str]:
    """Read the questions of a record, in order; one line when it cannot be read."""
    found = approval.arguments.get("questions")
    if not isinstance(found, list) or not found:
        return [approval.title or "?"]
    return [item if isinstance(item, str) and item.strip() else json.dumps(item) for item in found]


def answers_of(approval: Approval) -> list[str]:
    """Read the answers of a decided question, in order; empty when there are none."""
    if approval.decision is None or approval.decision.answer is None:
        return []
    answers = approval.decision.answer
    if not isinstance(answers, list):
        answers = [answers]
    return [item if isinstance(item, str) else json.dumps(item) for item in answers]


def tool_of(approval: Approval) -> str:
    """The name of a tool, for the title of a call for which it has no words."""
    return approval.tool.strip() or say("card.untold_tool")


def rest_of(hidden: int) -> list[Block]:
    """Say how much of a text is not shown; nothing when all of it is."""
    return [literal(f" {more(hidden)}", "italic")] if hidden else []

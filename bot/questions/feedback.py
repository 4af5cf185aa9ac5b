"""Feedback on a text: accept it, or ask for changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import pairwise

from agents.core.codec import Json
from agents.gates.questions import FeedbackInfo
from bot.layout.action_ids import ActionId
from bot.layout.arguments import Listed
from bot.layout.blocks import Block, context, line, literal, plain, quote, rich
from bot.layout.modals import MOST_ANSWER, Errors, Values, modal, named, read_text, text_input
from bot.layout.text import clip, show, width
from bot.questions.base import QuestionDraft, as_object, as_text
from bot.questions.drawing import DecisionDraft, DrawnQuestion, OpenModal, Proposal, register
from bot.questions.form import AnswerForm, Form
from bot.questions.shown import rest_of
from bot.questions.texts import answer_id
from bot.questions.yes import Proof, yes
from bot.records.approval import Approval, Decision, Kind, Status
from bot.redaction.call import mask_call, written
from bot.redaction.mask import REDACTED, mask_text
from bot.redaction.masks import has_guess
from bot.words import say
from bot.words.decisions import looks_like_decision

MOST_CHANGED = 0.4
"""The maximum share of changed words; above it, the comparison is hard to read."""
_MOST_WORDS = 300
"""The maximum number of differing words to compare, because the cost is quadratic."""
_MOST_LINES = 30
_WORD = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class TextChange:
    """The difference of two texts by words.

    Attributes:
        parts: Pieces in order, each with its style: none, `strike` or `bold`.
        changed: Number of deleted and new words.
        share: Share of changed words in both texts.
    """

    parts: Sequence[tuple[str, str]]
    changed: int
    share: float

    @property
    def is_readable(self) -> bool:
        """Whether the comparison is easier to read than the new text alone."""
        return self.changed > 0 and self.share <= MOST_CHANGED


def compare(before: str, after: str) -> TextChange | None:
    """Compare two texts, with secrets masked; None if they differ too much."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    start = _same(old, new)
    end = _same(old[start:][::-1], new[start:][::-1])
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    if max(len(gone), len(come)) > _MOST_WORDS:
        return None
    parts = [("".join(new[:start]), ""), *_middle(gone, come)]
    parts.append(("".join(new[len(new) - end :]) if end else "", ""))
    changed = sum(len(_WORD.findall(text)) for text, style in parts if style)
    filled = [(text, style) for text, style in parts if text]
    return TextChange(_apart(filled), changed, changed / max(len(old) + len(new), 1))


def changed_quote(change: TextChange, most: int) -> Block | None:
    """Return the difference as a quote; None if it cannot be shown in full."""
    whole = "".join(text for text, _ in change.parts)
    if width(whole) > most or whole.count("\n") >= _MOST_LINES or show(whole, most).altered:
        return None
    return quote(*(literal(text, *([style] if style else [])) for text, style in change.parts))


def _same(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the number of equal words at the beginning."""
    pairs = zip(left, right, strict=False)
    return next(
        (at for at, (word, other) in enumerate(pairs) if word != other), min(len(left), len(right))
    )


def _middle(gone: Sequence[str], come: Sequence[str]) -> Iterator[tuple[str, str]]:
    matcher = SequenceMatcher(a=gone, b=come, autojunk=False)
    for tag, left, left_end, right, right_end in matcher.get_opcodes():
        if tag == "equal":
            yield "".join(come[right:right_end]), ""
            continue
        yield "".join(gone[left:left_end]), "strike"
        yield "".join(come[right:right_end]), "bold"


def _apart(parts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Insert a space between deleted words and their replacements."""
    made = [*parts]
    for at, ((text, style), (_, after)) in enumerate(pairwise(parts)):
        if style == "strike" and after == "bold" and not text[-1:].isspace():
            made[at] = (f"{text} ", style)
    return made


CONTENT = 2_800
_COMPARED = 2_900
_MOST_COMPARED = 20_000
_MOST_VERSIONS = 1_000
_WANTED = 300
_NO_EDIT = re.compile(r"no need to edit[.! ]*", re.IGNORECASE)


def feedback(text: str) -> Json:
    """Return the answer with feedback; an empty text accepts what is shown."""
    return {"feedback": text} if text else {"accepted": True}


@register
class FeedbackQuestion(DrawnQuestion):
    """Asks for feedback on a text."""

    form = Form.FEEDBACK
    kinds = frozenset({Kind.QUESTION})

    @classmethod
    def read(cls, info: object) -> QuestionDraft | None:
        """Read the info of a text."""
        if not isinstance(info, FeedbackInfo):
            return None
        arguments: dict[str, Json] = {"content": info.original_content}
        if info.previous is not None:
            arguments |= {
                "version": info.version,
                "previous": info.previous,
                "wanted": info.wanted or "",
            }
        return QuestionDraft(
            kind=Kind.QUESTION,
            title=info.title.strip() or say("card.review_text"),
            is_vague=not info.title.strip(),
            arguments=arguments,
            ask=AnswerForm(form=Form.FEEDBACK),
        )

    def takes(self, decision: Decision) -> bool:
        """Accept either feedback or the acceptance of the text, not both."""
        given = as_object(decision.answer)
        if decision.status is not self.yes_status:
            return False
        if set(given) == {"accepted"}:
            return given["accepted"] is True
        return set(given) == {"feedback"} and bool(as_text(given["feedback"]).strip())

    def answer(self, info: object) -> FeedbackInfo:
        """Return the info with the feedback."""
        if not isinstance(info, FeedbackInfo):
            raise TypeError(f"{type(info).__name__} is not answered so")
        is_good = self.given.get("accepted") is True
        return info.accept() if is_good else info.give(as_text(self.given["feedback"]))

    def read_reply(self, text: str) -> Json:
        """Read a reply as feedback, or as the acceptance of the text; None for a decision."""
        if _NO_EDIT.fullmatch(text.strip()):
            return feedback("")
        return None if looks_like_decision(text) else feedback(text)

    def reply_hint(self) -> str:
        """Say that a reply like "looks good" is no decision."""
        return say("refuse.reply_here")

    def is_yes(self, decision: Decision) -> bool:
        """Count the acceptance of the text as an approval."""
        if decision.status is Status.ANSWERED:
            return decision.answer == {"accepted": True}
        return super().is_yes(decision)

    def needs(self, about: Mapping[str, str]) -> tuple[str, str]:
        """Say that feedback is needed, and on which version."""
        words = say("status.needs_feedback")
        if self._version > 1:
            words = f"{words} · {say('status.version', n=self._version)}"
        return words, say("notify.feedback", **about)

    def ended(self, who: str, time: str) -> tuple[str, str]:
        """Say whether there was feedback."""
        if self.stored.get("accepted") is True:
            return "✅", say("status.approved", who=who, time=time)
        if self.approval.status is Status.ANSWERED:
            return "✏️", say("status.changes_requested", who=who, time=time)
        return super().ended(who, time)

    def who_can(self, who: str) -> str:
        """Say that a reply is the feedback."""
        return say("line.can_feedback", who=who)

    def content(self) -> tuple[Listed, ...]:
        """Return the text. In later versions, mark the changes if there are not too many."""
        clean = written(mask_call(content_of(self.approval)))
        view = show(clean, CONTENT, lines=30)
        drawn = self._changed_quote()
        return (
            Listed(
                elements=(drawn or quote(literal(view.text or "…"), *rest_of(view.hidden)),),
                hidden=view.hidden if drawn is None else 0,
                masked=REDACTED in clean,
                guessed=has_guess(mask_call(content_of(self.approval))),
                altered=view.altered,
                turned=view.turned,
            ),
        )

    def small(self) -> list[Block]:
        """Return the feedback that led to this version, and how much changed."""
        wanted, change = self._text("wanted"), self._change
        words = []
        if wanted:
            text = clip(mask_text(wanted), _WANTED)
            words.append(plain(say("line.you_asked_for", text=text)))
        if change is not None and change.is_readable:
            what = say("line.words", n=change.changed)
            words.append(plain(say("line.changed", what=what)))
        return [context(*words)] if words else []

    def answered(self) -> str:
        """The feedback."""
        feedback = self.stored.get("feedback")
        return f"“{mask_text(feedback).strip()}”" if isinstance(feedback, str) else ""

    def agree(self, proof: Proof) -> Iterator[Block]:
        """*Approve*."""
        accept = self.button(say("button.accept"), ActionId.DETAILS, "primary")
        yield yes(ActionId.ACCEPT, accept, proof)

    def yes(self) -> Iterator[Block]:
        """*Request changes…*."""
        yield self.button(say("button.request_changes"), ActionId.ANSWER)

    def more(self) -> Iterator[tuple[str, ActionId]]:
        """*Compare versions*."""
        if self._text("previous"):
            yield say("button.compare"), ActionId.COMPARE

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Accept the text at once, or open a form."""
        if action == ActionId.ACCEPT:
            return self.draft(answer=feedback(""))
        if action == ActionId.ANSWER:
            return OpenModal(view=self._modal())
        if action == ActionId.COMPARE and self._text("previous"):
            return OpenModal(view=self._comparison())
        return super().press(action)

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read the feedback."""
        if modal_id != ActionId.ANSWER_MODAL:
            return super().submit(modal_id, values)
        text = read_text(values, answer_id(0))
        if not text:
            return {answer_id(0): say("error.changes")}
        return self.draft(answer=feedback(text))

    def _modal(self) -> Block:
        label, hint = say("form.changes_what"), say("form.changes_hint")
        block = text_input(answer_id(0), label, MOST_ANSWER, hint=hint, optional=False)
        words = (say("form.changes"), say("form.changes"))
        return modal(self.approval, ActionId.ANSWER_MODAL, words, [named(self.approval), block])

    def _comparison(self) -> Block:
        """A modal with the earlier text and the changes; it decides nothing."""
        before = show(written(mask_call(self._text("previous"))), _COMPARED)
        after = show(written(mask_call(content_of(self.approval))), _COMPARED)
        change = self._change
        drawn = changed_quote(change, _COMPARED) if change is not None else None
        new = drawn or quote(literal(after.text or "…"), *rest_of(after.hidden))
        old = quote(literal(before.text or "…"), *rest_of(before.hidden))
        version = self._version
        return {
            "type": "modal",
            "callback_id": str(ActionId.NOTICE_MODAL),
            "title": plain(say("form.compare")),
            "close": plain(say("form.close")),
            "blocks": [
                named(self.approval),
                rich(line(literal(say("form.compare_now", n=version), "bold")), new),
                rich(line(literal(say("form.compare_before", n=version - 1), "bold")), old),
            ],
        }

    def _changed_quote(self) -> Block | None:
        change = self._change
        if change is None or not change.is_readable:
            return None
        return changed_quote(change, CONTENT)

    @cached_property
    def _change(self) -> TextChange | None:
        """The changes since the earlier version; None if there are too many."""
        previous = self._text("previous")
        if not previous:
            return None
        sides = (previous, content_of(self.approval))
        if max(map(len, sides)) > _MOST_COMPARED:
            return None
        return compare(*(written(mask_call(text)) for text in sides))

    @property
    def _version(self) -> int:
        version = self.arguments.get("version")
        return version if type(version) is int and 1 < version < _MOST_VERSIONS else 1

    def _text(self, name: str) -> str:
        value = self.arguments.get(name)
        return value.strip() if isinstance(value, str) else ""


def content_of(approval: Approval) -> str:
    """Read the text on which people give feedback."""
    content = approval.arguments.get("content")
    return content if isinstance(content, str) and content.strip() else "(nothing)"

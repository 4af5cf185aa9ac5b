"""The messages beside the cards: what they say, to whom, and that they say it to everybody."""

from __future__ import annotations

import pytest

from bot.layout.blocks import Card
from bot.records.approval import Approval, Status, StoredEdits
from bot.slack.side_messages.reminders import closed_question, concluded_text, line_card, nudge_text
from bot.words.mrkdwn import escape
from slack_sandbox.blockkit.rules import message_errors
from tests.support.named import at_step, with_backups
from tests.unit.bot.slack.cards.reading import links, seen, symbols
from tests.unit.bot.slack.cards.samples import LINK, an_approval, decided

TITLE = "Deploy payments 1.4.2 to production"
ODD = "*a* <!channel> :x: <http://e|l> <@U0EVE> `c` {link}"
KINDS = ["reminder", "escalation", "mention", "handover", "snooze_over", "quiet", "of tomorrow"]
ENDS = [status for status in Status if status is not Status.PENDING]


def every(approval: Approval, link: str = LINK) -> list[Card]:
    """All messages about something that waits."""
    nudges = [nudge_text(approval, kind, ["U0ADA"], link=link) for kind in KINDS]
    lines = [line_card(approval, [*some], link=link) for some in ([], ["U0ADA", "C0OPS"])]
    open_to_all = with_backups(approval, "channel")
    return [*nudges, *lines, nudge_text(open_to_all, "escalation", ["U0ADA"], link=link)]


def test_what_is_no_id_mentions_nobody() -> None:
    card = nudge_text(an_approval(), "reminder", ["U0ADA", "<!here>"], link=LINK)
    assert card.text.startswith(f"<@U0ADA> Still waiting for you: {TITLE}. ")


@pytest.mark.parametrize(
    ("kind", "symbol", "words"),
    [
        ("mention", "bell", "<@U0ADA> This needs your decision: "),
        ("snooze_over", "bell", "<@U0ADA> Here's your reminder: "),
        ("of tomorrow", "bell", "<@U0ADA> Still waiting for you: "),
    ],
)
def test_each_message_says_why_it_comes(kind: str, symbol: str, words: str) -> None:
    card = nudge_text(an_approval(), kind, ["U0ADA"], link=LINK)
    assert (card.text[: len(words)], symbols(card)) == (words, [symbol])


def test_a_reminder_for_a_whole_channel_calls_no_reader_an_approver() -> None:
    card = nudge_text(an_approval(), "reminder", ["channel"], link=LINK)
    assert card.text.startswith(f"Still waiting: {TITLE}. ")


def test_the_first_message_after_an_edit_says_that_it_is_one() -> None:
    edited = an_approval().changed(edits=StoredEdits(by="U0MIA"))
    first = nudge_text(edited, "mention", ["U0ADA"]).text
    assert first.startswith(
        "<@U0ADA>: <@U0MIA> edited this request, and it now needs your decision"
    )
    reminded = edited.changed(escalation=at_step(edited, reminders=1))
    assert "edited" not in nudge_text(reminded, "mention", ["U0ADA"]).text


def test_a_line_about_cards_that_nobody_has_yet_says_so() -> None:
    assert "Asked: no one yet." in line_card(an_approval(), []).text


@pytest.mark.parametrize(
    ("status", "by", "symbol", "words"),
    [
        (Status.ANSWERED, "U0BEN", "speech_balloon", "Answered by <@U0BEN>: "),
        (Status.WITHDRAWN, "U0BEN", "leftwards_arrow_with_hook", "Withdrawn by <@U0BEN>: "),
        (Status.SUPERSEDED, "", "fast_forward", "Replaced by a newer request: "),
        (Status.UNDECIDABLE, "", "warning", "No one can decide this: "),
        (Status.DENIED, "", "no_entry", "No longer needed: "),
        (Status.CANCELLED, "", "black_square_for_stop", "No longer needed: "),
    ],
)
def test_what_is_over_says_so(status: Status, by: str, symbol: str, words: str) -> None:
    over = decided(an_approval(newer_ts="1.1"), status, by=by)
    card = concluded_text(over, link=LINK)
    assert card.text == f"{words}{TITLE}"
    assert (links(card), symbols(card)) == ([(LINK, TITLE)], [symbol])


def test_what_is_over_needs_no_decision() -> None:
    bare = an_approval().changed(status=Status.CANCELLED, decision=None)
    assert concluded_text(bare).text == f"No longer needed: {TITLE}"


def test_what_the_eye_sees_is_what_is_read_out() -> None:
    over = [concluded_text(decided(an_approval(), status), link=LINK) for status in ENDS]
    for card in [*every(an_approval()), *over]:
        assert seen(card) == card.text


@pytest.mark.parametrize(
    "link", ["", "javascript:alert(1)", "https://x|y>", "https://x y", "http://x<!channel>"]
)
def test_only_an_address_is_a_link(link: str) -> None:
    for card in every(an_approval(), link):
        assert links(card) == []
        assert TITLE in seen(card)


def test_a_time_that_no_calendar_has_is_written_all_the_same() -> None:
    card = nudge_text(an_approval().changed(expires_ms=1 << 62), "reminder", [])
    assert "9999-12-31" in card.text


@pytest.mark.parametrize(
    ("is_answered", "symbol", "words"),
    [
        (True, "speech_balloon", "Answered. See the answer on the card."),
        (False, "checkered_flag", "This is closed, so no answer is needed."),
    ],
)
def test_a_question_that_needs_no_answer_asks_nobody(
    is_answered: bool, symbol: str, words: str
) -> None:
    text = f"{ODD} why now?"
    card = closed_question(an_approval(), by="U0ADA", text=text, is_answered=is_answered, link=LINK)
    assert card.text.startswith(f"<@U0ADA> asked about {TITLE}: ")
    assert symbols(card) == [symbol]
    assert words in str(card.blocks)
    assert "Answer in this thread" not in str(card.blocks)
    assert escape(ODD)[:8] in card.text
    assert message_errors({"text": card.text, "blocks": card.blocks}) == []

"""What a card says that asks about something else than at first, or once more."""

from __future__ import annotations

from bot.records.approval import APPROVE, Approval, CastVote, Decision, Kind, Status, StoredEdits
from bot.slack.cards.card_for import card_for
from bot.slack.cards.change_note import changes_of
from tests.support.named import excluding
from tests.unit.bot.slack.cards.samples import an_approval

EDITED = an_approval().changed(
    arguments={"amount": 500}, edits=StoredEdits(original={"amount": 5}, by="UADA")
)


def text_of(approval: Approval) -> str:
    return str(card_for(approval, approvers_text="Mia").blocks)


def test_f1_card_names_who_edited_and_what() -> None:
    text = text_of(EDITED)
    assert "✏️ Edited by <@UADA>. You're approving the edited version." in text
    assert "Amount 5 → 500" in text
    assert "Edited by <@UADA>" in card_for(EDITED, approvers_text="Mia").text
    assert "Someone else has to approve" in text_of(excluding(EDITED, "requesters", "editors"))


def test_final_card_tells_all_that_was_changed() -> None:
    decision = Decision(status=Status.APPROVED, by="UMIA", at_ms=2, digest=EDITED.digest)
    final = EDITED.changed(status=Status.APPROVED, decision=decision)
    assert "Amount 5 → 500" in text_of(final)
    again = final.changed(decision=decision.changed(arguments={"amount": 7}))
    assert "Amount 5 → 7" in text_of(again)


def test_final_card_names_who_edited_what_others_approved() -> None:
    decision = Decision(status=Status.APPROVED, by="UMIA", at_ms=2, digest=EDITED.digest)
    vote = CastVote(by="UMIA", choice=APPROVE, at_ms=2, digest=EDITED.digest)
    final = EDITED.changed(status=Status.APPROVED, decision=decision, votes=(vote,))
    assert "✏️ *Edited by <@UADA>, approved by <@UMIA>*" in text_of(final)
    assert "Edited by <@UADA>" in card_for(final, approvers_text="").text
    assert "Edited" not in text_of(final.changed(edits=StoredEdits()))


def test_f7_card_says_why_people_are_asked_again() -> None:
    text = text_of(an_approval().changed(asked_again="it is <!channel> too old"))
    assert "Asking again: it is <!channel> too old. Nothing has run since." in text
    parts = card_for(an_approval().changed(asked_again="<!channel>"), approvers_text="").blocks
    assert {name: value for name, value in parts[2]["elements"][0].items() if name != "text"} == {
        "type": "plain_text",
        "emoji": False,
    }
    doubt = an_approval().changed(kind=Kind.DOUBT, asked_again="too old")
    assert "Asking again: too old" in str(card_for(doubt, approvers_text="Mia").blocks)


def test_changes_need_two_different_sides() -> None:
    values: dict[str, object] = {"a": 1}
    for before, after in ((None, {}), ({}, {}), (None, values), (values, values)):
        approval = EDITED.changed(edits=EDITED.edits.changed(original=before), arguments=after)
        assert changes_of(approval).blocks == ()


def test_changes_without_room_are_counted() -> None:
    names = {f"name_{number}": number for number in range(30)}
    after = {name: value + 1 for name, value in names.items()}
    approval = EDITED.changed(edits=EDITED.edits.changed(original=names), arguments=after)
    assert "and 24 more changes" in str(changes_of(approval).blocks)

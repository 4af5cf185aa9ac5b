"""What a card says that asks about something else than at first, or once more."""

from __future__ import annotations

from dataclasses import replace

from bot.slack.cards.anew import anew, changes
from bot.slack.cards.choose import card_for, reminder_text
from storage.records import Approval, Decision, Kind, Status
from tests.unit.bot.slack.cards.samples import an_approval

EDITED = replace(
    an_approval(),
    arguments_json='{"amount":500}',
    original_json='{"amount":5}',
    edited_by="UADA",
)


def text_of(approval: Approval) -> str:
    return str(card_for(approval, approvers_text="Mia").blocks)


def test_card_that_was_never_edited_says_nothing_of_it() -> None:
    assert anew(an_approval()) == []


def test_f1_card_names_who_edited_and_what() -> None:
    told = text_of(EDITED)
    assert "*Edited by <@UADA>.* It needs agreement to what it says now." in told
    assert "Changes" in told
    assert "Edited by <@UADA>" in card_for(EDITED, approvers_text="Mia").text
    assert "Somebody else has to agree" in text_of(replace(EDITED, editors_excluded=True))


def test_final_card_tells_all_that_was_changed() -> None:
    decision = Decision(status=Status.APPROVED, by="UMIA", at_ms=2, digest=EDITED.digest)
    final = replace(EDITED, status=Status.APPROVED, decision=decision)
    assert "Changes" in text_of(final)
    again = replace(final, decision=replace(decision, arguments_json='{"amount":7}'))
    told = text_of(again)
    assert "'5'" in told
    assert "'7'" in told


def test_final_card_names_who_edited_what_others_decided() -> None:
    for status, words in ((Status.APPROVED, "Approved"), (Status.REJECTED, "Rejected")):
        decision = Decision(status=status, by="UMIA", at_ms=2, digest=EDITED.digest)
        final = replace(EDITED, status=status, decision=decision)
        assert f"*{words}* by <@UMIA>" in text_of(final)
        assert "*Edited* by <@UADA>" in text_of(final)
        assert "Edited by <@UADA>." in card_for(final, approvers_text="").text
        assert "Edited" not in text_of(replace(final, edited_by=""))


def test_f7_card_says_why_people_are_asked_again() -> None:
    told = text_of(replace(an_approval(), asked_again="it is <!channel> too old"))
    assert "*You are asked again:* it is &lt;!channel&gt; too old. Nothing has run." in told
    doubt = replace(an_approval(), kind=Kind.DOUBT, asked_again="too old")
    assert "asked again:* too old" in str(card_for(doubt, approvers_text="Mia").blocks)


def test_first_message_after_an_edit_says_that_it_is_one() -> None:
    assert "<@UMIA> Now you are asked: <@UADA> has edited this." in str(
        reminder_text(EDITED, ["UMIA"]).blocks
    )
    assert "has edited" not in str(reminder_text(replace(EDITED, reminders=1), ["UMIA"]).blocks)


def test_changes_need_two_sides_that_can_be_read() -> None:
    for before, after in (("", "{}"), ("{}", ""), ("[", "{}"), ('{"a":1}', '{"a":1}')):
        assert changes(before, after) == []


def test_changes_without_room_are_counted() -> None:
    long = '{"text":"' + "x" * 5_000 + '"}'
    assert "characters of changes are not shown" in str(changes('{"text":"a"}', long))

"""Who reads reads their language: forms and private answers theirs, cards the workspace's."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from bot.errors import DirectoryError
from bot.layout.action_ids import ActionId
from bot.questions.reasons import CANNED
from bot.tasks import Tasks
from bot.words import adding, say, speaking
from slack_sandbox.blockkit.rules import view_errors
from tests.unit.bot.counter_stage import ASK, Counter, a_click, a_submission, an_event, picked
from tests.unit.bot.office import ADA, GUS, ROOT, ROSA
from tests.unit.bot.slack.listeners.test_home import MIA, home_of
from tests.unit.bot.words.test_languages import PSEUDO, longer


@pytest.fixture(autouse=True)
def second_language(counter: Counter) -> Iterator[None]:
    for user_id in (ADA, MIA, ROSA):
        counter.office.directory.add(user_id, locale="eo-US")
    with adding(PSEUDO):
        yield


async def test_a_refusal_is_in_the_language_of_who_clicked(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_click(approval, ActionId.APPROVE, user_id=ROSA))
    assert "øøøø" in counter.private_text(ROSA)


async def test_a_form_is_in_the_language_of_who_opened_it(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_click(approval, ActionId.REJECT))
    view = counter.views.opened[-1]
    assert view["submit"]["text"] == longer("Reject")
    assert view_errors(view) == []


async def test_what_all_read_stays_in_the_language_of_the_workspace(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_click(approval, ActionId.APPROVE))
    stored = await counter.office.storage.approvals.get(approval.approval_id)
    assert stored.decision is not None
    assert "ø" not in json.dumps(counter.office.shown(), ensure_ascii=False)
    assert stored.execution is not None
    assert "ø" not in stored.execution.text


async def test_home_fits_in_longer_words(counter: Counter) -> None:
    home = await home_of(counter)
    assert "øø" in json.dumps(home, ensure_ascii=False)


@pytest.mark.parametrize(
    ("by", "text"),
    [
        (ADA, "yes"),  # a verdict in a reply
        (ROSA, "cancel this request"),
        (ROSA, "make it 7"),  # noted, and read later
        (ADA, "who are you?"),
    ],
)
async def test_a_private_answer_to_a_message_is_in_its_writers_language(
    counter: Counter, by: str, text: str
) -> None:
    await counter.send(an_event(user=by, text=f"<@UBOT> {text}", ts="1800000009.1", thread_ts=ROOT))
    assert "øøøø" in counter.private_text(by)
    assert "ø" not in json.dumps(counter.office.shown(), ensure_ascii=False)


async def test_who_wrote_too_early_is_refused_in_their_language(counter: Counter) -> None:
    counter.office.directory.add(GUS, is_guest=True, locale="eo-US")
    await counter.send(an_event(user=GUS, text="<@UBOT> hello", ts="1800000009.1", thread_ts=ROOT))
    assert "øøøø" in counter.private_text(GUS)


async def test_an_edit_that_came_too_late_is_answered_in_its_writers_language(
    counter: Counter,
) -> None:
    before = {"type": "message", "user": ROSA, "text": ASK, "ts": ROOT}
    after = {**before, "text": f"{ASK} and Ben", "edited": {"user": ROSA, "ts": "1800000009.1"}}
    change = {"subtype": "message_changed", "message": after, "previous_message": before}
    await counter.send(an_event(**change))
    assert "øøøø" in counter.private_text(ROSA)


async def test_a_reason_of_the_form_is_kept_in_the_language_of_the_workspace(
    counter: Counter,
) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_submission(approval, ActionId.REJECT_MODAL, picked(CANNED, "later")))
    stored = await counter.office.storage.approvals.get(approval.approval_id)
    assert stored.decision is not None
    assert stored.decision.reason == "Not now, ask again later"


async def test_who_cannot_be_looked_up_is_answered_in_english(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    counter.office.directory.is_down = True
    await counter.send(a_click(approval, ActionId.APPROVE))
    assert counter.private_text(ADA) == str(DirectoryError())


async def test_the_work_that_follows_a_click_speaks_to_everybody() -> None:
    tasks, heard = Tasks(), list[str]()

    async def work() -> None:
        heard.append(say("button.edit"))

    with speaking("eo"):
        assert say("button.edit") == longer("Edit…")
        tasks.spawn(work())
    await tasks.idle()
    assert heard == ["Edit…"]

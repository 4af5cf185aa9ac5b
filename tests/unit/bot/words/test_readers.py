"""Who reads reads their language: forms and private answers theirs, cards the workspace's."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from bot.core.tasks import Tasks
from bot.errors import DirectoryError
from bot.layout.action_ids import ActionId
from bot.sandbox.blockkit.rules import view_errors
from bot.words import adding, say, speaking
from tests.unit.bot.counter_stage import Counter, a_click
from tests.unit.bot.office import ADA, ROSA
from tests.unit.bot.slack.listeners.test_home import MIA, home_of
from tests.unit.bot.words.test_languages import PSEUDO, longer


@pytest.fixture(autouse=True)
def second_language(counter: Counter) -> Iterator[None]:
    for one in (ADA, MIA, ROSA):
        counter.office.directory.add(one, locale="eo-US")
    with adding(PSEUDO):
        yield


async def test_a_refusal_is_in_the_language_of_who_clicked(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_click(approval, ActionId.APPROVE, user_id=ROSA))
    assert "øøøø" in counter.told(ROSA)


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
    assert "ø" not in stored.run_json


async def test_home_fits_in_longer_words(counter: Counter) -> None:
    home = await home_of(counter)
    assert "øø" in json.dumps(home, ensure_ascii=False)


async def test_who_cannot_be_looked_up_is_answered_in_english(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    counter.office.directory.is_down = True
    await counter.send(a_click(approval, ActionId.APPROVE))
    assert counter.told(ADA) == str(DirectoryError())


async def test_the_work_that_follows_a_click_speaks_to_everybody() -> None:
    tasks, heard = Tasks(), list[str]()

    async def work() -> None:
        heard.append(say("button.edit"))

    with speaking("eo"):
        assert say("button.edit") == longer("Edit…")
        tasks.spawn(work())
    await tasks.idle()
    assert heard == ["Edit…"]

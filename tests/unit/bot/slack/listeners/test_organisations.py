"""Payloads of Enterprise Grid and Slack Connect, whole: who is of the house and who is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.models import call, say
from bot.layout.action_ids import ActionId
from bot.records.approval import Status
from bot.slack.home import view
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import (
    Counter,
    a_click,
    a_submission,
    an_event,
    is_untouched,
    typed,
)
from tests.unit.bot.office import CHANNEL, Office
from tests.unit.bot.slack.listeners.test_commands import send
from tests.unit.bot.slack.listeners.test_home import clicked, opened
from tests.unit.bot.slack.listeners.test_shortcuts import chosen, everywhere

WIM, EVE, IDA = "W0WIM", "U9EVE", "W0IDA"
GRID: dict[str, Any] = {
    "enterprise": {"id": "E1", "name": "Acme"},
    "user": {
        "id": WIM,
        "username": "wim",
        "name": "wim",
        "team_id": "T1",
        "enterprise_id": "E1",
        "enterprise_name": "Acme",
    },
}
INSTALLED: dict[str, dict[str, Any]] = {
    "in one workspace": {
        "team": {"id": "T1", "domain": "acme", "enterprise_id": "E1", "enterprise_name": "Acme"},
        "is_enterprise_install": False,
    },
    "in the organisation": {"team": None, "is_enterprise_install": True},
}
OTHER: dict[str, Any] = {
    "team": {"id": "T2", "domain": "acme-labs", "enterprise_id": "E1", "enterprise_name": "Acme"},
    "is_enterprise_install": False,
}
# Slack names the organisation, not a workspace, as that of a user there.
ABROAD: dict[str, dict[str, Any]] = {
    "another workspace": OTHER,
    "the organisation": {**OTHER, "team": {"id": "E1", "domain": "acme-org"}},
    "no workspace": {"team": None, "is_enterprise_install": True},
}
AWAY = {**GRID, "user": {**GRID["user"], "team_id": "E1"}}
PLACES = {
    **{where: {**GRID, **INSTALLED[where]} for where in INSTALLED},
    **{where: {**AWAY, **ABROAD[where]} for where in ABROAD},
}
CONNECT: dict[str, Any] = {
    "team": {"id": "T9", "domain": "other"},
    "enterprise": None,
    "is_enterprise_install": False,
    "user": {"id": EVE, "username": "eve", "name": "eve", "team_id": "T9"},
}
PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
NOT_OURS = "Only people in this workspace can do this."


@pytest.fixture
async def counter(storage: SqliteStores) -> Counter:
    office = Office(storage, [PAY, say("Paid.")])
    office.directory.add(WIM, name="Wim Vos", enterprise_id="E1")
    # Of the same organisation, in a channel that both workspaces share; and of no workspace here.
    office.directory.add(IDA, name="Ida", team_id="T2", enterprise_id="E1", is_external=True)
    office.directory.add(EVE, name="Eve", team_id="T9", is_external=True)
    office.directory.channels[CHANNEL] |= {WIM, EVE, IDA}
    counter = Counter.on(office)
    await counter.send(an_event())
    return counter


async def commanded(counter: Counter, text: str, **fields: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((await send(counter, text, **fields)).body)
    return result


@pytest.mark.parametrize("where", PLACES)
async def test_a_click_of_the_organisation_counts(counter: Counter, where: str) -> None:
    """Of a member who looks from elsewhere Slack itself says that they are of this one, too."""
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    assert (await counter.send({**click, **PLACES[where]})).status == 200
    assert counter.office.ran == [("pay", ("Mia", 5, "card"))]


@pytest.mark.parametrize("where", INSTALLED)
async def test_a_form_of_the_organisation_counts(counter: Counter, where: str) -> None:
    approval = await counter.office.the_approval()
    form = a_submission(approval, ActionId.REJECT_MODAL, typed("reason", "not today"))
    form["view"] |= {"app_installed_team_id": "T1", "bot_id": "B1", "root_view_id": "V1"}
    await counter.send({**form, **GRID, **INSTALLED[where], "response_urls": []})
    over = await counter.office.storage.approvals.get(approval.approval_id)
    assert (over.status, over.decision and over.decision.by) == (Status.REJECTED, WIM)


@pytest.mark.parametrize("where", INSTALLED)
async def test_home_and_shortcuts_of_the_organisation_have_what_waits(
    counter: Counter, where: str
) -> None:
    event = opened(WIM) | {"authorizations": [authorized(where)], "context_enterprise_id": "E1"}
    await counter.send(event)
    await counter.send({**clicked(view.ALL_MINE), **GRID, **INSTALLED[where]})
    first, second = [json.dumps(home) for who, home in counter.views.published if who == WIM]
    assert "1 waiting for you" in first
    assert "Pay 5 to Mia" in first
    assert first != second
    await counter.send({**everywhere(WIM), **GRID, **INSTALLED[where]})
    assert "Pay 5 to Mia" in json.dumps(counter.views.opened[-1])


def authorized(where: str) -> dict[str, Any]:
    is_whole = bool(INSTALLED[where]["is_enterprise_install"])
    return {
        "enterprise_id": "E1",
        "team_id": None if is_whole else "T1",
        "user_id": "UBOT",
        "is_bot": True,
        "is_enterprise_install": is_whole,
    }


@pytest.mark.parametrize("team_id", ["T1", "T2"])
async def test_a_command_of_the_organisation_lists_what_waits(
    counter: Counter, team_id: str
) -> None:
    more = {"enterprise_id": "E1", "enterprise_name": "Acme", "is_enterprise_install": "false"}
    answer = await commanded(counter, "list", user_id=WIM, team_id=team_id, **more)
    assert "Pay 5 to Mia" in json.dumps(answer)


@pytest.mark.parametrize("where", ABROAD)
async def test_home_and_shortcuts_from_elsewhere_in_the_organisation_have_what_waits(
    counter: Counter, where: str
) -> None:
    await counter.send({**everywhere(WIM), **AWAY, **ABROAD[where]})
    assert "Pay 5 to Mia" in json.dumps(counter.views.opened[-1])
    await counter.send({**clicked(view.ALL_MINE), **AWAY, **ABROAD[where]})
    assert [who for who, _ in counter.views.published] == [WIM]


async def test_what_is_done_from_elsewhere_is_on_record_for_this_workspace(
    counter: Counter,
) -> None:
    more = {"enterprise_id": "E1", "enterprise_name": "Acme", "is_enterprise_install": "false"}
    await commanded(counter, "quiet 22:00-07:00", user_id=WIM, team_id="T2", **more)
    assert WIM in await counter.office.storage.people.of("T1", [WIM])
    await counter.send({**chosen(WIM), **AWAY, **OTHER})
    assert "An agent is already working in this thread" in counter.private_text(WIM), (
        "it is the same thread"
    )
    assert counter.office.notices.askers == []


@pytest.mark.parametrize("where", [*ABROAD, "in one workspace"])
async def test_who_is_in_the_organisation_and_not_in_the_workspace_decides_nothing(
    counter: Counter, where: str
) -> None:
    origin = {**ABROAD, **INSTALLED}[where]
    ida = {**AWAY, "user": {**AWAY["user"], "id": IDA}}
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    await counter.send({**click, **ida, **origin})
    assert counter.private_text(IDA) == NOT_OURS
    await is_untouched(counter)


@pytest.mark.parametrize(
    "more",
    [
        {"enterprise": {"id": "E9", "name": "Other"}, "team": {"id": "T2", "domain": "x"}},
        {"enterprise": None, "team": {"id": "T2", "domain": "x"}},
        {"enterprise": {"id": "", "name": ""}, "team": {"id": "T2", "domain": "x"}},
    ],
    ids=["another", "none", "empty"],
)
async def test_a_payload_of_no_or_another_organisation_counts_for_nobody(
    counter: Counter, more: dict[str, Any]
) -> None:
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    await counter.send({**click, **AWAY, **more})
    assert counter.private_text(WIM) == NOT_OURS
    await is_untouched(counter)


async def test_another_company_in_a_shared_channel_decides_nothing(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send({**a_click(approval, ActionId.APPROVE), **CONNECT})
    assert counter.private_text(EVE) == NOT_OURS
    form = a_submission(approval, ActionId.REVIEW_MODAL, {})
    # Slack says here where the app is, and not where they are.
    form["view"] |= {"app_installed_team_id": "T1", "bot_id": "B1"}
    answer = await counter.send({**form, **CONNECT, "response_urls": []})
    assert NOT_OURS in answer.body
    await is_untouched(counter)


async def test_another_company_has_no_home_no_shortcuts_and_no_commands(counter: Counter) -> None:
    await counter.send(opened(EVE) | {"is_ext_shared_channel": True})
    await counter.send({**clicked(view.NEXT), **CONNECT})
    await counter.send({**everywhere(EVE), **CONNECT})
    await counter.send({**chosen(EVE), **CONNECT})
    command = await commanded(counter, "list", user_id=EVE, team_id="T9")
    drawn = [*(home for _, home in counter.views.published), *counter.views.opened, command]
    assert [body for body in drawn if "Pay" in json.dumps(body)] == []
    assert len([body for body in drawn if NOT_OURS in json.dumps(body)]) >= 3
    assert counter.office.notices.askers == []
    await is_untouched(counter)


@pytest.mark.parametrize(
    "words", ["delegate <@{}> until tomorrow", "away until tomorrow for <@{}>"]
)
async def test_nobody_hands_a_right_to_another_company(counter: Counter, words: str) -> None:
    answer = await commanded(counter, words.format(EVE), user_id=WIM, team_id="T1")
    assert "Choose an active member" in answer["text"]
    current = counter.office.storage.delegations.current("T1", now_ms=counter.office.clock())
    assert list(await current) == []


async def test_words_of_another_company_begin_nothing(counter: Counter) -> None:
    calls = counter.office.model.calls
    event = an_event(
        user=EVE,
        text="<@UBOT> pay Eve",
        ts="1800000077.000100",
        team="T9",
        user_team="T9",
        source_team="T9",
        user_profile={"name": "eve", "team": "T9", "is_restricted": False},
    )
    await counter.send(event | {"is_ext_shared_channel": True, "event_context": "4-x"})
    assert counter.office.model.calls == calls
    assert "workspace" in counter.private_text(EVE)
    await is_untouched(counter)

"""Agents that people speak to by name, in any channel: a thread keeps the one that began it."""

from __future__ import annotations

from agents import Agent, ChatModelAgent, Runner, ScriptedModel
from agents.models import say
from bot.threads.agents import Catalog
from bot.threads.model import Thread
from bot.threads.runs.history import ThreadHistory
from bot.words import say as words
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, CHANNEL, ROSA, THREAD_ID, Office

LATER = "1800000100.000001"


def an_agent(name: str) -> ChatModelAgent:
    return ChatModelAgent(name=name, model=ScriptedModel([say(f"I am {name}.")] * 3))


def an_office(storage: SqliteStores) -> Office:
    office = Office(storage, [])

    def runner(agent: Agent) -> Runner:
        log = ThreadHistory(storage.log)
        return Runner(agent, checkpoint_store=storage.checkpoints, message_log=log)

    async def no_name(_: str) -> str:
        return ""

    catalog = Catalog(
        {"*": an_agent("rest"), "@deploy": an_agent("deployer"), "@search": an_agent("searcher")},
        make_runner=runner,
        checkpoints=storage.checkpoints,
        channel_name=no_name,
    )

    async def runner_of(thread: Thread) -> Runner:
        return await catalog.runner(thread)

    object.__setattr__(office.turns, "runners", runner_of)
    object.__setattr__(office.inbox, "spoken_to", catalog.spoken_to)
    return office


async def test_the_first_message_names_the_agent_of_its_thread(storage: SqliteStores) -> None:
    office = an_office(storage)
    await office.hear("<@UBOT> Deploy: payments 1.4.2")
    assert office.shown() == ["I am deployer."]
    (read,) = await storage.inbox.of_turn(THREAD_ID, 1)
    assert read.text == "payments 1.4.2"
    await office.hear("and search, too", ts=LATER)
    assert office.shown()[-1] == "I am deployer."


async def test_other_words_before_a_colon_name_nobody(storage: SqliteStores) -> None:
    office = an_office(storage)
    await office.hear("<@UBOT> note: this is new")
    assert office.shown() == ["I am rest."]
    (read,) = await storage.inbox.of_turn(THREAD_ID, 1)
    assert read.text == "note: this is new"


async def test_another_agent_begins_in_another_thread(storage: SqliteStores) -> None:
    office = an_office(storage)
    await office.hear("<@UBOT> deploy: payments")
    await office.hear("<@UBOT> search: payments", ts=LATER)
    told = words("refuse.agent_of_thread", name="search")
    assert office.notifier.whispers == [(ROSA, told)]
    assert office.shown() == ["I am deployer."]


async def test_what_people_say_to_each_other_is_left_alone(storage: SqliteStores) -> None:
    office = an_office(storage)
    await office.hear("<@UBOT> deploy: payments")
    await office.hear("search: payments", user_id=ADA, ts=LATER)
    assert office.notifier.whispers == []
    assert (await storage.threads.get(f"T1:{CHANNEL}:1800000000.000001")).agent == "deploy"

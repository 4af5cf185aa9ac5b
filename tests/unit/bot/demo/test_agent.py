"""The demo agent, as people meet it: the flows of the demonstration, through the runner."""

from __future__ import annotations

import pytest

from agents.core.asking.answers import Cancelled, Expired, NoApprovers, Withdrawn
from agents.core.asking.infos import FollowUpInfo, ReviewEditInfo
from agents.core.codec import Json
from agents.core.errors import ResumeDataError
from agents.core.observers import ToolOutcome
from agents.tools.texts import denied_text
from bot.demo.agent import Effect
from bot.demo.replies import Done, report
from bot.words import say
from tests.unit.bot.talk import Talk

DEPLOY = "deploy payments 1.4.2 to production"
LIVE = "payments 1.4.2 is live in production with 3 replicas"


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def talk(request: pytest.FixtureRequest) -> Talk:
    return Talk(streaming=request.param)


async def test_other_words_get_the_commands(talk: Talk) -> None:
    said = await talk.say("hello")
    assert said.startswith("This demo follows fixed rules.")
    assert "deploy payments 1.4.2 to production" in said


async def test_status_needs_nobody(talk: Talk) -> None:
    said = await talk.say("<@U0BOT> status of payments")
    assert talk.asked == ()
    assert "payments is healthy: 1.4.1 in staging with 1 replica, 1.4.1 in production" in said
    assert talk.effects == []


async def test_deployment_asks_and_says_why(talk: Talk) -> None:
    said = await talk.say(f"<@U0BOT> {DEPLOY}")
    info = talk.question(ReviewEditInfo)
    assert info.why == said
    assert "passed all checks" in info.why
    assert info.title == "Deploy payments 1.4.2 to production"
    assert info.arguments == {
        "service": "payments",
        "version": "1.4.2",
        "environment": "production",
        "replicas": 3,
    }
    assert info.preview == "Replaces 1.4.1, one replica after another."
    assert talk.effects == []


async def test_approved_deployment_runs_and_is_told(talk: Talk) -> None:
    await talk.say(DEPLOY)
    said = await talk.decide(talk.question(ReviewEditInfo).accept(by="U2"))
    assert said == "Done. To go back: “roll back payments in production”."
    assert talk.effects == [Effect("deploy", LIVE)]
    assert "1.4.2 in production" in await talk.say("status of payments")


async def test_rejected_deployment_leaves_the_reason_to_its_card(talk: Talk) -> None:
    await talk.say(DEPLOY)
    said = await talk.decide(talk.question(ReviewEditInfo).reject("freeze until\nMonday"))
    assert said == "It was rejected. It did not run, and I will not try it again."
    assert talk.outcomes == [ToolOutcome.REJECTED]
    assert talk.effects == []


@pytest.mark.parametrize(
    ("key", "end"),
    [
        ("form.reason_later_told", "It did not run. You can ask me again later."),
        ("form.reason_fix_told", "Tell me the right details, and I will ask again."),
        ("form.reason_never_told", "It did not run, and I will not try it again."),
    ],
)
async def test_a_reason_of_the_form_says_whether_it_asks_again(key: str, end: str) -> None:
    talk = Talk()
    await talk.say(DEPLOY)
    said = await talk.decide(talk.question(ReviewEditInfo).reject(f"{say(key)}: freeze"))
    assert said.endswith(end)


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (
            Expired(waited="8 hours"),
            (
                "It did not run, because no one answered in time. "
                "No one rejected it; you can ask me again."
            ),
        ),
        (Cancelled(by="U1"), "It was cancelled, so it did not run."),
        (Cancelled(by="U1", reason="wrong one"), "It was cancelled, so it did not run."),
        (Withdrawn(by="U1", reason="a typo"), "It was taken back, so it did not run."),
        (
            NoApprovers(reason="Ask in <#C0OPSOPS01>."),
            "It did not run: no one here can approve it. Its card says why.",
        ),
    ],
)
async def test_a_deployment_that_nobody_rejected_is_told_as_it_ended(
    answer: object, reply: str
) -> None:
    talk = Talk()
    await talk.say(DEPLOY)
    assert await talk.decide(answer) == reply
    assert talk.effects == []


def test_what_a_rule_denies_is_told_by_its_reason_alone() -> None:
    arguments = {"service": "vault", "version": "1.0.0", "environment": "production"}
    done = Done("deploy", arguments, denied_text("deploy", "Not from here."))
    said = "The deployment of vault 1.0.0 to production was not possible, and nothing ran"
    assert report([done]) == f"{said}: Not from here."


@pytest.mark.parametrize("wrong", [{"replicas": 0}, {"replicas": 51}, {"version": "latest"}])
async def test_edit_that_does_not_fit_changes_nothing(wrong: dict[str, Json]) -> None:
    talk = Talk()
    await talk.say(DEPLOY)
    before, info = talk.asked, talk.question(ReviewEditInfo)
    with pytest.raises(ResumeDataError, match=next(iter(wrong))):
        await talk.decide(info.edit({**info.arguments, **wrong}))
    assert talk.effects == []
    assert await talk.runner.pending("thread#1") == before
    talk.asked = before
    await talk.decide(info.accept())
    assert talk.done == [LIVE]


async def test_two_deployments_are_two_questions_decided_in_any_order(talk: Talk) -> None:
    await talk.say("deploy payments 1.4.2 and search 2.0.1 to production")
    first, _ = talk.asked
    assert talk.question(ReviewEditInfo, 1).title == "Deploy search 2.0.1 to production"
    assert talk.question(ReviewEditInfo).why == talk.question(ReviewEditInfo, 1).why
    accept = talk.question(ReviewEditInfo, 1).accept()
    assert await talk.decide(None, accept) == ""
    assert talk.asked == (first,)
    assert talk.done == ["search 2.0.1 is live in production with 3 replicas"]
    said = await talk.decide(talk.question(ReviewEditInfo).reject("not today"))
    assert said == (
        "This is how it ended:\n"
        "- The deployment of payments 1.4.2 to production was rejected. "
        "It did not run, and I will not try it again.\n"
        "- The deployment of search 2.0.1 to production: done."
    )


async def test_missing_values_are_asked_for(talk: Talk) -> None:
    await talk.say("deploy payments")
    assert talk.question(FollowUpInfo).questions == (
        "Which version of payments do you want to deploy?",
        "To which environment: staging or production?",
    )
    await talk.decide("to prod please, v1.4.2.")
    assert talk.question(ReviewEditInfo).title == "Deploy payments 1.4.2 to production"
    await talk.decide(talk.question(ReviewEditInfo).accept())
    assert talk.done == [LIVE]


async def test_answer_that_cannot_be_read_is_asked_for_once_more(talk: Talk) -> None:
    await talk.say("deploy payments")
    said = await talk.decide("the newest one in production")
    assert "ask once more" in said
    assert talk.question(FollowUpInfo).questions == (
        "Which version of payments do you want to deploy?",
    )
    await talk.decide("1.4.2")
    assert talk.question(ReviewEditInfo).title == "Deploy payments 1.4.2 to production"


async def test_second_answer_that_cannot_be_read_ends_it(talk: Talk) -> None:
    await talk.say("deploy payments")
    await talk.decide("dunno")
    said = await talk.decide("really no idea")
    assert "I still could not read a version" in said
    assert talk.asked == ()
    assert talk.effects == []


@pytest.mark.parametrize("word", ["cancel", "Never mind.", "stop please"])
async def test_answer_can_call_it_off(word: str) -> None:
    talk = Talk()
    await talk.say("deploy payments")
    assert await talk.decide(word) == "All right, I deploy nothing."


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (Expired(), "Nobody answered my question in time"),
        (Cancelled(), "My question was cancelled"),
        (Withdrawn(), "My question was taken back"),
    ],
)
async def test_a_question_that_is_not_answered_is_told_as_it_ended(
    answer: object, end: str
) -> None:
    talk = Talk()
    await talk.say("deploy payments")
    assert end in await talk.decide(answer)
    assert talk.asked == ()


async def test_one_thing_is_asked_at_a_time() -> None:
    talk = Talk()
    said = await talk.say("deploy payments", "deploy search")
    assert len(talk.asked) == 1
    assert "tell me about search again later" in said
    await talk.decide("1.4.2 staging")
    assert talk.question(ReviewEditInfo).title == "Deploy payments 1.4.2 to staging"


async def test_several_messages_are_done_together() -> None:
    talk = Talk()
    said = await talk.say("status of search", "refund order 7 5")
    assert "healthy" not in said
    assert len(talk.asked) == 1
    said = await talk.decide(talk.question(ReviewEditInfo).accept())
    assert "search is healthy" in said
    assert "- The refund of 5 for order 7: done." in said

"""Cases of the kinds `check` and `explain`: what a policy file says, without a conversation."""

from __future__ import annotations

from datetime import timedelta

from bot.config.durations import format_duration
from bot.policy.evaluation.evaluate import Judged, PolicyEvaluator
from bot.policy.evaluation.explain import shortage_of
from bot.policy.evaluation.merge import Refusal, plain_name
from bot.policy.model import PolicyFile
from bot.policy.parser.checks import check_all
from bot.policy.parser.lookups import SlackFacts
from bot.policy.parser.problems import PolicyError
from bot.records.terms import Terms
from bot.rehearsal.case_file import Case
from bot.rehearsal.world import (
    BOT,
    WorldLookups,
    members_of,
    policy_world,
    question_of,
    ruling_in_code,
)


async def play_check(case: Case) -> dict[str, object]:
    """Check the text of a case as a policy file; return the errors."""
    is_down = case.data.get("lookups") == "fail"
    slack = SlackFacts(lookups=WorldLookups(world=case.world, is_down=is_down), bot_user_id=BOT)
    errors: list[object] = []
    try:
        await check_all(str(case.data["text"]).encode(), policy_world(case.world), slack)
    except PolicyError as error:
        errors = [
            {"code": problem.code, "key": problem.key, "line": problem.line}
            for problem in error.problems
        ]
    return {"errors": errors}


async def play_explain(case: Case) -> dict[str, object]:
    """Evaluate the policy of a case on its call; return what the case expects about it."""
    call = case.data["call"]
    question = question_of(case.world, call)
    rulebook = PolicyEvaluator(PolicyFile.model_validate(case.policy))
    judged = await rulebook.judge(
        question, members_of(case.world), await ruling_in_code(call.get("code", ()))
    )
    observed = picture(judged)
    if isinstance(judged.ruling, Terms):
        members = members_of(case.world, case.start_ms)
        known = {name: await members(group) for name, group in judged.ruling.groups.items()}
        groups = {name: people for name, people in known.items() if people is not None}
        observed["undecidable"] = shortage_of(judged, question.requesters, groups)
    always = ("effect",) if case.is_strict else ()
    return {name: observed.get(name) for name in (*always, *case.data["expect"])}


def picture(judged: Judged) -> dict[str, object]:
    """Return an evaluation in the words of cases, with all terms if people are asked."""
    picture: dict[str, object] = {
        "effect": judged.effect,
        "names": list(judged.names),
        "rules": {step.name: step.word for step in judged.steps},
    }
    if isinstance(judged.ruling, Refusal):
        picture["reason"] = judged.ruling.reason
    if isinstance(judged.ruling, Terms):
        terms = judged.ruling
        picture |= terms.model_dump(mode="json") | {
            "rules": picture["rules"],
            "requirements": [
                [{plain_name(requirement.name): requirement.count} for requirement in stage.approve]
                for stage in terms.stages
            ],
            "edit": {"yes": True, "no": False}.get(terms.edit, terms.edit),
            "expires": format_duration(timedelta(seconds=terms.expires_s)),
        }
    return picture

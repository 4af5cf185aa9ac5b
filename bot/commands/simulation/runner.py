"""Run a case of any kind, and report the differences."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from importlib import import_module

from bot.commands.simulation.cases import Case, Difference
from bot.commands.simulation.known import (
    BOT,
    WorldLookups,
    members_of,
    policy_world,
    question_of,
    ruling_in_code,
)
from bot.config import stores
from bot.config.durations import format_duration
from bot.config.settings import Settings
from bot.errors import BotError, InvalidSettingsError
from bot.policy.evaluation.evaluate import Judged, PolicyEvaluator
from bot.policy.evaluation.explain import shortage_of
from bot.policy.evaluation.merge import Refusal, plain_name
from bot.policy.model import PolicyFile
from bot.policy.parser.checks import check_all
from bot.policy.parser.lookups import SlackFacts
from bot.policy.parser.problems import PolicyError
from bot.policy.parser.settings import settings_policy
from bot.policy.parser.source import read_source
from bot.policy.parser.structure import read_structure
from bot.records.terms import Terms
from bot.stores import Stores
from slack_sandbox.errors import RefusedError
from storage.chain import Head, Seal, Verifier

PATIENCE_S = 60
"""Timeout of one case, in seconds of real time."""
_Rehearse = Callable[[Case, Stores], Awaitable[list[Difference]]]
_Play = Callable[[Case], Awaitable[dict[str, object]]]
_TOKENS = {"SLACK_BOT_TOKEN": "xoxb-case", "SLACK_APP_TOKEN": "xapp-case"}


async def examine(case: Case) -> list[Difference]:
    """Run a case.

    Args:
        case: A case of a known kind.

    Returns:
        The differences; empty without any. A case that cannot be run as written, or does not end,
        is a difference.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await _KINDS[case.kind](case)
    except (BotError, RefusedError, LookupError, ValueError) as error:
        return [_difference(case, "case", "it can be played", f"{type(error).__name__}: {error}")]
    except TimeoutError:
        return [_difference(case, "case", "it ends", f"nothing for {PATIENCE_S} s")]


async def _check(case: Case) -> list[Difference]:
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
    return _compare(case, {"errors": errors})


async def _explain(case: Case) -> list[Difference]:
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
    return _compare(case, {name: observed.get(name) for name in (*always, *case.data["expect"])})


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


async def _flow(case: Case) -> list[Difference]:
    # Imported here, because it imports the whole bot, which takes a second.
    rehearse: _Rehearse = import_module("bot.commands.simulation.rehearse").rehearse
    storage = stores.in_memory()
    await storage.open()
    try:
        return await rehearse(case, storage)
    finally:
        await storage.close()


async def _settings(case: Case) -> list[Difference]:
    environ, expect = dict(case.data["environ"]), case.data["expect"]
    if case.data.get("command") == "demo":
        demo = import_module("bot.commands.demo")  # see `_flow`
        environ = demo.demo_environment(environ, "http://127.0.0.1/", "xoxb-1", "xapp-1", ["C0OPS"])
    try:
        settings = Settings.load({**_TOKENS, **environ})
    except InvalidSettingsError as error:
        names = [name for name in expect.get("names", ()) if name in str(error)]
        return _compare(case, {"starts": False, "names": names})
    observed: dict[str, object] = {"starts": True, "approvers": deciders_of(settings)}
    if settings.policy is None:
        observed["policy"] = settings_policy(settings)
    return _compare(case, {name: observed.get(name) for name in ("starts", *expect)})


def deciders_of(settings: Settings) -> str:
    """Return the approvers by the settings: `here`, or `named` people."""
    if settings.policy is None:
        file = PolicyFile.model_validate(settings_policy(settings))
    else:
        read, _ = read_structure(read_source(settings.policy.read_bytes())[0])
        assert read is not None  # noqa: S101 - a policy of ours
        file = read
    names = [name for need in file.defaults.approve or () for name in need.from_]
    return "here" if all(file.groups[name].here for name in names) else "named"


async def _audit(case: Case) -> list[Difference]:
    head = Head(**case.data["head"]) if "head" in case.data else None
    verifier = Verifier(Seal(bytes.fromhex(case.data.get("key_hex", ""))), head)
    for entry in case.data["entries"]:
        verifier.add(entry)
    verdict = verifier.end()
    if verdict.fault is None:
        return _compare(case, {"ok": True, "seq": verdict.seq, "hash": verdict.hash})
    return _compare(case, {"ok": False, "at": verdict.fault.at, "fault": verdict.fault.wrong})


async def _line(case: Case) -> list[Difference]:
    play: _Play = import_module("bot.commands.simulation.lines").play_line  # see `_flow`
    return _compare(case, await play(case))


async def _append(case: Case) -> list[Difference]:
    play: _Play = import_module("bot.commands.simulation.lines").play_append  # see `_flow`
    return _compare(case, await play(case))


_KINDS: Mapping[str, Callable[[Case], Awaitable[list[Difference]]]] = {
    "check": _check,
    "explain": _explain,
    "flow": _flow,
    "settings": _settings,
    "audit": _audit,
    "append": _append,
    "cli": _line,
}


def _compare(case: Case, observed: Mapping[str, object]) -> list[Difference]:
    expected = case.data["expect"]
    return [
        _difference(case, name, expected.get(name), observed.get(name))
        for name in sorted({*expected, *observed})
        if expected.get(name) != observed.get(name)
    ]


def _difference(case: Case, key: str, expected: object, observed: object) -> Difference:
    return Difference(case=case.id, step=0, key=key, expected=expected, found=observed)

"""`countersign policy explain`: each rule, what settled it, and the ruling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.commands.cli import FAILED, main
from tests.support.policies import CASES, POLICIES, WORLD

TOOLS = {name: {**tool} for name, tool in WORLD["tools"].items()}


def write(directory: Path, policy: object, call: dict[str, Any]) -> tuple[str, str]:
    """Write a policy and a call; return their paths."""
    file, request = directory / "policy.yaml", directory / "call.json"
    file.write_text(policy if isinstance(policy, str) else yaml.safe_dump(policy))
    request.write_text(json.dumps({"world": {"tools": TOOLS}, **call}))
    return str(file), str(request)


def printed(directory: Path, policy: object, call: dict[str, Any], *options: str) -> str:
    """Run the command; return what it says."""
    said: list[str] = []
    argv = ["policy", "explain", *options, *write(directory, policy, call)]
    assert main(argv, environ={}, say=said.append) == 0
    return "\n".join(said)


@pytest.mark.parametrize("name", ["C004", "C005"])
def test_case(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    *options, policy, call = case["args"][2:]
    text = printed(
        tmp_path,
        POLICIES[policy.removesuffix(".yaml")],
        CASES[call.removesuffix(".json")]["call"],
        *options,
    )
    for word in case["expect"].get("says", ()):
        assert word in text
    wanted = case["expect"].get("json", {})
    assert not wanted or wanted.items() <= json.loads(text).items()


def test_it_says_what_settled_each_rule(tmp_path: Path) -> None:
    call = {"tool": "refund", "args": {"order_id": "1", "amount": "7"}}
    *lines, refused = printed(tmp_path, POLICIES["base"], call).splitlines()
    assert lines == [
        "read-only      false      tags: they are money",
        "no-drop        false      tool: it is refund",
        'tiny-refunds   undecided  amount le 5: it is a text: "7"',
        'huge-refunds   undecided  amount gt 10000: it is a text: "7"',
        'big-refunds    undecided  amount gt 500: it is a text: "7"',
        "small-refunds  true",
        "",
        "blocked by huge-refunds",
        "  because    Too much.",
    ]
    assert refused.startswith("  refused    by the tool itself, before any rule: the arguments do")
    assert refused.endswith("amount: '7' is not of type 'number'")


def test_it_says_who_is_asked_and_how_long(tmp_path: Path) -> None:
    text = printed(tmp_path, POLICIES["base"], {"tool": "search", "args": {"query": "x"}})
    assert text.endswith("allowed by read-only")
    call = {"tool": "deploy", "args": {"service": "a", "version": "1", "env": "production"}}
    lines = printed(tmp_path, POLICIES["base"], call).splitlines()
    assert "needs approval by prod" in lines
    assert "  needs      1 of sre (stage team)" in lines
    assert "  needs      1 of leads (stage lead)" in lines
    assert "  edited by  anyone who can approve now" in lines
    assert "  expires    8h after the request" in lines
    assert "  reminders  15m, 45m, 1h45m" in lines
    assert "  risk       high, confirmed" in lines


def test_it_says_why_a_program_is_not_allowed_what_an_agent_is(tmp_path: Path) -> None:
    call = {"tool": "search", "args": {"query": "x"}, "program": {"name": "ci"}}
    first, *lines = printed(tmp_path, POLICIES["base"], call).splitlines()
    assert first.startswith("read-only      undecided  origin or program: a rule that allows")
    assert "allowed by read-only" not in lines


def everything() -> dict[str, Any]:
    """A policy that says all that can be said of an ask."""
    ask = {
        "approve": [{"from": ["duty", "here"]}],
        "exclude": ["requesters", "editors"],
        "edit": {"by": ["approvers", "requesters"]},
        "reject": {"count": 2},
        "on_expiry": "cancel_run",
        "remind": "never",
        "escalate": [{"after": "1h", "add": ["room"]}],
        "reason": {"approve": "required", "reject": "required"},
        "grants": {"max_time": "2h", "max_uses": 5, "vary": ["host"]},
        "break_glass": {"by": ["room"], "alert": "C0ALERT"},
    }
    rotation = {"start": "2026-11-02T09:00", "every": "1w", "people": ["U0ADA"]}
    return {
        "version": 1,
        "timezone": "Europe/Berlin",
        "groups": {
            "duty": {"rotation": rotation},
            "here": {"here": True},
            "room": {"channels": ["C0LEADS"]},
        },
        "rules": [],
        "default": {"ask": ask},
    }


def test_it_says_all_that_a_rule_can_say(tmp_path: Path) -> None:
    lines = printed(tmp_path, everything(), {"tool": "sql"}).splitlines()
    for line in (
        "    duty     on call: U0ADA, in shifts of 1w",
        "    here     members of the thread's channel",
        "    room     members of C0LEADS",
        "  edited by  approvers and requesters",
        "  rejected   by 2",
        "  expires    8h after the request, which ends the run",
        "  reminders  never",
        "  later      after 1h, room for duty+here",
        "  reasons    to approve and to reject",
        "  grants     for 2h, 5 times, host can vary",
        "  override   by room",
    ):
        assert line in lines


@pytest.mark.parametrize(
    ("usergroups", "said", "shortage"),
    [
        ({"S0SRE": ["U0ADA"]}, ["U0ADA"], "nobody is left"),
        ({"S0SRE": ["U0ADA", "U0BEN"]}, ["U0ADA"], ""),
        ({}, ["U0ADA"], ""),
    ],
)
def test_it_says_when_nobody_can_decide(
    usergroups: dict[str, list[str]], said: list[str], shortage: str, tmp_path: Path
) -> None:
    call = {
        "tool": "sql",
        "args": {"statement": "x"},
        "said": said,
        "world": {"tools": TOOLS, "usergroups": usergroups},
    }
    text = printed(tmp_path, POLICIES["one"], call)
    assert ("can approve it" in text) is bool(shortage)
    assert shortage in text


def test_ids_of_code_that_are_nobodys_are_named(tmp_path: Path) -> None:
    call = {"tool": "sql", "code": [{"rule": "ask", "approvers": ["U-OPS"]}]}
    data = json.loads(printed(tmp_path, POLICIES["allow-all"], call, "--json"))
    assert data["undecidable"] == "no one has the ID U-OPS"
    assert data["rule"] == "code:ask"


def test_a_denial_of_code_is_named(tmp_path: Path) -> None:
    call = {"tool": "sql", "code": [{"rule": "stop", "deny": "No."}]}
    data = json.loads(printed(tmp_path, POLICIES["one"], call, "--json"))
    assert (data["effect"], data["rule"], data["reason"]) == ("deny", "code:stop", "No.")


@pytest.mark.parametrize(
    ("policy", "call", "fault"),
    [
        ("version: 1\nrules: [", {"tool": "sql"}, "not_yaml"),
        ({"version": 1, "rules": []}, {"tool": "sql"}, "missing_key"),
        (POLICIES["one"], {"tool": "unheard"}, "the tool unheard isn't described"),
        (POLICIES["one"], {"tool": "sql", "arg": 1}, "arg: there is no such key; did you mean"),
        (POLICIES["one"], {}, "call.json, tool: is missing"),
    ],
)
def test_what_cannot_be_used_is_said(
    policy: object,
    call: dict[str, Any],
    fault: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["policy", "explain", *write(tmp_path, policy, call)], environ={}) == FAILED
    assert fault in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"tool": "sql", "tool": "deploy"}', "the key 'tool' is there twice; remove one of them"),
        ('{"tool": "sql", "args": {"a": 1, "a": 2}}', "the key 'a' is there twice"),
        ('{"tool": "sql",\n}', "call.json:2: not JSON: "),
        ('{"tool": "sql", "args": {"a": NaN}}', "call.json: NaN is no number of JSON; write"),
        ("\udc80", "call.json: not JSON"),
        ("[" * 100_000, "call.json: not JSON"),
        ("[]", "call.json: should be a map, not []"),
        ('{"tool": "sql", "said": "U0ADA"}', "said: should be a list, not 'U0ADA'"),
    ],
)
def test_a_call_that_cannot_be_read_is_said(
    text: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, call = write(tmp_path, POLICIES["one"], {"tool": "sql"})
    Path(call).write_bytes(text.encode(errors="surrogateescape"))
    assert main(["policy", "explain", file, call], environ={}) == FAILED
    said = capsys.readouterr().err
    assert fault in said
    assert "pydantic" not in said


def test_files_that_are_not_there_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, call = write(tmp_path, POLICIES["one"], {"tool": "sql"})
    for paths in ([file, "no.json"], ["no.yaml", call]):
        assert main(["policy", "explain", *paths], environ={}) == FAILED
        assert "can't read" in capsys.readouterr().err


def test_a_call_can_be_written_as_a_case_that_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = {"tool": "refund", "args": {"order_id": "1", "amount": 1.5e17}, "said": ["U0ROSA"]}
    rotation = {
        "start": "2026-11-02T09:00",
        "every": "1w",
        "people": ["U0CLEO"],
        "overrides": [{"from": "2026-12-24T09:00", "until": "2026-12-27T09:00", "user": "U0SAM"}],
        "timezone": "UTC",
    }
    policy = {
        "version": 1,
        "groups": {
            "sre": {"users": ["U0ADA"], "usergroups": ["S0SRE"]},
            "oncall": {"rotation": rotation},
        },
        "rules": [
            {
                "name": "tiny",
                "when": {"tool": "refund", "args": [{"path": "amount", "op": "lt", "value": 1e-5}]},
                "then": {
                    "ask": {"approve": [{"from": ["oncall"]}], "route": {"channel": "C0APPR"}}
                },
            },
            {
                "name": "big",
                "when": {"tool": "refund", "args": [{"path": "amount", "op": "gt", "value": 500}]},
                "then": {"ask": {"approve": [{"from": ["sre"]}]}},
            },
        ],
        "default": {"deny": "not at all"},
    }
    world = {"tools": {"refund": TOOLS["refund"]}, "usergroups": {"S0SRE": ["U0BEN"]}}
    text = printed(tmp_path, policy, {**call, "world": world}, "--as-case")
    assert yaml.safe_load(text)["cases"][0]["expect"] == {
        "effect": "ask",
        "names": ["big"],
        "requirements": [[{"sre": 1}]],
    }
    cases = tmp_path / "cases.yaml"
    cases.write_text(text)
    argv = ["policy", "test", str(tmp_path / "policy.yaml"), str(cases)]
    said: list[str] = []
    assert main(argv, environ={}, say=said.append) == 0, capsys.readouterr().err
    assert said[-1] == "1 case passed"


@pytest.mark.parametrize(
    ("group", "fault"),
    [
        ({"usergroups": ["S0SRE"]}, "it is not known who is in S0SRE of a condition on requesters"),
        ({"channels": ["C0OPS"]}, "or write the case by hand"),
    ],
)
def test_a_call_that_rests_on_unknown_people_is_no_case(
    group: dict[str, object], fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = {"name": "own", "when": {"requester": {"in": ["sre"]}}, "then": {"deny": "no"}}
    policy = {"version": 1, "groups": {"sre": group}, "rules": [rule], "default": "allow"}
    paths = write(tmp_path, policy, {"tool": "sql", "said": ["U0ROSA"]})
    assert main(["policy", "explain", "--as-case", *paths], environ={}) == FAILED
    assert fault in capsys.readouterr().err


def test_it_says_why_requirements_add_up_and_what_to_do(tmp_path: Path) -> None:
    policy = {
        "version": 1,
        "groups": {"sre": {"users": ["U0ADA", "U0BEN"]}},
        "rules": [
            {
                "name": "production",
                "when": {
                    "tool": "deploy",
                    "args": [{"path": "env", "op": "eq", "value": "production"}],
                },
                "then": {"ask": {"approve": [{"from": ["sre"], "count": 2}]}},
            }
        ],
        "default": {"ask": {"approve": [{"from": ["sre"]}]}},
    }
    hint = "it is not certain whether production applies"
    call = {"tool": "deploy", "args": {"env": "Production"}, "world": {"tools": {"deploy": {}}}}
    assert hint in printed(tmp_path, policy, call)
    certain = {**call, "args": {"env": "production"}}
    assert hint not in printed(tmp_path, policy, certain)


def test_a_limit_of_models_is_explained_like_a_call(tmp_path: Path) -> None:
    policy = {
        "version": 1,
        "groups": {"finance": {"users": ["U0MIA"]}},
        "rules": [
            {
                "name": "money",
                "when": {"limit": "cost", "agent": ["clerk"]},
                "then": {"ask": {"approve": [{"from": ["finance"]}]}},
            }
        ],
        "default": "allow",
    }
    lines = printed(tmp_path, policy, {"limit": "cost", "agent": "clerk"}).splitlines()
    assert lines[0] == "money  true"
    assert lines[2:4] == ["needs approval by money", "  needs      1 of finance"]
    assert printed(tmp_path, policy, {"limit": "tokens", "agent": "clerk"}) == (
        "no rule names the limit of tokens: operators decide, or the admins"
    )

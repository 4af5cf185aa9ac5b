"""examples/own-agent: its agent plays an approval here, and its files for Docker fit together.

Docker itself is not run: what can be read from the files is compared with the code and each other.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.commands.cli import main
from bot.commands.parser import parse
from bot.config.agents import load_agents, load_model
from bot.config.settings import variables
from bot.http.server import serve
from bot.slack.intake.http import SLACK_PATH, web_app
from tests.support.stage import a_stage

ROOT = Path(__file__).parents[1]
BASE = ROOT / "deploy" / "Dockerfile"
EXAMPLE = ROOT / "examples" / "own-agent"
COMPOSE = ("compose.yaml", "compose.socket.yaml", "compose.https.yaml")


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The modules of the example, as PYTHONPATH=. makes them found."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.setenv("SHOP_URL", "pretend")
    yield
    for name in ("shop", "rehearsal"):
        sys.modules.pop(name, None)


def instructions(path: Path) -> list[tuple[str, str]]:
    """What a Dockerfile does, line for line; continued lines are one."""
    text = re.sub(r"\\\n\s*", " ", path.read_text("utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def argument_of(path: Path, word: str) -> str:
    (argument,) = [rest for name, rest in instructions(path) if name == word]
    return argument


def environment(path: Path) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", argument_of(path, "ENV")))


def copied(path: Path) -> list[str]:
    """What a Dockerfile takes from its context."""
    sources = [rest.split()[:-1] for word, rest in instructions(path) if word == "COPY"]
    return [name for names in sources for name in names if not names[0].startswith("--from=")]


def composed(*names: str) -> dict[str, dict[str, Any]]:
    """Compose files one over the other: mappings join, lists grow."""
    merged: dict[str, Any] = {}
    for name in names:
        merged = joined(merged, yaml.safe_load((EXAMPLE / name).read_text("utf-8")))
    return merged


def joined(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: joined(old.get(key), value) for key, value in new.items()}}
    return old + new if isinstance(old, list) and isinstance(new, list) else new


async def test_its_agent_plays_an_approval(tmp_path: Path, importable: None) -> None:
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT="rehearsal:build") as stage:
        await stage.say("Rosa", "@countersign refund A-1 20")
        card = await stage.card(word="countersign:approve")
        assert "Refund 20 € of order A-1" in str(card)
        assert "gets 20.00 € back" in str(card)
        await stage.click("Ada", card, "countersign:approve")
        await stage.said(r"POST /refunds: done")


def test_its_policy_has_no_faults(importable: None) -> None:
    said: list[str] = []
    environ = {"COUNTERSIGN_AGENT": "shop:build"}
    argv = ["policy", "check", str(EXAMPLE / "policy.yaml"), "--offline"]
    assert main(argv, environ=environ, say=said.append) == 0, said


@pytest.mark.parametrize("tool", ["look_up", "refund"])
@pytest.mark.parametrize("origin", ["trigger", "schedule"])
def test_its_policy_asks_about_each_call_of_a_thread_without_a_person(
    tmp_path: Path, tool: str, origin: str
) -> None:
    said: list[str] = []
    call = tmp_path / "call.json"
    asked = {"tool": tool, "args": {}, "origin": origin, "world": {"tools": {tool: {}}}}
    call.write_text(json.dumps(asked))
    argv = ["policy", "explain", "--json", str(EXAMPLE / "policy.yaml"), str(call)]
    assert main(argv, environ={}, say=said.append) == 0, said
    assert json.loads(said[-1])["effect"] == "ask"


def test_the_guide_replaces_each_id_that_the_policy_leaves_open() -> None:
    guide = (ROOT / "docs" / "how-to" / "run-in-docker.md").read_text("utf-8")
    left_open = set(re.findall(r"U0REPLACE\d", read("policy.yaml")))
    assert len(left_open) > 1, "the requester can't decide"
    assert set(re.findall(r"U0REPLACE\d", guide)) == left_open


def test_the_image_starts_the_agent_that_it_carries(importable: None) -> None:
    given = environment(EXAMPLE / "Dockerfile")
    (target,) = {
        rest.split()[-1] for word, rest in instructions(EXAMPLE / "Dockerfile") if word == "COPY"
    }
    assert target.rstrip("/") == environment(BASE)["PYTHONPATH"]
    agents = load_agents(given["COUNTERSIGN_AGENT"], load_model("demo"))
    assert f"{given['COUNTERSIGN_AGENT'].partition(':')[0]}.py" in copied(EXAMPLE / "Dockerfile")
    assert given["COUNTERSIGN_POLICY"] == f"{target}policy.yaml"
    assert [agent.name for agent in agents.values()] == ["shop"]


@pytest.mark.parametrize("path", [BASE, EXAMPLE / "Dockerfile"], ids=["base", "own"])
def test_what_an_image_copies_is_there_and_nothing_else_is_sent(path: Path) -> None:
    is_base = path == BASE
    context = ROOT if is_base else EXAMPLE
    ignored = BASE.with_name("Dockerfile.dockerignore") if is_base else context / ".dockerignore"
    rules = [line for line in ignored.read_text("utf-8").splitlines() if line[:1] not in ("", "#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == set(copied(path))
    assert [name for name in copied(path) if not (context / name).exists()] == []


def test_the_images_are_pinned_and_build_on_each_other() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    name = f"countersign:{version}"
    assert argument_of(EXAMPLE / "Dockerfile", "FROM") == name
    for path in (BASE, EXAMPLE / "Dockerfile", EXAMPLE / "README.md"):
        assert f"docker build -f deploy/Dockerfile -t {name} ." in path.read_text("utf-8")
    images = [service["image"] for service in composed(*COMPOSE)["services"].values()]
    assert re.search(
        r"^ARG BASE=python:3\.11\.\d+-slim-\w+$", BASE.read_text("utf-8"), re.MULTILINE
    )
    assert all(re.search(r":\d[\w.-]*$", image) for image in images), images


def test_the_image_asks_for_its_health_where_the_bot_listens() -> None:
    async def ready() -> str:
        return ""

    port = environment(BASE)["COUNTERSIGN_PORT"]
    assert argument_of(BASE, "EXPOSE") == port
    check = argument_of(BASE, "HEALTHCHECK")
    assert 'os.environ[\\"COUNTERSIGN_PORT\\"]' in check
    paths = {resource.canonical for resource in web_app(None, ready).router.resources()}
    (asked,) = re.findall(r"(/\w+)', timeout", check)
    assert asked in paths
    caddy = (EXAMPLE / "Caddyfile").read_text("utf-8")
    assert f"reverse_proxy bot:{port}" in caddy
    assert f"handle {SLACK_PATH} {{" in caddy


async def test_the_check_of_health_passes_with_the_bot_and_fails_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ready() -> str:
        return ""

    check = argument_of(BASE, "HEALTHCHECK")
    code = compile(json.loads(check[check.index("[") :])[2], "healthcheck", "exec")
    async with AsyncExitStack() as stack:
        port = await serve(web_app(None, ready), host="127.0.0.1", port=0, stack=stack)
        monkeypatch.setenv("COUNTERSIGN_PORT", str(port))
        await asyncio.to_thread(exec, code, {})
    with pytest.raises(OSError, match="refused"):
        await asyncio.to_thread(exec, code, {})


def test_the_image_runs_a_command_that_there_is() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert json.loads(argument_of(BASE, "ENTRYPOINT"))[0] in scripts
    assert parse(json.loads(argument_of(BASE, "CMD"))).command == "run"
    assert argument_of(BASE, "USER").isdigit()


@pytest.mark.parametrize("way", ["compose.socket.yaml", "compose.https.yaml"])
def test_each_secret_is_a_file_that_has_its_name(way: str) -> None:
    compose = composed("compose.yaml", way)
    used = set(compose["services"]["bot"]["secrets"])
    assert used == set(compose["secrets"])
    assert all(secret["file"] == f"secrets/{name}" for name, secret in compose["secrets"].items())
    proofs = {
        "compose.socket.yaml": "SLACK_APP_TOKEN",
        "compose.https.yaml": "SLACK_SIGNING_SECRET",
    }
    assert used & set(proofs.values()) == {proofs[way]}
    known = {*variables(), "OPENAI_API_KEY", "SHOP_TOKEN"}
    assert used <= known
    assert set(compose["services"]["bot"]["environment"]) <= known | {"SHOP_URL"}
    assert compose["services"]["bot"]["environment"]["COUNTERSIGN_SECRETS_DIR"] == "/run/secrets"


def test_all_that_compose_names_is_declared() -> None:
    compose = composed(*COMPOSE)
    for service in compose["services"].values():
        assert set(service["networks"]) <= compose["networks"].keys()
        volumes = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert {volume for volume in volumes if not volume.startswith("./")} <= compose[
            "volumes"
        ].keys()
        assert all((EXAMPLE / volume).is_file() for volume in volumes if volume.startswith("./"))
        assert set(service.get("depends_on", ())) <= compose["services"].keys()
    wanted = {name for name in COMPOSE for name in re.findall(r"\$\{(\w+)", read(name))}
    given = set(re.findall(r"^(?:# )?(\w+)=", read("env.example"), re.MULTILINE))
    assert wanted <= given
    files = re.findall(r"COMPOSE_FILE=(\S+)", read("env.example"))
    assert [file.split(":") for file in files] == [[COMPOSE[0], way] for way in COMPOSE[1:]]


def read(name: str) -> str:
    return (EXAMPLE / name).read_text("utf-8")


def test_the_database_is_a_replica_set_that_only_the_bot_reaches() -> None:
    services = composed(*COMPOSE)["services"]
    mongo, bot = services["mongo"], services["bot"]
    uri = bot["environment"]["MONGODB_URI"]
    name = mongo["command"][mongo["command"].index("--replSet") + 1]
    assert uri.startswith("mongodb://mongo/")
    assert uri.endswith(f"replicaSet={name}")
    assert f'_id: "{name}"' in mongo["healthcheck"]["test"][-1]
    assert composed(*COMPOSE)["networks"]["database"]["internal"] is True
    neighbours = [each for each, service in services.items() if "database" in service["networks"]]
    assert sorted(neighbours) == ["bot", "mongo"]
    assert mongo["networks"] == ["database"]
    assert [each for each, service in services.items() if "ports" in service] == ["caddy"]


def test_the_bot_has_no_rights_that_it_does_not_need() -> None:
    for name in ("bot", "caddy"):
        service = composed(*COMPOSE)["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    assert (
        environment(BASE)["COUNTERSIGN_DATA_DIR"] in composed(*COMPOSE)["services"]["bot"]["tmpfs"]
    )


def test_secrets_are_kept_out_of_history_and_images() -> None:
    assert {"/secrets/", "/.env"} <= set(read(".gitignore").splitlines())
    commands = re.findall(r"secrets/([A-Z_]+)$", read("README.md"), re.MULTILINE)
    needed = composed("compose.yaml", "compose.socket.yaml")["secrets"]
    assert sorted(commands) == sorted(needed)

"""The files in deploy/ name things that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.commands.call import STOP_S
from bot.commands.parser import parse
from bot.config.secretfiles import DIRECTORY
from bot.config.settings import Settings, variables
from bot.slack.intake.http import web_app

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
FILES = sorted(
    path
    for path in [*DEPLOY.rglob("*"), *(ROOT / "examples").rglob("*.*")]
    if path.is_file() and "__pycache__" not in path.parts
)


def _kubernetes() -> list[dict[str, Any]]:
    text = (DEPLOY / "kubernetes" / "countersign.yaml").read_text("utf-8")
    return list(yaml.safe_load_all(text))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_setting_that_is_named_exists(path: Path) -> None:
    named = set(re.findall(r"\b(?:COUNTERSIGN|SLACK|MONGODB)_[A-Z_]+\b", path.read_text("utf-8")))
    assert named <= {*variables(), "COUNTERSIGN_URL", "COUNTERSIGN_KEY"}


def test_the_probes_ask_for_paths_that_exist() -> None:
    async def ready() -> str:
        return ""

    paths = {resource.canonical for resource in web_app(None, ready).router.resources()}
    container = _kubernetes()[0]["spec"]["template"]["spec"]["containers"][0]
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in paths
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_the_manifests_fit_together() -> None:
    deployment, service, budget, network = _kubernetes()
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert service["spec"]["selector"].items() <= labels.items()
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert network["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    spec = deployment["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    container = spec["containers"][0]
    assert not container["image"].endswith((":latest", "countersign-bot"))
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert service["spec"]["ports"][0]["targetPort"] in ports
    for rule in network["spec"]["ingress"]:
        named = {port["port"] for port in rule["ports"]}
        assert named <= set(ports)
        assert "from" in rule or "metrics" not in named
    environ = {pair["name"]: pair["value"] for pair in container["env"]}
    assert environ["COUNTERSIGN_METRICS_PORT"] == str(ports["metrics"])
    secret = container["envFrom"][0]["secretRef"]["name"]
    example = yaml.safe_load((DEPLOY / "kubernetes" / "secret.example.yaml").read_text("utf-8"))
    assert example["metadata"]["name"] == secret


def test_the_container_has_no_root_and_gets_what_it_copies() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert re.search(r"^USER \d+$", text, re.MULTILINE)
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        for name in line.split():
            assert (ROOT / name).exists(), name


def test_the_pod_is_the_image_and_its_user() -> None:
    image = (DEPLOY / "Dockerfile").read_text("utf-8")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    spec = _kubernetes()[0]["spec"]["template"]["spec"]
    assert spec["containers"][0]["image"] == f"countersign:{version}"
    (user,) = re.findall(r"^USER (\d+)$", image, re.MULTILINE)
    assert spec["securityContext"]["runAsUser"] == int(user)
    assert f"--uid {user} " in image


def test_the_service_runs_a_command_that_there_is() -> None:
    unit = (DEPLOY / "countersign.service").read_text("utf-8")
    (started,) = re.findall(r"^ExecStart=\S+/countersign (.*)$", unit, re.MULTILINE)
    assert parse(started.split()).command == "run"
    (patience,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert int(patience) > STOP_S


def test_the_service_gets_each_secret_and_starts_without_those_that_are_not_there() -> None:
    unit = (DEPLOY / "countersign.service").read_text("utf-8")
    loaded = dict(re.findall(r"^LoadCredential=(\w+):(\S+)$", unit, re.MULTILINE))
    secrets = {
        field.alias
        for field in Settings.model_fields.values()
        if "SecretStr" in str(field.annotation)
    }
    assert secrets - {DIRECTORY} <= loaded.keys()
    # systemd looks for a relative path in /etc/credstore, and skips one that is not there.
    assert loaded == {name: f"countersign.{name}" for name in loaded}

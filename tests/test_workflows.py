"""The workflows of .github/ do what they say; `actionlint` and `zizmor` check their form."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NAMES = [path.name for path in WORKFLOWS]
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")


def read(name: str) -> dict[str, Any]:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text("utf-8"))
    assert isinstance(workflow, dict)
    return workflow


def jobs(name: str) -> dict[str, dict[str, Any]]:
    return dict(read(name)["jobs"])


def commands(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


@pytest.mark.parametrize("name", NAMES)
def test_a_job_has_no_rights_but_those_that_it_names(name: str) -> None:
    assert read(name)["permissions"] == {}
    for job in jobs(name).values():
        assert job["permissions"], job["name"]
        assert job["timeout-minutes"], job["name"]


@pytest.mark.parametrize("name", NAMES)
def test_a_job_that_runs_our_code_or_that_of_a_package_has_no_credentials(name: str) -> None:
    for job in jobs(name).values():
        checkouts = [step for step in job["steps"] if "checkout" in step.get("uses", "")]
        for step in checkouts:
            assert step["with"]["persist-credentials"] is False
            assert job["permissions"] == {"contents": "read"}, job["name"]
        builds = re.search(r"pip install|make |\.ci/run|docker buildx", commands(job))
        assert builds is None or checkouts, job["name"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=NAMES)
def test_each_action_is_pinned_by_its_digest(path: Path) -> None:
    used = [line for line in path.read_text("utf-8").splitlines() if "uses:" in line]
    assert [line for line in used if not PINNED.search(line)] == []


def test_ci_runs_on_each_version_of_python_that_is_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [
        classifier.rpartition(" ")[2]
        for classifier in project["classifiers"]
        if ":: Python :: 3." in classifier
    ]
    assert jobs("ci.yml")["test"]["strategy"]["matrix"]["python"] == named
    assert project["requires-python"] == f">={named[0]}"


@pytest.mark.parametrize("name", NAMES)
def test_make_takes_the_python_that_the_job_has_set_up(name: str) -> None:
    given = read(name)["env"]["PYTHON"]
    asked = subprocess.run(
        ["make", "--dry-run", "--always-make", ".venv/.run"],  # noqa: S607
        env={"PATH": os.environ["PATH"], "PYTHON": given},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{given} -m venv .venv" in asked.stdout


def test_ci_runs_the_commands_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    said = " ".join(commands(job) for job in jobs("ci.yml").values())
    said += (ROOT / ".ci" / "run").read_text("utf-8")
    named = set(re.findall(r"^make (\w+)$|`make (\w+)`", readme, re.MULTILINE))
    assert len(named) > 2
    assert [
        target for pair in named for target in pair if target and f"make {target}" not in said
    ] == []


def test_a_release_is_hidden_until_all_that_it_offers_is_verified() -> None:
    writing = [
        job for job in jobs("release.yml").values() if "write" in job["permissions"].values()
    ]
    (last,) = writing
    done = commands(last)
    steps = (
        '"docker://$image:draft-${TAG#v}"',
        "gh release create",
        "gh release download",
        "sha256sum --check",
        'gh attestation verify "$file"',
        'gh attestation verify "oci://$IMAGE@$DIGEST"',
        '"docker://$IMAGE:${TAG#v}"',
        "--draft=false",
    )
    places = [done.find(step) for step in steps]
    assert -1 not in places
    assert places == sorted(places)
    assert "--draft --verify-tag" in done


def test_dependabot_looks_where_versions_are_named() -> None:
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text("utf-8"))["updates"]
    looked = {
        update["package-ecosystem"]: {
            ROOT / name.strip("/") for name in update.get("directories", [update.get("directory")])
        }
        for update in updates
    }
    locks = {path.parent for path in ROOT.glob("requirements/*.txt")}
    assert looked["pip"] == {ROOT, *locks, ROOT / ".github" / "requirements"}
    composed = [
        path
        for path in ROOT.glob("examples/**/compose*.yaml")
        if "image:" in path.read_text("utf-8")
    ]
    assert looked["docker-compose"] == {path.parent for path in composed}
    copies = {".venv", "mutants", "mutants-own"}
    built = [path for path in ROOT.glob("*/**/Dockerfile") if not copies & {*path.parts}]
    foreign = [path for path in built if "FROM countersign" not in path.read_text("utf-8")]
    assert looked["docker"] == {path.parent for path in foreign}

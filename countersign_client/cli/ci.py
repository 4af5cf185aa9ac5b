"""The key and the source of a request that a CI job makes.

A retried step has the same key, so it asks no second time.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from countersign_client.canonical import canonical


@dataclass(frozen=True, slots=True)
class _System:
    """A CI system, known by its variables.

    Attributes:
        name: As its users write it.
        mark: The variable that tells the system.
        key: Variables that name repository, run, attempt and job.
        repository: Variables whose values, joined by slashes, name the repository.
        run: The variable with the number of the run.
        url: The page of the run: a pattern of variables.
    """

    name: str
    mark: str
    key: tuple[str, ...]
    repository: tuple[str, ...]
    run: str
    url: str


_SYSTEMS = (
    _System(
        name="GitHub Actions",
        mark="GITHUB_RUN_ID",
        key=("GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB"),
        repository=("GITHUB_REPOSITORY",),
        run="GITHUB_RUN_ID",
        url="{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}",
    ),
    _System(
        name="GitLab CI",
        mark="GITLAB_CI",
        key=("CI_PROJECT_PATH", "CI_PIPELINE_ID", "CI_JOB_ID", "CI_JOB_NAME"),
        repository=("CI_PROJECT_PATH",),
        run="CI_PIPELINE_ID",
        url="{CI_JOB_URL}",
    ),
    _System(
        name="Buildkite",
        mark="BUILDKITE",
        key=(
            *("BUILDKITE_ORGANIZATION_SLUG", "BUILDKITE_PIPELINE_SLUG", "BUILDKITE_BUILD_ID"),
            *("BUILDKITE_RETRY_COUNT", "BUILDKITE_STEP_ID"),
        ),
        repository=("BUILDKITE_ORGANIZATION_SLUG", "BUILDKITE_PIPELINE_SLUG"),
        run="BUILDKITE_BUILD_NUMBER",
        url="{BUILDKITE_BUILD_URL}",
    ),
    _System(
        name="CircleCI",
        mark="CIRCLECI",
        key=(
            *("CIRCLE_PROJECT_USERNAME", "CIRCLE_PROJECT_REPONAME", "CIRCLE_WORKFLOW_ID"),
            *("CIRCLE_BUILD_NUM", "CIRCLE_JOB"),
        ),
        repository=("CIRCLE_PROJECT_USERNAME", "CIRCLE_PROJECT_REPONAME"),
        run="CIRCLE_BUILD_NUM",
        url="{CIRCLE_BUILD_URL}",
    ),
    _System(
        name="Jenkins",
        mark="JENKINS_URL",
        key=("JOB_NAME", "BUILD_ID", "BUILD_NUMBER", "STAGE_NAME"),
        repository=("JOB_NAME",),
        run="BUILD_NUMBER",
        url="{BUILD_URL}",
    ),
)


def default_key(environ: Mapping[str, str], call: Mapping[str, Any]) -> str:
    """Name a request that got no key.

    Args:
        environ: The environment.
        call: What is asked: JSON data.

    Returns:
        In a job of a known CI system, the same key for the same call in the same attempt;
        elsewhere a random one.
    """
    system = _system_of(environ)
    if system is None:
        return f"cli/{uuid4()}"
    run = "/".join(quote(environ.get(name, ""), safe="") for name in system.key)
    digest = hashlib.sha256(canonical([run, call])).hexdigest()[:32]
    return f"ci/{run[:150]}/{digest}"


def source_of_job(environ: Mapping[str, str]) -> dict[str, str]:
    """Name the CI system, repository, run and page of the job, for a small line on the card.

    Args:
        environ: The environment.

    Returns:
        The members of `source` that are known; none outside of a known CI system.
    """
    system = _system_of(environ)
    if system is None:
        return {}
    parts = (environ.get(name, "") for name in system.repository)
    url = system.url.format_map(defaultdict(str, environ))
    members = {
        "framework": system.name,
        "agent": "/".join(filter(None, parts))[:120],
        "run": environ.get(system.run, "")[:200],
        "url": url if re.fullmatch(r"https?://[!-~]{1,1990}", url) else "",
    }
    return {name: text for name, text in members.items() if text}


def _system_of(environ: Mapping[str, str]) -> _System | None:
    return next((system for system in _SYSTEMS if environ.get(system.mark)), None)

"""The key of a request that a CI job makes, so that a retried step asks no second time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from countersign_client.canonical import canonical

_SYSTEMS = (
    ("GITHUB_RUN_ID", ("GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB")),
    ("GITLAB_CI", ("CI_PROJECT_PATH", "CI_PIPELINE_ID", "CI_JOB_ID", "CI_JOB_NAME")),
    (
        "BUILDKITE",
        (
            *("BUILDKITE_ORGANIZATION_SLUG", "BUILDKITE_PIPELINE_SLUG", "BUILDKITE_BUILD_ID"),
            *("BUILDKITE_RETRY_COUNT", "BUILDKITE_STEP_ID"),
        ),
    ),
    (
        "CIRCLECI",
        (
            *("CIRCLE_PROJECT_USERNAME", "CIRCLE_PROJECT_REPONAME", "CIRCLE_WORKFLOW_ID"),
            *("CIRCLE_BUILD_NUM", "CIRCLE_JOB"),
        ),
    ),
    ("JENKINS_URL", ("JOB_NAME", "BUILD_ID", "BUILD_NUMBER", "STAGE_NAME")),
)
"""By a variable that tells the system: repository, run, attempt and job."""


def default_key(environ: Mapping[str, str], call: Mapping[str, Any]) -> str:
    """Name a request that got no key.

    Args:
        environ: The environment.
        call: What is asked: JSON data.

    Returns:
        In a job of a known CI system, the same key for the same call in the same attempt;
        elsewhere a random one.
    """
    for mark, names in _SYSTEMS:
        if environ.get(mark):
            run = "/".join(quote(environ.get(name, ""), safe="") for name in names)
            digest = hashlib.sha256(canonical([run, call])).hexdigest()[:32]
            return f"ci/{run[:150]}/{digest}"
    return f"cli/{uuid4()}"

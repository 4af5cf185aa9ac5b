"""A job of CI that asks people in Slack before it deploys: `python ci_deploy.py`.

It needs `COUNTERSIGN_URL` and `COUNTERSIGN_KEY`, and `pip install ./countersign_client`.
After a deployment it exits with 0. Otherwise it prints one sentence and exits with 1.
"""

import sys

from countersign_client import CountersignError, gate


@gate(tool="deploy", title="Deploy {service} to {env}", key="deploy-{service}-{build}")
def deploy(service: str, env: str, build: int) -> None:
    print(f"Deployed {service} {build} to {env}")  # once, with what people approved


try:
    deploy("payments", "production", 4711)
except CountersignError as refusal:
    sys.exit(f"Not deployed: {refusal}")

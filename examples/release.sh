#!/bin/sh
# A shell script that asks people in Slack: `sh release.sh payments 1.4.2`.
#
# It needs `COUNTERSIGN_URL` and `COUNTERSIGN_KEY`, and `pip install ./countersign_client`. The key names two tools:
# `countersign keys create release --owner U0OLGA --tool ask --tool release --channel C0OPS`.
set -eu
service=$1 version=$2

# A question. A rejection, an expiry and a fault end the script here, each with an exit code of its own.
region=$(countersign-ask ask --kind choice --title "Where does $service $version go first?" \
  --option eu=Europe --option us=America --key "where-$service-$version" --output value)

# An approval. It runs exactly this command, or nothing.
countersign-ask gate --tool release --title "Release $service $version in $region" \
  --key "release-$service-$version" -- echo "$service $version is live in $region"

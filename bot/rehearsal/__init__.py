"""Rehearsals: a file of cases played against a policy, with the real use cases and a fake Slack.

`case_file` reads the file, and `run_case` plays each case, in the case's `world`. A case with a
`timeline` gets a bot of its own: the clock moves to each of the `events`, and the `outcome` is
compared with what the case expects.
"""

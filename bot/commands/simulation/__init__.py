"""Rehearsals: a policy is played by cases, with the real use cases and cards, and a made-up Slack.

Time is a clock that the case moves; people, groups, channels and tools are those of its world.
"""

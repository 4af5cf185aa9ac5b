"""Simulations: run cases against a policy, with the real use cases and cards, and a fake Slack.

The case moves the clock. People, groups, channels and tools are from the world of the case.
"""

"""Evaluation of a policy: matching rules, filling in terms, merging decisions.

`evaluate.PolicyEvaluator` is the entry point. This package does not depend on records, a clock, or
Slack; the caller passes a function that looks up groups.
"""

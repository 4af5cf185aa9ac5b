"""The judging of calls: whether a rule matches, what it asks for, and many rulings as one.

`evaluate.PolicyEvaluator` is the way in. Nothing here knows a record, a clock, or Slack; groups are
looked up by a function that the caller gives.
"""

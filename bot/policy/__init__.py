"""The policy: who may decide, how many must, how long, and what expiry means.

A file of rules (`model`) is read and checked (`parser`) and evaluated for each call (`evaluation`).
The result for a call is frozen into its approval as `Terms`.
"""

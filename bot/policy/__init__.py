"""The policy: who may decide what, how many, for how long, and what silence means.

A file of rules (`model`) is read and checked with its places (`reading`), and judges each call
(`judging`). The ruling on a call is frozen into its approval as `Terms`.
"""

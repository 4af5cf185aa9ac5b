"""The policy: who may decide what, how many, for how long, and what silence means.

A file of rules (`model`) is read with its places (`source`), checked (`checks`), and judges each
call (`evaluate`). The ruling on a call is frozen into its approval as `Terms`.
"""

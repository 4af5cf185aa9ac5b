"""The people around an approval: its approvers, its requesters, and whether anybody can decide."""

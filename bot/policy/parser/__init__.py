"""The way from a policy file's bytes to a policy that holds: places, faults, look-ups."""

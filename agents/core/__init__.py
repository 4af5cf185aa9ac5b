"""The mechanism: addresses, interrupts, scopes, checkpoints, the journal, and errors."""

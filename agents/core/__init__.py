"""Core of the runtime: addresses, interrupts, checkpoints, journal and errors."""

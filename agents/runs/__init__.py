"""Runs: the session of one run, its document, and the tree of components that it stands on."""

"""People of an approval: who may decide, see and ask, whom to tell; and look-ups."""

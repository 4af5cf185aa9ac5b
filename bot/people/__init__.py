"""People of an approval: approvers, requesters, recipients, look-ups."""

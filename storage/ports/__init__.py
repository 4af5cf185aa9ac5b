"""The ports: what the bot asks of a database, by kind of record. Adapters only obey.

Every method may raise `StoreUnavailableError`. All conditional writes are single-record and atomic:
of any number of concurrent callers, in any number of processes, exactly one sees success.

A record that cannot be read never keeps others from being read. Where work is looked for (`due`,
`claim`), it is set aside: marked as unreadable for this release, logged once, and not looked at
again but by another release, or after a restart. It is never changed otherwise, and never deleted.
What belongs to one thread and decides what may run there (messages, open approvals, the agent's
history and checkpoint) raises `RecordFormatError` instead: that thread stands still, whole.
"""

"""Each collection is one that forgetting a thread empties, or one that it may leave."""

import re

from bot.records.erasures import wheres_of
from bot.stores import KINDS
from storage.mongo import MongoStorage
from storage.mongo.client import INDEXES
from storage.sqlite import SqliteStorage
from storage.sqlite.tables import ddl

LEFT = {"threads", "audit"}
"""The thread itself goes last, by another statement; the audit loses only its content."""
NOBODYS = {"health", "epochs", "delegations", "people", "switches", "programs", "program_keys"}
NOBODYS |= {"webhook_endpoints"}
"""What belongs to no thread."""


def test_all_documents_of_a_thread_are_deleted_with_it() -> None:
    assert {kind.spec.name for kind in KINDS} - LEFT - NOBODYS == {*wheres_of("T:C:1")}


def test_all_that_is_kept_beside_documents_is_deleted_with_them() -> None:
    made = set(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", ddl("")))
    embedded = {*SqliteStorage(None, []).ledgers.logs}
    assert embedded == made - LEFT - NOBODYS
    # A run's journal is in its checkpoint there.
    shared = {*MongoStorage("mongodb://nowhere", []).ledgers.logs}
    assert shared == embedded - {"journal"} == {*INDEXES, "log", "checkpoints"} - LEFT

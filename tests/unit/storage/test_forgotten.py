"""Each table and collection is one that forgetting a thread empties, or one that it may leave."""

import re

from storage.mongo.client import INDEXES
from storage.mongo.retention import MongoRetentionStore
from storage.sqlite import retention
from storage.sqlite.collection import tables
from storage.sqlite.schema.tables import ddl
from storage.stores import KINDS

LEFT = {"threads", "audit"}
"""The thread itself goes last, by another statement; the audit loses only its content."""
NOBODYS = {"health", "era", "delegations", "people"}
"""What belongs to no thread."""


def test_all_that_belongs_to_a_thread_is_deleted_with_it() -> None:
    made = set(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", ddl(tables(KINDS))))
    assert made > LEFT | NOBODYS
    assert set(retention._OF_THREAD) == made - LEFT - NOBODYS


def test_the_same_is_deleted_in_mongodb() -> None:
    collections = {*INDEXES, *(kind.spec.name for kind in KINDS), "checkpoints"}
    assert set(MongoRetentionStore._wheres("T:C:1")) == collections - LEFT - NOBODYS
    # A run's journal is in its checkpoint there.
    assert set(MongoRetentionStore._wheres("T:C:1")) == set(retention._OF_THREAD) - {"journal"}

"""Documents and logs that survive a restart, in SQLite or MongoDB.

The engines are `storage.sqlite.SqliteStorage` and `storage.mongo.MongoStorage`. This package
imports neither, so that a program only loads the driver that it uses.
"""

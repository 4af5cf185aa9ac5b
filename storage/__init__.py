"""Documents and logs that survive a restart, on two databases.

The engines are `storage.sqlite.SqliteStorage` and `storage.mongo.MongoStorage`. Nothing is imported
here, so that nobody loads a driver that they do not use.
"""

"""Documents that survive a restart, two databases that hold them, and their errors.

The engines are `storage.sqlite.SqliteStorage` and `storage.mongo.MongoStorage`. Nothing is imported
here, so that nobody loads a driver that they do not use.
"""

"""The agents' texts in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import POSTS
from storage.records import Post
from storage.sqlite.database import Database, insert_sql

_INSERT = insert_sql("posts", POSTS)

_SELECT = "SELECT * FROM posts WHERE post_id = :id"

_FINISH = "UPDATE posts SET ts = :ts, posted = 1 WHERE post_id = :id"

_UNFINISHED = """
SELECT * FROM posts WHERE thread_id = :thread_id AND posted = 0 ORDER BY created_ms, post_id
"""


class SqlitePostStore:
    """See `storage.base.PostStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, post: Post) -> bool:
        return await self._database.change(_INSERT, POSTS.encode(post))

    async def get(self, post_id: str) -> Post | None:
        rows = await self._database.fetch(_SELECT, {"id": post_id})
        return POSTS.decode(rows[0]) if rows else None

    async def finish(self, post_id: str, *, ts: str) -> None:
        await self._database.fetch(_FINISH, {"id": post_id, "ts": ts})

    async def unfinished(self, thread_id: str) -> Sequence[Post]:
        rows = await self._database.fetch(_UNFINISHED, {"thread_id": thread_id})
        return [POSTS.decode(row) for row in rows]

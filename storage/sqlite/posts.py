"""The agents' texts in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import POSTS
from storage.records import Post
from storage.sqlite.database import Database, insert_sql
from storage.sqlite.reading import Reading

_INSERT = insert_sql("posts", POSTS)

_SELECT = "SELECT * FROM posts WHERE post_id = :id"

_BEGIN = "UPDATE posts SET ts = :ts WHERE post_id = :id"

_FINISH = """
UPDATE posts SET ts = :ts, posted = 1, text = coalesce(:text, text) WHERE post_id = :id
"""

_FAIL = "UPDATE posts SET failure = :reason WHERE post_id = :id"

_UNFINISHED = """
SELECT * FROM posts WHERE thread_id = :thread_id AND posted = 0 AND failure = ''
ORDER BY created_ms, post_id
"""

_ANY_OF = "SELECT 1 FROM posts WHERE post_id >= :first AND post_id < :last LIMIT 1"


class SqlitePostStore:
    """See `storage.ports.messages.PostStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.reading = Reading(database, "posts", POSTS)

    async def add(self, post: Post) -> bool:
        return await self._database.change(_INSERT, POSTS.encode(post))

    async def add_or_get(self, post: Post) -> Post | None:
        values = POSTS.encode(post)
        added, found = await self._database.fetch_together(
            [(_INSERT, values), (_SELECT, {"id": post.post_id})]
        )
        return None if added else POSTS.decode(found[0])

    async def get(self, post_id: str) -> Post | None:
        rows = await self._database.read(_SELECT, {"id": post_id})
        return POSTS.decode(rows[0]) if rows else None

    async def begin(self, post_id: str, *, ts: str) -> None:
        await self._database.fetch(_BEGIN, {"id": post_id, "ts": ts})

    async def finish(self, post_id: str, *, ts: str, text: str | None = None) -> None:
        await self._database.fetch(_FINISH, {"id": post_id, "ts": ts, "text": text})

    async def fail(self, post_id: str, *, reason: str) -> None:
        await self._database.fetch(_FAIL, {"id": post_id, "reason": reason})

    async def unfinished(self, thread_id: str) -> Sequence[Post]:
        rows = await self._database.read(_UNFINISHED, {"thread_id": thread_id})
        return await self.reading.each(rows)

    async def any_of(self, checkpoint_id: str) -> bool:
        # A semicolon comes right after the colon: all ids that begin with it lie in between.
        values = {"first": f"{checkpoint_id}:", "last": f"{checkpoint_id};"}
        return bool(await self._database.read(_ANY_OF, values))

"""Open modals and Home tabs; at most three modals are stacked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.blocks import named_blocks
from slack_sandbox.workspace.changes import Changes
from slack_sandbox.workspace.ids import Ids
from slack_sandbox.workspace.records import Payload, View

STACK = 3
"""Most views in one modal."""

Told = Callable[[Literal["view", "view_closed"], View, bool], None]
"""Called with what happened, the view, and whether the whole modal closed."""


class ViewStore:
    """The views that each person sees."""

    def __init__(self, ids: Ids, changes: Changes) -> None:
        self._ids = ids
        self._changes = changes
        self._stacks: dict[tuple[str, str], list[View]] = {}
        self._homes: dict[str, View] = {}
        self.on_view: list[Told] = []

    def stack(self, user: str) -> list[View]:
        """The open views of a person, the topmost last; those of one window stand together."""
        return [view for key, views in self._stacks.items() if key[0] == user for view in views]

    def stack_of(self, view: View) -> list[View]:
        """The open views of the window that a view belongs to, the topmost last."""
        return list(self._stacks.get((view.user, view.window), []))

    def home(self, user: str) -> View | None:
        """The Home tab of a person, if the app published one."""
        return self._homes.get(user)

    def find(self, view_id: object, external_id: object = None) -> View:
        """An open view or Home tab.

        Raises:
            RefusedError: It is not open, not any more, or belongs to another app.
        """
        for view in self._all():
            named = external_id and view.content.get("external_id") == external_id
            if view.id == view_id or (view_id is None and named):
                return view
        raise RefusedError("not_found")

    def open(self, user: str, content: Payload, window: str = "") -> View:
        """Show a modal in a person's window; one that was open there before goes."""
        self._check_external_id(content)
        view = self._new(user, content, "modal", window)
        self._stacks.pop((user, window), None)
        self._stacks[user, window] = [view]
        self._tell("view", view)
        return view

    def push(self, user: str, content: Payload, window: str = "") -> View:
        """Put a view above the open ones.

        Raises:
            RefusedError: Nothing is open, or three views are.
        """
        stack = self._stacks.get((user, window))
        if not stack:
            raise RefusedError("not_found")
        if len(stack) >= STACK:
            raise RefusedError("push_limit_reached")
        self._check_external_id(content)
        view = self._new(user, content, "modal", window)
        view.root_id, view.previous_id = stack[0].id, stack[-1].id
        stack.append(view)
        self._tell("view", view)
        return view

    def update(self, view: View, content: Payload, expected_hash: object = None) -> None:
        """Replace what a view shows; what was typed stays where the ids stay.

        Raises:
            RefusedError: The view has changed since `expected_hash`.
        """
        if expected_hash is not None and expected_hash != view.hash:
            raise RefusedError("hash_conflict")
        if content.get("type") != view.type:
            raise RefusedError(
                "invalid_arguments", ["view type cannot change [json-pointer:/view/type]"]
            )
        self._check_external_id(content, view)
        view.content = self._named(content)
        view.hash = self._new_hash()
        self._tell("view", view)

    def publish(self, user: str, content: Payload, expected_hash: object = None) -> View:
        """Set a person's Home tab."""
        view = self._homes.get(user)
        if view is not None:
            self.update(view, content, expected_hash)
            return view
        view = self._new(user, content, "home")
        self._homes[user] = view
        self._tell("view", view)
        return view

    def close(self, view: View, *, everything: bool = False) -> None:
        """Take a view away, or the whole modal."""
        stack = self._stacks.get((view.user, view.window), [])
        if view not in stack:
            return
        if everything:
            stack.clear()
        else:
            stack.remove(view)
        self._tell("view_closed", view, everything=everything)

    def _all(self) -> list[View]:
        modals = [view for stack in self._stacks.values() for view in stack]
        return [*modals, *self._homes.values()]

    def _new(
        self, user: str, content: Payload, kind: Literal["modal", "home"], window: str = ""
    ) -> View:
        view_id = self._ids.new("V")
        return View(
            id=view_id,
            user=user,
            type=kind,
            content=self._named(content),
            hash=self._new_hash(),
            root_id=view_id,
            window=window,
        )

    def _named(self, content: Payload) -> Payload:
        return {**content, "blocks": named_blocks(content.get("blocks"), self._ids.new)}

    def _new_hash(self) -> str:
        return f"{self._ids.ts().split('.')[0]}.{self._ids.new('h')}"

    def _check_external_id(self, content: Payload, own: View | None = None) -> None:
        external_id = content.get("external_id")
        if not external_id:
            return
        for view in self._all():
            if view is not own and view.content.get("external_id") == external_id:
                raise RefusedError("duplicate_external_id")

    def _tell(
        self, kind: Literal["view", "view_closed"], view: View, *, everything: bool = False
    ) -> None:
        for listener in self.on_view:
            listener(kind, view, everything)
        self._changes.tell()

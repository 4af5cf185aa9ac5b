"""The chain of the audit: each entry is sealed with a hash of itself and of the one before.

Nothing here knows a database: an entry is a mapping with the fields of its chained form, `v team
seq id at_ms action thread approval actor for detail alg prev hash`. Source: the specification of
policies, section 7.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Form = Mapping[str, object]
"""The chained form of an entry."""

GENESIS = "0" * 64
"""The `prev` of a first entry."""
PLAIN = "sha256"
"""The algorithm without a key."""
MIN_KEY = 32
"""Bytes of a key."""

_ALG = re.compile(r"sha256|hmac-sha256:[0-9a-f]{8}")
_HASH = re.compile(r"[0-9a-f]{64}")
_DOMAIN = "countersign.audit/1\n"
_MAC_DOMAIN = "countersign.audit.open/1\n"
_CONTENT_DOMAIN = "countersign.audit.content/1\n"
_LARGEST = 2**53
_NEAR = 1_000
"""Places on both sides at which an entry is looked for that does not belong where it stands."""
_CHAIN = ("seq", "alg", "prev", "hash")

CHECKPOINT = "checkpoint"
"""The action of an entry up to which older ones may be deleted; stored, as are the names of its
evidence."""
SEGMENT = "chain_broken"
"""The action of an entry that stands where the end of its chain could not be read: what comes goes
on behind it. Stored."""
FORGOTTEN = "forgotten"
"""The action of an entry that says that its thread has lost its content; stored."""

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical(value: object) -> str:
    """Write JSON data in the one way that is hashed.

    Keys are sorted by code point, there are no spaces, all but ASCII is escaped, and a number that
    is no integer up to 2⁵³ is a text.
    """
    return _CANONICAL.encode(plain(value))


def plain(value: object) -> object:
    """The same JSON data, with numbers that other programs may read differently as texts."""
    match value:
        case bool() | str() | None:
            return value
        case int():
            return value if -_LARGEST <= value <= _LARGEST else str(value)
        case float():
            return repr(value)
        case Mapping():
            return {str(name): plain(item) for name, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return str(value)


def content_hash(content: object, salt: str) -> str:
    """The hash that stands in the chain for content that can be deleted.

    Args:
        content: JSON data.
        salt: Random, and deleted with it: what was deleted cannot be guessed.
    """
    text = f"{_CONTENT_DOMAIN}{salt}\n{canonical(content)}"
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Seal:
    """A way to seal entries: with a key, or without.

    Without one, a chain shows accidents, and not somebody who rewrites all of it.

    Attributes:
        key: Kept outside of the database; empty for none.
        old: Earlier keys: nothing is sealed with them any more.
    """

    key: bytes = field(default=b"", repr=False)
    old: tuple[bytes, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Refuse a key that could be guessed.

        Raises:
            ValueError: It is too short.
        """
        for key in filter(None, (self.key, *self.old)):
            if len(key) < MIN_KEY:
                raise ValueError(f"a key needs at least {MIN_KEY} bytes")

    @property
    def alg(self) -> str:
        """The name of the algorithm that seals."""
        return alg_of(self.key)

    def knows(self, alg: object) -> bool:
        """Whether what was sealed so can be verified."""
        return alg == PLAIN or any(alg == alg_of(key) for key in self._keys)

    def hash(self, form: Form) -> str:
        """Compute the hash of an entry by its own algorithm; its `hash` does not count.

        Returns:
            Empty when the key is not known.
        """
        bare = {name: item for name, item in form.items() if name != "hash"}
        text = f"{_DOMAIN}{form.get('prev')}\n{canonical(bare)}".encode()
        if form.get("alg") == PLAIN:
            return hashlib.sha256(text).hexdigest()
        for key in self._keys:
            if form.get("alg") == alg_of(key):
                return hmac.new(key, text, hashlib.sha256).hexdigest()
        return ""

    def sealed(self, form: Form, *, seq: int, prev: str) -> dict[str, object]:
        """Seal an entry.

        Args:
            form: The entry, open or not.
            seq: Its number.
            prev: The hash of the one before it.
        """
        made = {**form, "seq": seq, "alg": self.alg, "prev": prev}
        return {**made, "hash": self.hash(made)}

    def mac(self, form: Form) -> str:
        """Compute what shows that an open entry is ours; empty without a key."""
        return _mac(self.key, form) if self.key else ""

    def is_ours(self, form: Form, mac: str) -> bool:
        """Whether an open entry was appended by somebody with a key; true where there is none."""
        if not self.key:
            return True
        return any(_is_same(_mac(key, form), mac) for key in self._keys)

    @property
    def _keys(self) -> tuple[bytes, ...]:
        return tuple(filter(None, (self.key, *self.old)))


def alg_of(key: bytes) -> str:
    """The name of the algorithm with this key; without one, of the plain one."""
    return f"hmac-sha256:{hashlib.sha256(key).hexdigest()[:8]}" if key else PLAIN


def is_alg(alg: object) -> bool:
    """Whether this can be the name of an algorithm, with a key that is known or not."""
    return isinstance(alg, str) and _ALG.fullmatch(alg) is not None


def is_hash(text: object) -> bool:
    """Whether this can be the hash of an entry."""
    return isinstance(text, str) and _HASH.fullmatch(text) is not None


def _is_same(due: str, found: str) -> bool:
    """Compare in constant time; what was found may be any text."""
    return hmac.compare_digest(due.encode(), found.encode(errors="backslashreplace"))


def _mac(key: bytes, form: Form) -> str:
    bare = {name: item for name, item in form.items() if name not in _CHAIN}
    text = f"{_MAC_DOMAIN}{canonical(bare)}".encode()
    return hmac.new(key, text, hashlib.sha256).hexdigest()


NO_KEY = Seal()
"""The seal that anybody can make."""


class Wrong(StrEnum):
    """A fault of a chain."""

    ALTERED = "altered"
    MISSING = "missing"
    DISPLACED = "displaced"
    UNKNOWN_KEY = "unknown_key"  # sealed with a key that is not given: nothing can be said of it
    UNKEYED = "unkeyed"  # sealed without a key, though there is one: anybody can make such an entry


@dataclass(frozen=True, slots=True, order=True)
class Flaw:
    """The place of a fault.

    Attributes:
        at: The number of the entry.
        wrong: The kind.
    """

    at: int
    wrong: Wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of verifying a chain.

    Attributes:
        seq: The number of the last entry; 0 for an empty chain.
        hash: Its hash.
        fault: The first one; None when there is none.
        count: Entries that were looked at.
        unkeyed: How many of them are sealed without a key.
        segments: The numbers of the entries that say that the end before them was damaged.
    """

    seq: int
    hash: str
    fault: Flaw | None = None
    count: int = 0
    unkeyed: int = 0
    segments: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no fault."""
        return self.fault is None


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry of a chain, or one that was the last when it was noted.

    Attributes:
        seq: Its number; 0 before the first.
        hash: Its hash.
    """

    seq: int = 0
    hash: str = GENESIS


class Verifier:
    """Looks at the entries of one chain, one after the other, and names the first fault.

    Args:
        seal: Knows the keys.
        head: As noted elsewhere: what was there must still be there. None: a cut tail is not seen.
        plain_until: The last entry that was sealed before there was a key, as noted elsewhere. With
            a key, an entry behind it that has none is a fault; without `plain_until`, any is.
    """

    def __init__(
        self, seal: Seal = NO_KEY, head: Head | None = None, *, plain_until: Head | None = None
    ) -> None:
        self._seal, self._head, self._plain_until = seal, head, plain_until or Head()
        self._first: Form | None = None
        self._last = Head()
        self._fault: Flaw | None = None
        self._count = self._unkeyed = 0
        self._has_key = False
        self._met: set[Head] = set()
        self._segments: list[int] = []
        self._checkpoints: set[tuple[object, object]] = set()
        self._erased: dict[object, int] = {}
        self._forgotten: set[object] = set()

    def add(self, form: Form, *, is_whole: bool = True, is_erased: bool = False) -> None:
        """Look at the next entry.

        Args:
            form: With its `hash`.
            is_whole: Whether its content is that of its content hash.
            is_erased: Whether its content was deleted.
        """
        self._count += 1
        self._unkeyed += form.get("alg") == PLAIN
        if self._fault is None:
            self._fault = self._look(form, is_whole=is_whole)
        elif self._fault.wrong is Wrong.MISSING and form.get("seq") == self._fault.at:
            self._fault = Flaw(self._fault.at, Wrong.DISPLACED)  # it stands further behind
        self._note(form, is_erased=is_erased)

    def end(self) -> Verdict:
        """Say what was found."""
        faults = [self._fault, self._start_fault(), self._head_fault(), self._plain_fault()]
        faults += self._erased_faults()
        return Verdict(
            seq=self._last.seq,
            hash=self._last.hash,
            fault=min((fault for fault in faults if fault is not None), default=None),
            count=self._count,
            unkeyed=self._unkeyed,
            segments=tuple(self._segments),
        )

    def _look(self, form: Form, *, is_whole: bool) -> Flaw | None:
        seq = form.get("seq")
        if not isinstance(seq, int) or isinstance(seq, bool) or seq < 1:
            return Flaw(self._last.seq + 1, Wrong.ALTERED)
        due, prev = self._last.seq + 1, self._last.hash
        if self._first is None:  # a chain that was pruned begins later
            self._first, due = form, seq
            prev = GENESIS if seq == 1 else str(form.get("prev"))
        if seq != due:
            return Flaw(due, Wrong.MISSING) if seq > due else Flaw(seq, Wrong.DISPLACED)
        if wrong := self._wrong_key(form, seq):
            return Flaw(seq, wrong)
        is_sealed = self._is_sealed(form)
        if not is_sealed and self._belongs_elsewhere(form, seq):
            return Flaw(seq, Wrong.DISPLACED)
        is_keyed = form.get("alg") != PLAIN
        if not (is_sealed and is_whole and form.get("prev") == prev) or self._has_key > is_keyed:
            return Flaw(seq, Wrong.ALTERED)
        self._has_key = is_keyed
        self._last = Head(seq, str(form.get("hash")))
        return None

    def _wrong_key(self, form: Form, seq: int) -> Wrong | None:
        if not self._seal.knows(form.get("alg")):
            return Wrong.UNKNOWN_KEY
        needs_key = bool(self._seal.key) and seq > self._plain_until.seq
        return Wrong.UNKEYED if needs_key and form.get("alg") == PLAIN else None

    def _is_sealed(self, form: Form) -> bool:
        return _is_same(self._seal.hash(form), str(form.get("hash")))

    def _belongs_elsewhere(self, form: Form, seq: int) -> bool:
        near = range(max(1, seq - _NEAR), seq + _NEAR)
        return any(self._is_sealed({**form, "seq": other}) for other in near)

    def _note(self, form: Form, *, is_erased: bool) -> None:
        seq, detail = form.get("seq"), form.get("detail")
        if form.get("action") == CHECKPOINT and isinstance(detail, Mapping):
            self._checkpoints.add((detail.get("upto_seq"), detail.get("upto_hash")))
        if is_erased and isinstance(seq, int):
            self._erased.setdefault(form.get("thread"), seq)
        if form.get("action") == SEGMENT and isinstance(seq, int):
            self._segments.append(seq)
        if form.get("action") == FORGOTTEN:
            self._forgotten.add(form.get("thread"))
        for head in (self._head, self._plain_until):
            if head is not None and (seq, form.get("hash")) == (head.seq, head.hash):
                self._met.add(head)

    def _start_fault(self) -> Flaw | None:
        """The flaw of a beginning that was deleted without a checkpoint."""
        seq = self._first.get("seq") if self._first is not None else 1
        if self._first is None or not isinstance(seq, int) or seq <= 1:
            return None
        is_noted = (seq - 1, self._first.get("prev")) in self._checkpoints
        # A deletion that was cut off, or goes on: the rest leads up to what the checkpoint names.
        is_noted = is_noted or any(_is_from(upto, seq) for upto, _ in self._checkpoints)
        return None if is_noted else Flaw(seq, Wrong.MISSING)

    def _plain_fault(self) -> Flaw | None:
        """The flaw of a chain that had another entry where the key began, unless that was pruned.

        What is left of a pruned chain has a key, and so has the checkpoint before it.
        """
        first = self._first.get("seq") if self._first is not None else None
        is_pruned = isinstance(first, int) and first > self._plain_until.seq
        return None if is_pruned else self._missed(self._plain_until)

    def _head_fault(self) -> Flaw | None:
        return None if self._head is None else self._missed(self._head)

    def _missed(self, head: Head) -> Flaw | None:
        """The flaw of a chain that has not what was noted elsewhere."""
        if head in self._met or head == Head():
            return None
        if (head.seq, head.hash) in self._checkpoints:  # deleted since, and noted in the chain
            return None
        if head.seq > self._last.seq:
            return Flaw(self._last.seq + 1, Wrong.MISSING)
        first = self._first.get("seq") if self._first is not None else 1
        is_gone = isinstance(first, int) and head.seq < first
        return Flaw(head.seq, Wrong.MISSING if is_gone else Wrong.ALTERED)

    def _erased_faults(self) -> list[Flaw]:
        """Content may only be missing where the chain says that its thread was forgotten.

        What came while it was being forgotten may stand behind that.
        """
        return [
            Flaw(seq, Wrong.ALTERED)
            for thread, seq in self._erased.items()
            if thread not in self._forgotten
        ]


def _is_from(upto: object, seq: int) -> bool:
    return isinstance(upto, int) and not isinstance(upto, bool) and upto >= seq

"""The hash chain of the audit: each entry has a hash of itself and its predecessor.

The module is independent of the database. An entry is a mapping with the fields of its chained
form: `v team seq id at_ms action thread approval actor for detail alg prev hash`.
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
"""The `prev` of the first entry of a chain."""
PLAIN = "sha256"
"""Name of the algorithm without a key."""
MIN_KEY = 32
"""Minimum length of a key, in bytes."""

_ALG = re.compile(r"sha256|hmac-sha256:[0-9a-f]{8}")
_HASH = re.compile(r"[0-9a-f]{64}")
_DOMAIN = "countersign.audit/1\n"
_MAC_DOMAIN = "countersign.audit.open/1\n"
_CONTENT_DOMAIN = "countersign.audit.content/1\n"
_LARGEST = 2**53
_NEAR = 1_000
"""How many numbers before and after its place are tried to find the right place of a moved
entry."""
_CHAIN = ("seq", "alg", "prev", "hash")

CHECKPOINT = "checkpoint"
"""Action of the entry up to which older entries may be deleted. The action and the names in its
evidence are stored."""
SEGMENT = "chain_broken"
"""Action of the entry that follows an unreadable end of its chain. The chain continues after it.
Stored."""
FORGOTTEN = "forgotten"
"""Action of the entry that says that the content of its thread was deleted. Stored."""

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical(value: object) -> str:
    """Serialize JSON data in the canonical form that is hashed.

    Keys are sorted by code point, there are no spaces, and non-ASCII characters are escaped.
    Numbers other than integers up to 2⁵³ become strings.
    """
    return _CANONICAL.encode(plain(value))


def plain(value: object) -> object:
    """Return the JSON data with ambiguous numbers replaced by strings.

    Other programs may read such numbers differently.
    """
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
    """Return the hash that represents deletable content in the chain.

    Args:
        content: JSON data.
        salt: Random text that is deleted with the content, so that nobody can guess the content
            from its hash.
    """
    text = f"{_CONTENT_DOMAIN}{salt}\n{canonical(content)}"
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Seal:
    """Seals entries with HMAC-SHA256 and a key, or with plain SHA-256.

    Without a key, the chain shows accidental damage. It does not show that somebody rewrote the
    whole chain.

    Attributes:
        key: Secret that is kept outside the database; empty for none.
        old: Earlier keys, only used to verify.
    """

    key: bytes = field(default=b"", repr=False)
    old: tuple[bytes, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Refuse a key that could be guessed.

        Raises:
            ValueError: A key is too short.
        """
        for key in filter(None, (self.key, *self.old)):
            if len(key) < MIN_KEY:
                raise ValueError(f"a key needs at least {MIN_KEY} bytes")

    @property
    def alg(self) -> str:
        """Name of the algorithm for new seals."""
        return alg_of(self.key)

    def knows(self, alg: object) -> bool:
        """Return whether this seal can verify entries with the algorithm."""
        return alg == PLAIN or any(alg == alg_of(key) for key in self._keys)

    def hash(self, form: Form) -> str:
        """Return the hash of an entry by its own algorithm, ignoring its field `hash`.

        Returns:
            The hash, or an empty string if the key is unknown.
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
        """Return the chained form of an entry with its seal.

        Args:
            form: The entry, open or sealed.
            seq: Number of the entry in its chain.
            prev: Hash of the previous entry.
        """
        made = {**form, "seq": seq, "alg": self.alg, "prev": prev}
        return {**made, "hash": self.hash(made)}

    def mac(self, form: Form) -> str:
        """Return the mark that shows who appended an open entry; empty without a key."""
        return _mac(self.key, form) if self.key else ""

    def is_ours(self, form: Form, mac: str) -> bool:
        """Return whether a process with the key appended the open entry; true without a key."""
        if not self.key:
            return True
        return any(_is_same(_mac(key, form), mac) for key in self._keys)

    @property
    def _keys(self) -> tuple[bytes, ...]:
        return tuple(filter(None, (self.key, *self.old)))


def alg_of(key: bytes) -> str:
    """Return the name of the algorithm with this key, or of the plain one without a key."""
    return f"hmac-sha256:{hashlib.sha256(key).hexdigest()[:8]}" if key else PLAIN


def is_alg(alg: object) -> bool:
    """Return whether the value is a valid name of an algorithm.

    Its key need not be known.
    """
    return isinstance(alg, str) and _ALG.fullmatch(alg) is not None


def is_hash(text: object) -> bool:
    """Return whether the value has the form of an entry's hash."""
    return isinstance(text, str) and _HASH.fullmatch(text) is not None


def _is_same(due: str, stored: str) -> bool:
    """Compare two hashes in constant time. `found` may be any text."""
    return hmac.compare_digest(due.encode(), stored.encode(errors="backslashreplace"))


def _mac(key: bytes, form: Form) -> str:
    bare = {name: item for name, item in form.items() if name not in _CHAIN}
    text = f"{_MAC_DOMAIN}{canonical(bare)}".encode()
    return hmac.new(key, text, hashlib.sha256).hexdigest()


NO_KEY = Seal()
"""The seal without a key. Anybody can compute it."""


class Wrong(StrEnum):
    """The kinds of faults of a chain."""

    ALTERED = "altered"
    MISSING = "missing"
    DISPLACED = "displaced"
    UNKNOWN_KEY = "unknown_key"  # sealed with an unknown key: the entry cannot be verified
    UNKEYED = "unkeyed"  # sealed without a key, so anybody could have written the entry


@dataclass(frozen=True, slots=True, order=True)
class Flaw:
    """A fault and its place in the chain.

    Attributes:
        at: Number of the entry.
        wrong: Kind of fault.
    """

    at: int
    wrong: Wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of verifying a chain.

    Attributes:
        seq: Number of the last entry; 0 for an empty chain.
        hash: Hash of the last entry.
        fault: The first fault, or None.
        count: Number of entries verified.
        unkeyed: How many of these entries are sealed without a key.
        segments: Numbers of the entries that report a damaged end before them.
    """

    seq: int
    hash: str
    fault: Flaw | None = None
    count: int = 0
    unkeyed: int = 0
    segments: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the chain has no fault."""
        return self.fault is None


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry of a chain, now or at an earlier time.

    Attributes:
        seq: Number of the entry; 0 for an empty chain.
        hash: Hash of the entry.
    """

    seq: int = 0
    hash: str = GENESIS


class Verifier:
    """Verifies the entries of one chain in order and reports the first fault.

    Args:
        seal: Has the keys.
        head: Head that an operator noted outside the database. The chain must still contain it.
            Without it, deleting the newest entries remains unnoticed.
        plain_until: Last entry before the key was introduced, as noted outside the database. With a
            key, a later entry without a key is a fault. If `plain_until` is None, every entry
            without a key is a fault.
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
        """Verify the next entry.

        Args:
            form: Chained form, including `hash`.
            is_whole: Whether the content matches its content hash.
            is_erased: Whether the content was deleted.
        """
        self._count += 1
        self._unkeyed += form.get("alg") == PLAIN
        if self._fault is None:
            self._fault = self._check_entry(form, is_whole=is_whole)
        elif self._fault.wrong is Wrong.MISSING and form.get("seq") == self._fault.at:
            # The missing entry was found at a later place
            self._fault = Flaw(self._fault.at, Wrong.DISPLACED)
        self._note(form, is_erased=is_erased)

    def end(self) -> Verdict:
        """Return the result."""
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

    def _check_entry(self, form: Form, *, is_whole: bool) -> Flaw | None:
        seq = form.get("seq")
        if not isinstance(seq, int) or isinstance(seq, bool) or seq < 1:
            return Flaw(self._last.seq + 1, Wrong.ALTERED)
        due, prev = self._last.seq + 1, self._last.hash
        # A pruned chain does not start with number 1.
        if self._first is None:
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
        """Return the fault if the start of the chain was deleted without a checkpoint."""
        seq = self._first.get("seq") if self._first is not None else 1
        if self._first is None or not isinstance(seq, int) or seq <= 1:
            return None
        is_noted = (seq - 1, self._first.get("prev")) in self._checkpoints
        # The deletion may be in progress: the first entry is then older than the checkpoint's last
        # one.
        is_noted = is_noted or any(_is_from(upto, seq) for upto, _ in self._checkpoints)
        return None if is_noted else Flaw(seq, Wrong.MISSING)

    def _plain_fault(self) -> Flaw | None:
        """Return the fault if the entry before the key's introduction was changed.

        A pruned chain may no longer contain this entry. Its remaining entries and the checkpoint
        before them are sealed with the key.
        """
        first = self._first.get("seq") if self._first is not None else None
        is_pruned = isinstance(first, int) and first > self._plain_until.seq
        return None if is_pruned else self._missed(self._plain_until)

    def _head_fault(self) -> Flaw | None:
        return None if self._head is None else self._missed(self._head)

    def _missed(self, head: Head) -> Flaw | None:
        """Return the fault if the chain does not contain a head that was noted elsewhere."""
        if head in self._met or head == Head():
            return None
        if (head.seq, head.hash) in self._checkpoints:  # deleted later, with a checkpoint
            return None
        if head.seq > self._last.seq:
            return Flaw(self._last.seq + 1, Wrong.MISSING)
        first = self._first.get("seq") if self._first is not None else 1
        is_gone = isinstance(first, int) and head.seq < first
        return Flaw(head.seq, Wrong.MISSING if is_gone else Wrong.ALTERED)

    def _erased_faults(self) -> list[Flaw]:
        """Return a fault for each thread without content that has no entry `forgotten`.

        The order does not matter: an entry of the thread that was written during the deletion can
        follow the entry `forgotten`.
        """
        return [
            Flaw(seq, Wrong.ALTERED)
            for thread, seq in self._erased.items()
            if thread not in self._forgotten
        ]


def _is_from(upto: object, seq: int) -> bool:
    return isinstance(upto, int) and not isinstance(upto, bool) and upto >= seq

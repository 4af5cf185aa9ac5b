"""The chain of the audit, by the cases of the specification and by what could go wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from storage.chain import (
    GENESIS,
    MIN_KEY,
    NO_KEY,
    PLAIN,
    Flaw,
    Form,
    Head,
    Seal,
    Verdict,
    Verifier,
    Wrong,
    canonical,
    content_hash,
)

CASES = Path(__file__).parents[2] / "data" / "cases.yaml"
KEY, OTHER_KEY = b"k" * MIN_KEY, b"o" * MIN_KEY
KEYED = Seal(KEY)


def audit_cases() -> list[Any]:
    # The whole table is large: only the part with the audit's cases is read.
    text = "cases:\n  - id: A001\n" + CASES.read_text("utf-8").partition("\n  - id: A001\n")[2]
    cases = yaml.load(text, Loader=yaml.CSafeLoader)["cases"]
    return [pytest.param(case, id=case["id"]) for case in cases if case["kind"] == "audit"]


def verdict_of(
    entries: Iterable[Form],
    seal: Seal = NO_KEY,
    head: Head | None = None,
    *,
    plain_until: Head | None = None,
    **marks: Any,
) -> Verdict:
    verifier = Verifier(seal, head, plain_until=plain_until)
    for entry in entries:
        verifier.add(entry, **marks)
    return verifier.end()


@pytest.mark.parametrize("case", audit_cases())
def test_a_case_of_the_specification(case: dict[str, Any]) -> None:
    seal = Seal(bytes.fromhex(case["key_hex"])) if "key_hex" in case else NO_KEY
    head = Head(case["head"]["seq"], case["head"]["hash"]) if "head" in case else None

    verdict = verdict_of(case["entries"], seal, head)

    expect = case["expect"]
    assert verdict.ok is expect["ok"]
    if verdict.fault is None:
        assert (verdict.seq, verdict.hash) == (expect["seq"], expect["hash"])
    else:
        assert (verdict.fault.at, verdict.fault.wrong) == (expect["at"], expect["fault"])


def test_all_nine_cases_are_played() -> None:
    assert [case.id for case in audit_cases()] == [f"A00{number}" for number in range(1, 10)]


def a_chain(count: int, seal: Seal = NO_KEY, start: Head | None = None) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    head = start or Head()
    for number in range(head.seq + 1, head.seq + count + 1):
        form = {"v": 1, "team": "T1", "id": f"e{number}", "at_ms": number, "action": "voted"}
        form |= {"thread": "", "approval": "", "actor": "U1", "for": "", "detail": {"n": number}}
        sealed = seal.sealed(form, seq=number, prev=head.hash)
        head = Head(number, str(sealed["hash"]))
        made.append(sealed)
    return made


def test_a_field_that_changes_is_found_wherever_it_stands() -> None:
    for name in a_chain(1)[0]:
        if name == "seq":
            continue
        chain = a_chain(9)
        chain[4] = {**chain[4], name: "x"}
        fault = verdict_of(chain).fault
        assert fault is not None, name
        assert fault.at == 5, name


@given(st.integers(0, 29), st.integers(0, 29), st.sampled_from(["alter", "remove", "swap"]))
def test_any_single_harm_is_found(first: int, second: int, harm: str) -> None:
    chain = a_chain(30)
    match harm:
        case "alter":
            chain[first] = {**chain[first], "detail": {"n": second + 100}}
        case "remove" if first < 29:
            del chain[first]
        case "swap" if first != second:
            chain[first], chain[second] = chain[second], chain[first]
        case _:
            return
    at = min(first, second) if harm == "swap" else first
    fault = verdict_of(chain).fault
    assert fault is not None
    assert fault.at == at + 1


def test_entries_that_changed_their_numbers_are_displaced() -> None:
    """As somebody does who swaps two in a database that reads them by number."""
    chain = a_chain(9)
    chain[2], chain[3] = {**chain[3], "seq": 3}, {**chain[2], "seq": 4}
    assert verdict_of(chain).fault == Flaw(3, Wrong.DISPLACED)


def test_an_entry_that_comes_twice_is_displaced() -> None:
    chain = a_chain(4)
    assert verdict_of([*chain, chain[1]]).fault == Flaw(2, Wrong.DISPLACED)


def test_who_rewrites_an_entry_and_its_hash_breaks_the_next_link() -> None:
    chain = a_chain(4)
    chain[1] = NO_KEY.sealed({**chain[1], "actor": "U9"}, seq=2, prev=str(chain[0]["hash"]))
    assert verdict_of(chain).fault == Flaw(3, Wrong.ALTERED)


def test_who_rewrites_all_behind_it_is_found_with_a_key_or_a_noted_head() -> None:
    true = a_chain(4)
    forged = [*true[:2], *a_chain(2, NO_KEY, Head(2, str(true[1]["hash"])))]
    forged[2] = NO_KEY.sealed({**true[2], "actor": "U9"}, seq=3, prev=str(true[1]["hash"]))
    forged[3] = NO_KEY.sealed(true[3], seq=4, prev=str(forged[2]["hash"]))
    assert verdict_of(forged).ok
    assert verdict_of(forged, head=Head(4, str(true[3]["hash"]))).fault == Flaw(4, Wrong.ALTERED)

    keyed = a_chain(2, KEYED)
    forged = [*keyed, *a_chain(2, NO_KEY, Head(2, str(keyed[1]["hash"])))]
    assert verdict_of(forged, KEYED).fault == Flaw(3, Wrong.UNKEYED)
    assert verdict_of(keyed).fault == Flaw(1, Wrong.UNKNOWN_KEY)


def test_a_key_may_come_later_and_may_change() -> None:
    chain = a_chain(2)
    chain += a_chain(2, KEYED, Head(2, str(chain[-1]["hash"])))
    changed = Seal(OTHER_KEY, old=(KEY,))
    chain += a_chain(2, changed, Head(4, str(chain[-1]["hash"])))

    noted = Head(2, str(chain[1]["hash"]))
    verdict = verdict_of(chain, changed, plain_until=noted)

    assert verdict_of(chain, changed).fault == Flaw(1, Wrong.UNKEYED)
    assert verdict == Verdict(seq=6, hash=str(chain[-1]["hash"]), count=6, unkeyed=2)
    other = verdict_of(chain, Seal(OTHER_KEY), plain_until=noted)
    assert other.fault == Flaw(3, Wrong.UNKNOWN_KEY)


@pytest.mark.parametrize("key", [b"x", b"x" * (MIN_KEY - 1)])
def test_a_key_that_can_be_guessed_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match="at least 32 bytes"):
        Seal(key)
    with pytest.raises(ValueError, match="at least 32 bytes"):
        Seal(KEY, old=(key,))


def test_a_key_is_not_shown() -> None:
    assert "kkkk" not in repr(KEYED)


def a_checkpoint(upto: Form, behind: Form) -> dict[str, object]:
    detail = {"upto_seq": upto["seq"], "upto_hash": upto["hash"], "count": 1}
    form = {**behind, "id": "c", "action": "checkpoint", "detail": detail}
    return NO_KEY.sealed(form, seq=int(str(behind["seq"])) + 1, prev=str(behind["hash"]))


def test_a_head_that_was_deleted_since_is_known_by_its_checkpoint() -> None:
    chain = a_chain(5)
    chain.append(a_checkpoint(chain[2], chain[4]))
    kept = chain[3:]

    assert verdict_of(kept).ok
    assert verdict_of(kept, head=Head(3, str(chain[2]["hash"]))).ok
    assert verdict_of(kept, head=Head(2, str(chain[1]["hash"]))).fault == Flaw(2, Wrong.MISSING)
    assert verdict_of(kept, head=Head(5, str(chain[4]["hash"]))).ok
    assert verdict_of(kept[1:]).fault == Flaw(5, Wrong.MISSING)


def test_an_empty_chain_is_whole_unless_a_head_was_noted() -> None:
    assert verdict_of([]) == Verdict(seq=0, hash=GENESIS)
    assert verdict_of([], head=Head()).ok
    assert verdict_of([], head=Head(3, "a" * 64)).fault == Flaw(1, Wrong.MISSING)


@pytest.mark.parametrize("seq", [None, "1", True, 0, -1])
def test_an_entry_without_a_number_is_altered(seq: object) -> None:
    chain = a_chain(3)
    chain[1] = {**chain[1], "seq": seq}
    assert verdict_of(chain).fault == Flaw(2, Wrong.ALTERED)


def test_content_is_gone_only_where_its_thread_was_forgotten() -> None:
    chain = a_chain(3)
    for number, entry in enumerate(chain):
        chain[number] = {**entry, "thread": "T1:C1:1"}
    chain = [{**entry} for entry in resealed(chain)]

    assert verdict_of(chain, is_erased=True).fault == Flaw(1, Wrong.ALTERED)
    assert verdict_of(chain, is_whole=False).fault == Flaw(1, Wrong.ALTERED)
    chain[2] = {**chain[2], "action": "forgotten"}
    assert verdict_of(resealed(chain), is_erased=True).ok
    assert verdict_of(resealed(reversed(chain)), is_erased=True).ok  # it came meanwhile
    chain[2] = {**chain[2], "thread": "T1:C1:2"}
    assert verdict_of(resealed(chain), is_erased=True).fault == Flaw(1, Wrong.ALTERED)


def resealed(chain: Iterable[Form]) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    for seq, form in enumerate(chain, 1):
        made.append(NO_KEY.sealed(form, seq=seq, prev=str(made[-1]["hash"]) if made else GENESIS))
    return made


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ({"é": "✓"}, '{"\\u00e9":"\\u2713"}'),
        ([2**53, -(2**53), 2**53 + 1, 0.25, 1.0], None),
        ([True, None], "[true,null]"),
    ],
)
def test_data_is_written_in_one_way(value: object, text: str | None) -> None:
    wanted = text or '[9007199254740992,-9007199254740992,"9007199254740993","0.25","1.0"]'
    assert canonical(value) == wanted
    assert canonical(json.loads(wanted)) == wanted


def test_the_mark_of_an_open_entry_is_its_own() -> None:
    form = a_chain(1)[0]
    mac = KEYED.mac(form)
    assert KEYED.is_ours(form, mac)
    assert Seal(OTHER_KEY, old=(KEY,)).is_ours(form, mac)
    assert not Seal(OTHER_KEY).is_ours(form, mac)
    assert not KEYED.is_ours({**form, "actor": "U9"}, mac)
    assert not KEYED.is_ours(form, "")
    assert mac not in {"", form["hash"], KEYED.hash({**form, "alg": KEYED.alg})}
    assert (NO_KEY.mac(form), NO_KEY.is_ours(form, "")) == ("", True)
    assert NO_KEY.alg == PLAIN


def test_what_was_deleted_cannot_be_guessed() -> None:
    assert content_hash({"a": 1}, "s1") != content_hash({"a": 1}, "s2")
    assert content_hash({"a": 1, "b": 2}, "s") == content_hash({"b": 2, "a": 1}, "s")

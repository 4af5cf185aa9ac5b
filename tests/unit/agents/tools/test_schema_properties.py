"""Schemas and validation, of signatures that are made at random."""

from __future__ import annotations

import keyword
import string
from datetime import date, datetime
from decimal import Decimal
from inspect import Parameter, Signature
from typing import Annotated, Any, Literal

import jsonschema
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import BaseModel

from agents.core.codec import Json
from agents.core.digest import canonical_json
from agents.tools.schema import Multiline, Parameters, parameters
from tests.unit.agents.tools.test_schema import problems


class Size(BaseModel):
    width: int
    deep: bool = False


# The kinds of parameters: type, JSON values that fit, and a value that does not.
KINDS: list[tuple[Any, st.SearchStrategy[Json], Json]] = [
    (str, st.text(st.characters(exclude_categories=["Cs"])), 5),
    (int, st.integers(-(2**53), 2**53), "x"),
    (bool, st.booleans(), "x"),
    (float, st.floats(allow_nan=False, allow_infinity=False), "x"),
    (date, st.dates().map(date.isoformat), "x"),
    (datetime, st.datetimes().map(datetime.isoformat), "x"),
    (
        Decimal,
        st.decimals(-10000, 10000, places=2, allow_nan=False, allow_infinity=False).map(str),
        "x",
    ),
    (Literal["a", "b"], st.sampled_from(["a", "b"]), "c"),
    (list[Literal["a", "b"]], st.lists(st.sampled_from(["a", "b"])), ["c"]),
    (Size, st.fixed_dictionaries({"width": st.integers(0, 9)}), {"width": "x"}),
    (dict[str, int], st.dictionaries(st.text(string.ascii_letters), st.integers(0, 9)), []),
    (Annotated[str, Multiline], st.just("two\nlines"), None),
]
NAMES = st.text(string.ascii_letters + "_", min_size=1, max_size=12).filter(
    lambda name: not keyword.iskeyword(name)
)


@st.composite
def signatures(draw: st.DrawFn) -> tuple[Parameters, dict[str, Json], dict[str, Json]]:
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    kinds = [draw(st.sampled_from(KINDS)) for _ in names]

    def function() -> None: ...

    function.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind)
            for name, (kind, _, _) in zip(names, kinds, strict=True)
        ]
    )
    function.__annotations__ = {name: kind for name, (kind, _, _) in zip(names, kinds, strict=True)}
    fits = {name: draw(values) for name, (_, values, _) in zip(names, kinds, strict=True)}
    wrong = {name: bad for name, (_, _, bad) in zip(names, kinds, strict=True)}
    return parameters(function), fits, wrong


# Each example builds a pydantic model, which takes long on a busy machine.
SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(signatures())
def test_what_fits_any_signature_is_canonical_after_once(
    made: tuple[Parameters, dict[str, Json], dict[str, Json]],
) -> None:
    signature, fits, _ = made
    schema = dict(signature.schema)
    jsonschema.Draft202012Validator.check_schema(schema)
    once = signature.canonical(fits)
    assert canonical_json(signature.canonical(once)) == canonical_json(once)
    assert list(once) == list(signature.names)
    jsonschema.validate(once, schema)


@SLOW
@given(signatures(), st.randoms(use_true_random=False))
def test_what_does_not_fit_any_signature_is_named(
    made: tuple[Parameters, dict[str, Json], dict[str, Json]], random: Any
) -> None:
    signature, fits, wrong = made
    name = random.choice(signature.names)
    assert name in {path[0] for path in problems(signature, {**fits, name: wrong[name]})}
    rest = {key: value for key, value in fits.items() if key != name}
    assert problems(signature, rest) == {(name,): "Field required"}

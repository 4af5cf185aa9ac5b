"""For each change, one test of those runs that differ in the driver alone."""

from tests.support.twins import left_out


def test_one_of_each_family_stays() -> None:
    names = [
        f"t.py::test_{name}[{case}{driver}]"
        for name in "abc"
        for case in ("", "x-", "y-")
        for driver in ("motor", "pymongo")
    ]
    stay = [name for name in names if name not in left_out(names)]
    families = {name.replace("pymongo", "motor") for name in stay}
    assert len(stay) == len(families) == 9


def test_both_are_chosen_in_turn() -> None:
    names = [f"t.py::test_{n}[{one}]" for n in range(40) for one in ("motor", "pymongo")]
    stay = [name for name in names if name not in left_out(names)]
    assert len(stay) == 40
    assert 5 < sum("pymongo" in name for name in stay) < 35


def test_the_file_and_the_memory_are_twins_and_the_databases_are_not() -> None:
    names = [
        "t.py::test_a[sqlite-file]",
        "t.py::test_a[sqlite-memory]",
        "t.py::test_a[mongo-motor]",
    ]
    assert len(left_out(names)) == 1
    assert "t.py::test_a[mongo-motor]" not in left_out(names)


def test_what_only_speaks_of_a_driver_stays() -> None:
    names = ["t.py::test_motor_opens", "t.py::test_pymongo_opens", "t.py::test_a[motorcycle]"]
    assert left_out(names) == set()


def test_what_has_no_twin_in_this_run_stays() -> None:
    assert left_out(["t.py::test_a[motor]", "t.py::test_b"]) == set()

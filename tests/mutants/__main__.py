"""`make mutants`: small wrong changes in the modules that decide. Tests have to notice each.

mutmut changes the bodies of functions; `changes` makes what it leaves out. `nearest` has the
modules and their tests. What no test notices has to stand in accepted.toml, with the reason.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from tests.mutants.accepted import Accepted, read_accepted
from tests.mutants.mutmut import run_mutmut
from tests.mutants.nearest import nearest
from tests.mutants.own import run_own
from tests.mutants.result import Measured

ENOUGH = 97.0
"""Per cent that tests have to notice, of those that can be noticed."""


def main() -> int:
    """Run, print, and say whether it is enough."""
    parser = ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--only", default="", help="a file or a folder: agents/policy")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sample", type=int, default=0, help="try so many of each module at most")
    parser.add_argument("--own", action="store_true", help="only what mutmut does not change")
    args = parser.parse_args()
    if not nearest(args.only):
        raise SystemExit(f"no module that decides is in {args.only}; see tests/mutants/nearest.py")
    measured = [] if args.own else list(run_mutmut(args.only, args.jobs, args.sample))
    return report([*measured, *run_own(args.only, args.sample)], read_accepted())


def report(measured: list[Measured], accepted: Accepted) -> int:
    """Print the share of each module, and what no test noticed."""
    results = [mutant for each in measured for mutant in each.results]
    holes = [
        mutant for mutant in results if not mutant.is_killed and accepted.reason(mutant) is None
    ]
    print(
        f"\n{'module':36}{'mutants':>8}{'tried':>8}{'killed':>8}{'accepted':>9}{'left':>6}{'share':>9}"
    )
    for path in [*sorted({each.path for each in measured}), ""]:
        size = sum(each.size for each in measured if path in {"", each.path})
        tried = [mutant for mutant in results if path in {"", mutant.path}]
        left = len([mutant for mutant in holes if path in {"", mutant.path}])
        killed = len([mutant for mutant in tried if mutant.is_killed])
        spared = len(tried) - killed - left
        print(
            f"{path or 'all':36}{size:8}{len(tried):8}{killed:8}{spared:9}{left:6}"
            f"{share(killed, left):8.1f}%"
        )
    for hole in holes:
        print(f"\n{hole.path}, {hole.place}\n{hole.diff}")
    total = share(len([mutant for mutant in results if mutant.is_killed]), len(holes))
    if not results or total < ENOUGH:
        print(f"\n{total:.1f} % were noticed; it has to be {ENOUGH:g} %.", file=sys.stderr)
        return 1
    return 0


def share(killed: int, left: int) -> float:
    """Per cent of what could be killed that was."""
    return 100 * killed / (killed + left) if killed + left else 0.0


if __name__ == "__main__":
    sys.exit(main())

"""Hold two golden records against each other, number by number.

    python tests/golden/compare.py BEFORE AFTER [--within 1e-9]

Names and layout may change, figures may not: what stands at the same place is compared there; what
does not is looked for by its value elsewhere in the same record. A figure that was there before and
is nowhere now is an error, and so is one that differs. New figures are counted and allowed.
"""

import argparse
import json
import math
import sys
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

WITHIN = 1e-9


@dataclass
class Comparison:
    """How two records differ.

    Args:
        same: Figures equal at the same place.
        moved: Figures found at another place.
        lost: Places whose figure is nowhere any more.
        changed: Places whose figure differs, with both.
        new: Figures that were not there before.
    """

    same: int = 0
    moved: int = 0
    lost: list[str] = field(default_factory=list)
    changed: list[tuple[str, object, object]] = field(default_factory=list)
    new: int = 0

    @property
    def holds(self) -> bool:
        """Whether every figure is still there."""
        return not self.lost and not self.changed


def main() -> None:
    """Compare the records of two folders."""
    parser = argparse.ArgumentParser(description="Compare two golden records.")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--within", type=float, default=WITHIN)
    asked = parser.parse_args()
    holds = True
    for path in sorted(asked.before.glob("*.json")):
        other = asked.after / path.name
        if not other.exists():
            print(f"{path.stem}: not in {asked.after}")
            continue
        before, after = (json.loads(p.read_text()) for p in (path, other))
        if before["machine"] != after["machine"]:
            print(f"{path.stem}: other machines ({before['machine']}; {after['machine']})")
        outcome = compare(before["figures"], after["figures"], within=asked.within)
        holds &= outcome.holds
        _tell(path.stem, outcome)
    sys.exit(not holds)


def compare(
    before: dict[str, float | str], after: dict[str, float | str], *, within: float = WITHIN
) -> Comparison:
    """Every figure of `before`, looked for in `after`."""
    outcome = Comparison()
    apart = {}
    for place, value in before.items():
        if place in after and _equal(value, after[place], within):
            outcome.same += 1
        else:
            apart[place] = value
    left = {place: value for place, value in after.items() if place not in before or place in apart}
    texts = Counter(value for value in left.values() if isinstance(value, str))
    numbers = sorted(value for value in left.values() if not isinstance(value, str))
    for place, value in apart.items():
        if isinstance(value, str):
            taken = texts[value] > 0
            texts[value] -= taken
        else:
            taken = _take(numbers, value, within)
        if taken:
            outcome.moved += 1
        elif place in after:
            outcome.changed.append((place, value, after[place]))
        else:
            outcome.lost.append(place)
    outcome.new = len(after) - outcome.same - outcome.moved
    return outcome


def _equal(one: float | str, other: float | str, within: float) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return math.isclose(one, other, rel_tol=within, abs_tol=within)


def _take(numbers: list[float], value: float, within: float) -> bool:
    """Whether a number is among those left over; each answers for one only."""
    start = bisect_left(numbers, value - within * max(1.0, abs(value)))
    if start < len(numbers) and _equal(value, numbers[start], within):
        numbers.pop(start)
        return True
    return False


def _tell(name: str, outcome: Comparison) -> None:
    print(
        f"{name}: {outcome.same} equal, {outcome.moved} elsewhere, {len(outcome.changed)} changed, "
        f"{len(outcome.lost)} lost, {outcome.new} new"
    )
    for place, was, now in outcome.changed[:20]:
        print(f"  changed {place}: {was} -> {now}")
    for place in outcome.lost[:20]:
        print(f"  lost {place}")


if __name__ == "__main__":
    main()

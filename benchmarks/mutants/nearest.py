"""Which code the faults are put into, and which tests are nearest to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

RECOUNT = (
    "tests/core/recount",
    "tests/tasks/recount",
    "tests/flows/recount",
    "tests/flows/verification",
    "tests/flows/lattice/test_linked.py",
)
WRITING = ("tests/tasks/writing", "tests/tasks/counting", "tests/core/recoding", "tests/core/columns", "tests/flows/source/test_wide.py")
PUBLISHED = ("tests/flows/engine/test_invariance.py", "tests/flows/publication", "tests/flows/records/test_record_methods.py")
COMPOSITION = ("tests/core/composition", "tests/flows/composition", "tests/flows/publication/test_increments.py")
SEARCH = ("tests/core/lattice", "tests/core/units", "tests/flows/lattice")

NEAREST: Mapping[str, Sequence[str]] = {
    "core/recount": RECOUNT,
    "tasks/recount": RECOUNT,
    "tasks/verification": ("tests/tasks/writing", *RECOUNT),
    "tasks/writing": (*WRITING, *PUBLISHED),
    "core/columns/sorting.py": (*WRITING, *PUBLISHED),
    "core/recoding/release_order.py": (*WRITING, *PUBLISHED),
    "core/privacy": (
        "tests/core/mondrian", "tests/core/local_suppression", "tests/tasks/report", "tests/flows/privacy",
        "tests/flows/mondrian",
    ),
    "core/units": (
        "tests/core/local_suppression", "tests/core/mondrian", "tests/core/clustering",
        *SEARCH,
    ),
    "core/composition": COMPOSITION,
    "tasks/composition": COMPOSITION,
    "core/lattice": SEARCH,
    "tasks/lattice": ("tests/flows/lattice", "tests/flows/report", "tests/flows/utility"),
    "tasks/report/claims.py": ("tests/flows/report",),
}  # fmt: skip
"""By beginning of a path, the tests that are near besides those of its own folder."""


def nearest(path: str) -> Sequence[str]:
    """Return the tests of a module: those of its folder, and those of its longest beginning."""
    begin = room_of(path)
    folder = begin.rpartition("/")[0] if begin.endswith(".py") else begin
    return tuple(dict.fromkeys([f"tests/{folder}", *NEAREST[begin]]))


def room_of(path: str) -> str:
    """Return the subject that a module is counted under."""
    return max((begin for begin in NEAREST if path.startswith(begin)), key=len)

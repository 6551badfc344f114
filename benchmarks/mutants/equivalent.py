"""Mutants that nothing could kill: what they change is not seen by anybody, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

EQUIVALENT: Mapping[str, str] = {
    "core/composition/contents.py:Sketch.of: False -> True": (
        "More different digests than a sketch keeps are left there, and keeping some of them says itself that there were others."
    ),
    "core/lattice/search.py:Search._look: surely is failing -> False": (
        "Where both are the same array, the records of one are those of the other: it saves a sum."
    ),
    "core/lattice/pareto_front.py:front_of: search is None or not seen -> ((search is None) and (not seen))": (
        "Shares are always tried, and of no node there is no front either way."
    ),
    "tasks/verification/job_figures.py:_is_node_of: True -> False": "Both lists have one length, which was asked before.",
    "core/lattice/search.py:Search._look: above, least -> least, above": "The greater of two numbers is the same in either order.",
    "core/order/release_order.py:assign_files: 0 -> (0 + 1)": (
        "Any seed spreads the records of a class alike well, as long as it stays the same."
    ),
    "core/persons/pairs.py:places_for: 1 -> (1 + 1)": ("The table has twice the room, and is a power of two still."),
    "core/recount/groups.py:withheld_sql: IS NOT DISTINCT FROM -> =": (
        "Records of nobody, which alone have nulls here, all stay, so that such a group adds nothing whether it is joined or not."
    ),
    "tasks/composition/by_files.py:_comparable: run.recoded[1].withheld -> False": (
        "Only a job that names persons leaves records out by whose they are, and of such a job files are not compared."
    ),
}
"""By the name of a mutant."""

"""Leave the counting of references out of kernels that make no arrays.

Whoever calls a kernel holds the arrays that it hands over until the call ends. A kernel that makes no array, and returns none, has nothing
to count. numba counts all the same, each array of a named tuple by itself, and that is half of the code it makes.
"""

from __future__ import annotations

from typing import Any

from numba.core import ir, types
from numba.core.compiler import DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import IRLegalization

WITHIN = frozenset(
    {"build_tuple", "cast", "exhaust_iter", "getattr", "getiter", "iternext", "pair_first", "phi", "static_getitem", "undef"}
)
"""Expressions whose arrays are those that they are made of."""


BUILDER: Any = DefaultPassBuilder
REGISTER: Any = register_pass


@REGISTER(mutates_CFG=False, analysis_only=True)
class _Borrowing(LoweringPass):
    """Takes the counting of references from a kernel that only borrows arrays."""

    _name = "skald_borrowing"

    def __init__(self) -> None:
        """Has nothing to set; numba's class asks for it all the same."""

    def run_pass(self, state: Any) -> bool:
        """Changes by which target the code is made; returns that the code itself is as it was."""
        if _only_borrows(state):
            state.flags.nrt = False
            state.targetctx = state.targetctx.subtarget(enable_nrt=False)
            # What was worked out for the target that counts is not true of this one.
            state.targetctx.__dict__.pop("nrt", None)
        return False


def add_borrowing(state: Any) -> list[Any]:
    """Returns numba's passes, and the one of this module before machine code is made."""
    passes = BUILDER.define_nopython_pipeline(state)
    passes.add_pass_after(_Borrowing, IRLegalization)
    passes.finalize()
    return [passes]


def _only_borrows(state: Any) -> bool:
    """Tells whether a kernel neither makes nor returns what is counted."""

    def counted(kind: Any) -> bool:
        return bool(state.targetctx.data_model_manager[kind].contains_nrt_meminfo())

    def owned(value: Any, kind: Any) -> bool:
        if not isinstance(value, ir.Expr) or not counted(kind):
            return False
        if value.op == "getitem":
            return not isinstance(state.typemap[value.index.name], types.Integer | types.SliceType)
        if value.op == "call":
            return not isinstance(state.typemap[value.func.name], types.NamedTupleClass)
        return value.op not in WITHIN

    if counted(state.return_type):
        return False
    assigned = (line for block in state.func_ir.blocks.values() for line in block.body if isinstance(line, ir.Assign))
    return not any(owned(line.value, state.typemap[line.target.name]) for line in assigned)

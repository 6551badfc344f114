"""Registry of the kinds of hierarchy, with schema, code and texts, and the tree hierarchy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from schemas.errors.base import counted, verb_of
from schemas.reading.model import Choice, fault, kind_named, one_named, plain
from schemas.reading.registry import Code, Registry, Schemas
from schemas.registry.hierarchies import CsvHierarchy, DateHierarchy, HierarchySpec, PrefixHierarchy, WidthsHierarchy

Route: TypeAlias = tuple[str, ...]
"""A leaf's place in the tree: the value itself, then its groups from the finest to the coarsest."""


def scalar_text(value: object) -> str | None:
    """Return the text of a tree's leaf or key, or None if it is no scalar.

    Leaves are compared with the column's values by this text.
    """
    # Before the numbers, because to Python true is an int.
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float | Decimal) else None


class Gap(Enum):
    """Markers for a missing or empty list of values in a tree."""

    EMPTY = "an empty list or mapping"
    LOOSE = "a value by itself"


def tree_ends(node: object, groups: Route = ()) -> Iterator[tuple[object, Route]]:
    """Yield every leaf of a tree with its groups, finest first, and a ``Gap`` for a missing list."""
    if isinstance(node, dict) and node:
        for key, below in node.items():
            yield from tree_ends(below, (str(scalar_text(key)), *groups))
    elif isinstance(node, list) and node:
        yield from ((leaf, groups) for leaf in node)
    else:
        yield Gap.EMPTY if isinstance(node, dict | list) else Gap.LOOSE, groups


def tree_end_faults(found: list[object]) -> list[str]:
    """Return the faults of a tree's ends: missing lists, empty groups, empty or nested leaves."""
    loose = sum(end is Gap.LOOSE for end in found)
    empty = sum(end is Gap.EMPTY for end in found)
    null = sum(end is None for end in found)
    nested = sum(isinstance(end, dict | list) for end in found)
    faults = []
    if loose:
        faults.append(f"{counted(loose, 'group')} of the tree must hold a list of values or further groups")
    if empty:
        faults.append(
            f"{counted(empty, 'group')} of the tree {verb_of(empty, 'are')} empty; fill or remove {'it' if empty == 1 else 'them'}"
        )
    if null:
        remedy = "nulls get a group of their own, or that of the leaf which nulls: names, so remove them or quote the word"
        faults.append(f"{counted_leaves(null)} of the tree {verb_of(null, 'are')} null; {remedy}")
    if nested:
        what = "is a list or mapping" if nested == 1 else "are lists or mappings"
        faults.append(f"{counted_leaves(nested)} of the tree {what}; write groups as keys and values as lists")
    return faults


def counted_leaves(count: int) -> str:
    """Return a number of leaves as text, such as ``1 leaf`` or ``1,200 leaves``."""
    return f"{count:,} {'leaf' if count == 1 else 'leaves'}"


def tree_faults(tree: object) -> list[str]:
    """Return messages on all faults of a tree, with counts; empty if the tree is right.

    A tree must end in lists of scalars, all at the same depth; a value stands in it once; and a group's name stands for one
    group of its level, because groups of one name would be merged at that level and torn apart again above it.
    """
    if not isinstance(tree, dict) or not tree:
        return ["must be a mapping of groups that ends in lists of values"]
    found = list(tree_ends(tree))
    # Depths and repetitions can only be told of ends that are leaves.
    if faults := tree_end_faults([end for end, _ in found]):
        return faults
    routes = [(str(scalar_text(leaf)), *groups) for leaf, groups in found]
    depths = Counter(map(len, routes))
    if uneven := len(routes) - depths.most_common(1)[0][1]:
        faults.append(
            f"{uneven:,} of {counted_leaves(len(routes))} {verb_of(uneven, 'are')} at another depth than the rest; put all "
            "at the same depth"
        )
    if repeated := len(routes) - len({route[0] for route in routes}):
        faults.append(f"{counted_leaves(repeated)} repeat{'s' if repeated == 1 else ''} another one; list every value once")
    if not faults:
        faults.extend(repeated_group_faults(routes))
    return faults


def repeated_group_faults(routes: list[Route]) -> list[str]:
    """Return a fault for each level where one group name has several parents, values being level 0."""
    faults = []
    for level in range(1, len(routes[0]) - 1):
        parents = Counter(name for name, _ in {(route[level], route[level + 1]) for route in routes})
        shared = sum(count > 1 for count in parents.values())
        if shared:
            used = f"{counted(shared, 'group name')} of level {level} {verb_of(shared, 'are')} used under different groups"
            faults.append(f"{used} of level {level + 1}; give every group a name of its own")
    return faults


def checked_tree(tree: object) -> object:
    """Return a tree with all keys and leaves as text, and raise if it has faults."""
    if faults := tree_faults(tree):
        raise fault(*faults)
    return tree_texts(tree)


def tree_texts(node: Any) -> Any:
    """Return a tree with its keys and leaves converted to text."""
    if isinstance(node, dict):
        return {str(scalar_text(key)): tree_texts(below) for key, below in node.items()}
    return [scalar_text(leaf) for leaf in node]


TREE_SCHEMA = {"type": "object", "minProperties": 1, "description": "groups, coarsest first, that end in lists of values"}


class TreeHierarchy(HierarchySpec):
    """Groups written in the job as a tree, the coarsest outermost.

    All leaves are at the same depth.
    """

    kind: ClassVar[str] = "tree"
    tree: Annotated[dict[str, Any], BeforeValidator(checked_tree), WithJsonSchema(TREE_SCHEMA)]
    """Nested groups that end in lists of values; keys and leaves are compared as text, as they are written."""
    nulls: str | None = None
    """The leaf that stands for nulls: above the values themselves a null belongs to its groups. Left out, nulls are a group of their own at
    every level."""
    counted_if_set: ClassVar[frozenset[str]] = frozenset({"nulls"})

    @model_validator(mode="after")
    def _null_is_a_leaf(self) -> Self:
        """Check that the value for nulls is a leaf of the tree."""
        if self.nulls is not None and all(leaf != self.nulls for leaf, *_ in self.routes):
            raise fault("nulls must be a leaf of the tree, so that nulls have a place among its groups")
        return self

    @cached_property
    def routes(self) -> list[list[str]]:
        """One list per leaf in file order: the value, then its groups, finest first."""
        return [[str(leaf), *groups] for leaf, groups in tree_ends(self.tree)]

    def canonical(self) -> dict[str, Any]:
        """Return the settings as JSON data: one list per leaf, in order.

        The order of leaves is part of the tree's meaning.
        """
        return {"tree": self.routes} | ({} if self.nulls is None else {"nulls": self.nulls})


@dataclass(frozen=True)
class HierarchyKind:
    """A registry entry for one kind of hierarchy.

    Attributes:
        name: The key by which a job names it.
        schema: What a job may say of it; its docstring and those of its fields are its part of the reference.
        ladder: Makes the levels between the values and ``*``: ``(qid, domain, spec, folder)`` to a `core.hierarchies.levels.DraftLevels`.
        words: Says of a spec in a few words how values can be grouped, without a value; plan and report show it.
        steps: Says of a spec what each level publishes, finest first; empty if a level is so many steps above the value.
        marks: Spells each of these as shortly as the papers' tables do; empty if levels are numbered.
        table: Reads the values that are listed, where they are: ``(qid, spec, folder)`` to a `core.hierarchies.levels.LabelTable`.
        telling: Tells which labels tell what the job hides, for kinds that can hide values: ``(texts, qid)`` to flags.
        recount_levels: Says for the recount what each level publishes, by code that shares nothing with the ladder: ``(name, spec, values,
            folder)`` to `core.recount.labels.group_levels.Levels`. Without it a release cannot be held against its source, so that jobs
            with a hierarchy of the kind are refused.
        recount_axis: Reads labels for the recount where they may be of any level, in the same way, to a
            `core.recount.labels.label_readers.LabelAxis`; for kinds with too many labels to list. Left out, the levels say what labels
            cover.
        recount_rule: Makes what tells the recount whether a label may be published where values are hidden: ``(qid, folder)`` to a
            `core.recount.labels.allowed_labels.Rule`; without it no label may.
    """

    name: str
    schema: type[HierarchySpec]
    ladder: Callable[..., Any]
    words: Callable[[Any], str]
    steps: Callable[[Any], list[str]] = lambda spec: []
    marks: Callable[[Any], list[str]] = lambda spec: []
    table: Callable[..., Any] | None = None
    telling: Callable[..., Any] | None = None
    recount_levels: Callable[..., Any] | None = None
    recount_axis: Callable[..., Any] | None = None
    recount_rule: Callable[..., Any] | None = None


def _width_steps(spec: WidthsHierarchy) -> list[str]:
    """Return a description of each level of bins."""
    if spec.encode:
        return [f"bins of {counted(int(width), 'neighbouring value')}" for width in spec.widths]
    origin = f", counted from {plain(spec.origin)}" if spec.origin else ""
    return [f"bins of width {plain(width)}{origin}" for width in spec.widths]


HIERARCHIES = Registry(
    "kind of hierarchy",
    HierarchyKind(
        name="csv",
        schema=CsvHierarchy,
        ladder=Code("core.hierarchies.levels:csv_levels"),
        table=Code("core.hierarchies.levels:read_table"),
        words=lambda spec: "groups listed in a file",
        recount_levels=Code("core.recount.labels.group_levels:levels_of_lists"),
        recount_axis=Code("core.recount.labels.label_readers:axis_of_groups"),
        recount_rule=Code("core.recount.labels.allowed_labels:lists_rule"),
    ),
    HierarchyKind(
        name="tree",
        schema=TreeHierarchy,
        ladder=Code("core.hierarchies.levels:tree_levels"),
        table=Code("core.hierarchies.levels:tree_table"),
        words=lambda spec: "groups of a tree",
        recount_levels=Code("core.recount.labels.group_levels:levels_of_lists"),
        recount_axis=Code("core.recount.labels.label_readers:axis_of_groups"),
        recount_rule=Code("core.recount.labels.allowed_labels:lists_rule"),
    ),
    HierarchyKind(
        name="widths",
        schema=WidthsHierarchy,
        ladder=Code("core.hierarchies.bins_and_dates:widths_levels"),
        telling=Code("core.hierarchies.hierarchy:disclosing_bins"),
        words=lambda spec: "ranks in bins" if spec.encode else "numbers in bins",
        recount_levels=Code("core.recount.labels.group_levels:levels_of_bins"),
        recount_axis=Code("core.recount.labels.label_readers:axis_of_ends"),
        recount_rule=Code("core.recount.labels.allowed_labels:bins_rule"),
        steps=_width_steps,
        marks=lambda spec: [str(plain(width)) for width in spec.widths],
    ),
    HierarchyKind(
        name="prefix",
        schema=PrefixHierarchy,
        ladder=Code("core.hierarchies.bins_and_dates:prefix_levels"),
        telling=Code("core.hierarchies.hierarchy:disclosing_prefixes"),
        words=lambda spec: "leading characters",
        recount_levels=Code("core.recount.labels.group_levels:levels_of_prefixes"),
        recount_axis=Code("core.recount.labels.label_readers:axis_of_prefixes"),
        recount_rule=Code("core.recount.labels.allowed_labels:prefixes_rule"),
        steps=lambda spec: [f"first {counted(kept, 'character')}" for kept in spec.prefix],
    ),
    HierarchyKind(
        name="date",
        schema=DateHierarchy,
        ladder=Code("core.hierarchies.bins_and_dates:dates_levels"),
        telling=Code("core.hierarchies.hierarchy:disclosing_days"),
        words=lambda spec: "calendar units",
        recount_levels=Code("core.recount.labels.group_levels:levels_of_units"),
        recount_axis=Code("core.recount.labels.label_readers:axis_of_ends"),
        recount_rule=Code("core.recount.labels.allowed_labels:units_rule"),
        steps=lambda spec: [f"{unit} of the date" for unit in spec.date],
    ),
)
"""The known kinds by name. A further one is one more entry."""
SCHEMAS = Schemas(HIERARCHIES)


def kind_of(value: object) -> str | None:
    """Return the hierarchy kind of validated or raw settings; None if no key of a mapping names one."""
    return kind_named(value, SCHEMAS)


def hierarchy_kind(spec: HierarchySpec) -> HierarchyKind:
    """Return the registry entry of a hierarchy's kind."""
    return HIERARCHIES[spec.kind]


Hierarchy = Annotated[
    HierarchySpec,
    Choice(SCHEMAS, kind_of),
    BeforeValidator(lambda value: one_named(value, SCHEMAS, "kind of hierarchy", "kinds of hierarchy")),
]

"""The kinds of hierarchy, recognised by their key: one entry each, with schema, code and words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator

from schemas.errors.base import counted
from schemas.hierarchies.hierarchy import CsvHierarchy, DateHierarchy, HierarchySpec, PrefixHierarchy, WidthsHierarchy
from schemas.hierarchies.tree import TreeHierarchy
from schemas.reading.model import Choice, kind_named, one_named, plain
from schemas.reading.registry import Code, Registry, Schemas


@dataclass(frozen=True)
class HierarchyKind:
    """A kind of hierarchy.

    Attributes:
        name: The key by which a job names it.
        schema: What a job may say of it; its docstring and those of its fields are its part of the reference.
        ladder: Makes the levels between the values and ``*``: ``(qid, domain, spec, folder)`` to a `core.hierarchies.levels.DraftLevels`.
        words: Says of a spec in a few words how values can be grouped, without a value; plan and report show it.
        steps: Says of a spec what each level publishes, finest first; empty if a level is so many steps above the value.
        marks: Spells each of these as shortly as the papers' tables do; empty if levels are numbered.
        table: Reads the values that are listed, where they are: ``(qid, spec, folder)`` to a `core.hierarchies.table.LabelTable`.
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
    if spec.encode:
        return [f"bins of {counted(int(width), 'neighbouring value')}" for width in spec.widths]
    origin = f", counted from {plain(spec.origin)}" if spec.origin else ""
    return [f"bins of width {plain(width)}{origin}" for width in spec.widths]


def _prefix_steps(spec: PrefixHierarchy) -> list[str]:
    return [f"first {counted(kept, 'character')}" for kept in spec.prefix]


def _date_steps(spec: DateHierarchy) -> list[str]:
    return [f"{unit} of the date" for unit in spec.date]


HIERARCHIES = Registry(
    "kind of hierarchy",
    HierarchyKind(
        name="csv",
        schema=CsvHierarchy,
        ladder=Code("core.hierarchies.table:csv_levels"),
        table=Code("core.hierarchies.table:read_table"),
        words=lambda spec: "groups listed in a file",
        recount_levels=Code("core.recount.labels.group_levels:levels_of_lists"),
        recount_axis=Code("core.recount.labels.label_readers:axis_of_groups"),
        recount_rule=Code("core.recount.labels.allowed_labels:lists_rule"),
    ),
    HierarchyKind(
        name="tree",
        schema=TreeHierarchy,
        ladder=Code("core.hierarchies.table:tree_levels"),
        table=Code("core.hierarchies.table:tree_table"),
        words=lambda spec: "groups of a tree",
        recount_levels=Code("core.recount.labels.group_levels:levels_of_lists"),
        recount_axis=Code("core.recount.labels.label_readers:axis_of_groups"),
        recount_rule=Code("core.recount.labels.allowed_labels:lists_rule"),
    ),
    HierarchyKind(
        name="widths",
        schema=WidthsHierarchy,
        ladder=Code("core.hierarchies.widths:widths_levels"),
        telling=Code("core.hierarchies.disclosing_labels:disclosing_bins"),
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
        ladder=Code("core.hierarchies.dates:prefix_levels"),
        telling=Code("core.hierarchies.disclosing_labels:disclosing_prefixes"),
        words=lambda spec: "leading characters",
        recount_levels=Code("core.recount.labels.group_levels:levels_of_beginnings"),
        recount_axis=Code("core.recount.labels.label_readers:axis_of_beginnings"),
        recount_rule=Code("core.recount.labels.allowed_labels:beginnings_rule"),
        steps=_prefix_steps,
    ),
    HierarchyKind(
        name="date",
        schema=DateHierarchy,
        ladder=Code("core.hierarchies.dates:dates_levels"),
        telling=Code("core.hierarchies.disclosing_labels:disclosing_days"),
        words=lambda spec: "calendar units",
        recount_levels=Code("core.recount.labels.group_levels:levels_of_units"),
        recount_axis=Code("core.recount.labels.label_readers:axis_of_ends"),
        recount_rule=Code("core.recount.labels.allowed_labels:units_rule"),
        steps=_date_steps,
    ),
)
"""The known kinds by name. A further one is one more entry."""
SCHEMAS = Schemas(HIERARCHIES)


def kind_of(value: object) -> str | None:
    """Returns the kind whose key a hierarchy's mapping holds."""
    return kind_named(value, SCHEMAS)


def entry_of(spec: HierarchySpec) -> HierarchyKind:
    """Returns the entry of a hierarchy's kind."""
    return HIERARCHIES[spec.kind]


def check_kind(value: Any) -> Any:
    """Returns ``value`` unchanged if exactly one kind of hierarchy is named in it."""
    return one_named(value, SCHEMAS, "kind of hierarchy", "kinds of hierarchy")


Hierarchy = Annotated[HierarchySpec, Choice(SCHEMAS, kind_of), BeforeValidator(check_kind)]

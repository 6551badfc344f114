"""The charts of a report, as SVG that stands inside its page: pygal lays them out, the page's style sheet colours them.

pygal's own style sheet, script, tooltips and random ids are taken out, so that a page runs nothing, needs nothing, has one look in the
light, in the dark and on paper, and is the same for the same figures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from html import escape
from xml.etree.ElementTree import Element, tostring

from core.lattice.map import STATUSES, LatticeMap
from core.lattice.picture import Palette, lattice_svg
from schemas.release.report import Report, RiskFigure
from schemas.release.terms import Band

SOURCE, RELEASE = "Source", "Release"
WIDTH, ROW, SINGLE_ROW, FRAME, LONGEST = 460, 46, 30, 64, 24
BORING = frozenset({"defs", "desc", "title"})
THEMED = Palette(
    paper="var(--paper)",
    ink="var(--ink)",
    soft="var(--soft)",
    line="var(--line)",
    edge="var(--edge)",
    chosen="var(--chosen)",
    fill={status: f"var(--{status})" for status in STATUSES},
    text={status: f"var(--on-{status})" for status in STATUSES},
)
Series = Mapping[str, Sequence[float | None]]


def size_chart(report: Report, percent: Callable[[float | None], str]) -> str:
    """Returns the share of records by the size of their class, before and after."""
    rows = size_rows(report)
    sides = {SOURCE: [source for _, source, _ in rows], RELEASE: [after for _, _, after in rows]}
    series = {side: _shares(bands) for side, bands in sides.items() if any(bands)}
    return bars("Share of records by the number of records in their class", [label for label, _, _ in rows], series, percent)


def size_rows(report: Report) -> list[tuple[str, Band | None, Band | None]]:
    """Returns every band of class sizes: its label, and what the source and the release have of it."""
    before, after = ({band.least: band for band in bands} for bands in (report.came_out.source_bands, report.came_out.bands))
    starts = sorted(before.keys() | after.keys())
    # The last band of one side is open only if it is the last of all.
    last = (after if starts[-1] in after else before)[starts[-1]] if starts else None
    ends = [start - 1 for start in starts[1:]] + [last.most if last else None]
    return [(_range(start, end), before.get(start), after.get(start)) for start, end in zip(starts, ends, strict=True)]


def _shares(bands: Sequence[Band | None]) -> list[float | None]:
    total = sum(band.records for band in bands if band)
    return [band.records / total if band and band.records else None for band in bands]


def _range(least: int, most: int | None) -> str:
    return f"{least:,}" + (" or more" if most is None else "" if most == least else f" to {most:,}")


def risk_chart(report: Report, percent: Callable[[float | None], str]) -> str:
    """Returns the risks that are shares, before and after; empty where none was counted."""
    shares = [risk for risk in report.risk if risk.share]
    sides: dict[str, Callable[[RiskFigure], float | None]] = {SOURCE: lambda risk: risk.before, RELEASE: lambda risk: risk.after}
    series = {side: [value(risk) for risk in shares] for side, value in sides.items()}
    counted = {side: values for side, values in series.items() if any(value is not None for value in values)}
    return bars("Risk of re-identification", [risk.title for risk in shares], counted, percent) if counted else ""


def loss_chart(report: Report, percent: Callable[[float | None], str]) -> str:
    """Returns what each quasi-identifier lost; empty where it was not counted."""
    known = [qid for qid in report.qids if qid.ncp is not None]
    return (
        bars("Loss of each quasi-identifier (NCP)", [qid.name for qid in known], {RELEASE: [q.ncp for q in known]}, percent)
        if known
        else ""
    )


def bars(title: str, labels: Sequence[str], series: Series, percent: Callable[[float | None], str]) -> str:
    """Returns a chart of horizontal bars from 0 to 100 %, the first label at the top.

    Args:
        title: What a screen reader says.
        labels: One per group of bars.
        series: By name, a share or None per label.
        percent: Spells a share.
    """
    # A release that is there already is told without it.
    from pygal import HorizontalBar  # noqa: PLC0415
    from pygal.style import Style  # noqa: PLC0415

    # Its finder of map plugins is older than find_spec, so that every later import of what is not there would warn.
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]
    sizes = dict.fromkeys(("label_font_size", "major_label_font_size", "value_font_size", "legend_font_size"), 13)
    chart = HorizontalBar(
        style=Style(**sizes),
        js=(),
        no_prefix=True,
        width=WIDTH,
        height=(ROW if len(series) > 1 else SINGLE_ROW) * len(labels) + (FRAME if len(series) > 1 else FRAME // 2),
        margin=8,
        margin_right=64,
        range=(0, 1),
        print_values=True,
        print_values_position="top",
        value_formatter=percent,
        show_x_labels=False,
        show_legend=len(series) > 1,
        legend_at_bottom=True,
        truncate_label=LONGEST,
    )
    chart.x_labels = [_short(label) for label in reversed(labels)]
    for name, values in series.items():
        chart.add(name, list(reversed(values)))
    # Series are told by name and not by number, so that the release looks the same with and without a source beside it.
    return _cleaned(chart.render_tree(), title, {f"serie-{number}": name.lower() for number, name in enumerate(series)})


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def _cleaned(tree: Element, title: str, names: Mapping[str, str]) -> str:
    root = Element("svg", {"class": "chart", "viewBox": tree.attrib["viewBox"], "role": "img", "aria-label": title})
    root.extend(_children(tree, names))
    return tostring(root, "unicode", short_empty_elements=True)


def _children(element: Element, names: Mapping[str, str]) -> list[Element]:
    kept = []
    for child in element:
        if not isinstance(child.tag, str) or child.tag in BORING or "tooltip-overlay" in child.get("class", ""):
            continue
        clean = Element(child.tag, {name: value for name, value in child.attrib.items() if name not in {"id", "style"}})
        classes = [names.get(word, word) for word in child.get("class", "").split()]
        if "legend" in classes:
            classes.append(names[child.attrib["id"].removeprefix("activate-")])
        if classes:
            clean.set("class", " ".join(classes))
        clean.text = child.text
        clean.extend(_children(child, names))
        kept.append(clean)
    return kept


def lattice_chart(drawn: LatticeMap) -> str:
    """Returns the picture of the lattice in the page's colours."""
    picture = lattice_svg(drawn, THEMED, stacked=True)
    label = f"aria-label='The lattice of {escape(drawn.name)}; the sentences and figures beside it say the same'"
    return picture.replace("xmlns='http://www.w3.org/2000/svg' ", f"class='lattice' {label} ")

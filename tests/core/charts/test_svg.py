"""Charts show every figure that there is, on round scales, and are whole by themselves."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from core.charts.scales import WIDE, linear, scale_of, short
from core.charts.svg import LABEL_GAP, Chart, alone, bars, lines

FIGURES = {"skald": [0.8, 0.9, None], "mondrian": [0.2, 0.21, 0.22], "a & b": [0.2, 0.21, 0.221]}


@given(st.lists(st.just(0.0) | st.floats(1e-9, 1e12), min_size=1, max_size=20))
def test_every_figure_lies_between_the_ends_of_its_scale(values: list[float]) -> None:
    scale = scale_of(values)
    assert all(-1e-6 <= scale.place(value) <= 1 + 1e-6 for value in values)
    assert list(scale.ticks) == sorted(set(scale.ticks))
    assert 2 <= len(scale.ticks) <= 11
    assert scale.log == (min(values) > 0 and max(values) / min(values) >= WIDE)


def test_ticks_are_round() -> None:
    assert linear(0.79).ticks == (0, 0.2, 0.4, 0.6, 0.8)
    assert linear(23).ticks == (0, 5, 10, 15, 20, 25)
    assert [short(value) for value in (0, 0.25, 16.69, 1234, 20_000, 10_541_769, 3e9)] == [
        "0",
        "0.25",
        "16.7",
        "1,234",
        "20 k",
        "10.5 M",
        "3 G",
    ]


def test_lines_name_every_series_apart_and_leave_out_what_there_is_not() -> None:
    svg = lines(Chart("GCP", "less is better", FIGURES), ["5", "10", "20"], "k")
    ElementTree.fromstring(svg)
    assert len(re.findall(r"<path d='M[^']*' class='line-", svg)) == 3
    # A mark per figure and one beside each name.
    assert svg.count("stroke-width='1.6'") == 8 + 3
    names = {name: float(y) for y, name in re.findall(r"<text x='390.0' y='([\d.]+)'[^>]*>([^<]+)</text>", svg)}
    assert set(names) == {"skald", "mondrian", "a &amp; b"}
    heights = sorted(names.values())
    assert all(below - above >= LABEL_GAP - 0.1 for above, below in pairwise(heights))


def test_bars_write_every_figure_beside_its_bar_and_name_the_chosen_in_bold() -> None:
    svg = bars(Chart("CPU time", "", {"skald": [2.5], "canon": [None], "rayden": [5.0]}), "rayden")
    ElementTree.fromstring(svg)
    widths = [float(width) for width in re.findall(r"<rect [^>]*width='([\d.]+)'", svg)]
    assert len(widths) == 2
    assert widths[0] * 2 == widths[1]
    assert "not measured" in svg
    assert re.findall(r"font-weight='600'>([^<]+)<", svg) == ["CPU time", "rayden"]


def test_a_chart_by_itself_has_paper_and_loads_nothing() -> None:
    svg = alone(lines(Chart("GCP", "", FIGURES), ["5", "10", "20"], "k"))
    ElementTree.fromstring(svg)
    assert "prefers-color-scheme: dark" in svg
    assert svg.index("class='paper'") < svg.index("<path")
    assert not re.findall(r"href|url\(|<script|@import", svg)

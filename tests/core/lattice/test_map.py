"""The map of a lattice says of every node what the search found out, and its picture shows just that."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.charts.chart import paint, width_of
from core.lattice.lattice import CUT, FAILS, PASSES, Lattice
from core.lattice.picture import BOX_GAP, heights_picture, lattice_picture, nodes_picture, rows_of_nodes
from core.lattice.search import BOUNDED, FAILED, MOST_IN_A_ROW, PASSED, STATUSES, UNEXAMINED, complete_lattice_statuses, map_of, statuses_of


def test_a_counted_node_is_told_by_its_count_and_others_by_their_tags() -> None:
    lattice = Lattice.from_exact_values((2, 3))
    tags = np.array([[FAILS, FAILS, PASSES], [FAILS, PASSES, CUT]])
    found = statuses_of(tags, {(0, 1): False, (0, 2): True, (1, 1): False}, lattice)
    assert found.tolist() == [[FAILED, FAILED, PASSED], [FAILED, FAILED, BOUNDED]]


def test_what_lies_below_no_passing_join_with_the_root_fails() -> None:
    lattice = Lattice((2, 3), (0, 1))
    passing = np.array([[False, True], [True, True]])
    found = complete_lattice_statuses(np.where(passing, PASSED, FAILED), passing, lattice, (0, 0))
    assert found.tolist() == [[FAILED, FAILED, PASSED], [UNEXAMINED, PASSED, PASSED]]


@st.composite
def lattices(draw: st.DrawFn) -> tuple[np.ndarray, tuple[int, ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)))
    statuses = np.random.default_rng(draw(st.integers(0, 99))).integers(0, len(STATUSES), shape).astype(np.int8)
    return statuses, tuple(draw(st.integers(0, size - 1)) for size in shape)


@given(lattices())
def test_a_map_counts_every_node_once_and_draws_the_chosen_one_among_its_relatives(case: tuple[np.ndarray, tuple[int, ...]]) -> None:
    statuses, node = case
    drawn = map_of("job", [f"q{number}" for number in range(statuses.ndim)], statuses, node)
    for height, row in enumerate(drawn.heights):
        mine = [statuses[place] for place in product(*map(range, statuses.shape)) if sum(place) == height]
        assert row == {name: mine.count(number) for number, name in enumerate(STATUSES)}
    shown = {one.node: one.status for one in drawn.drawn}
    assert len(shown) == len(drawn.drawn)
    assert all(status == STATUSES[statuses[place]] for place, status in shown.items())
    assert node in shown
    if drawn.whole:
        assert len(shown) == statuses.size
    else:
        assert all(np.all(np.subtract(place, node) >= 0) or np.all(np.subtract(place, node) <= 0) for place in shown)
        near = [place for place in product(*map(range, statuses.shape)) if np.abs(np.subtract(place, node)).sum() == 1]
        assert set(near) <= set(shown)


@given(lattices())
def test_a_picture_is_well_formed_and_holds_every_drawn_node(case: tuple[np.ndarray, tuple[int, ...]]) -> None:
    statuses, node = case
    drawn = map_of("<job> & 'more'", [f"q<{number}>" for number in range(statuses.ndim)], statuses, node)
    picture = ET.fromstring(lattice_picture(drawn).alone())
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    for one in drawn.drawn:
        assert " ".join(map(str, one.node)) in texts
    assert [text for text in texts if text and "chosen" in text and ", the" in text] == [
        f"{sum(drawn.heights[sum(node)].values()):,}, the chosen"
    ]


@pytest.mark.parametrize("shape", [(2, 2), (9,) * 5])
def test_a_picture_fits_its_frame(shape: tuple[int, ...]) -> None:
    drawn = map_of("job", [f"q{number}" for number in range(len(shape))], np.zeros(shape, np.int8), tuple(size // 2 for size in shape))
    assert drawn.whole == (shape == (2, 2))
    picture = lattice_picture(drawn).alone()
    width = float(re.search(r"viewBox='0 0 (\d+)", picture).group(1))  # type: ignore[union-attr]
    boxes = [(float(x), float(size)) for x, size in re.findall(r"<rect x='([\d.-]+)'[^>]* width='([\d.]+)'", picture)]
    assert all(x >= 0 and x + size <= width for x, size in boxes)
    height = float(re.search(r"viewBox='0 0 [\d.]+ ([\d.]+)", picture).group(1))  # type: ignore[union-attr]
    below = [float(y) + float(size) for y, size in re.findall(r"<rect [^>]*y='([\d.]+)'[^>]* height='([\d.]+)'", picture)]
    assert 0 < height - max([*below, *(float(y) for y in re.findall(r"<text [^>]*y='([\d.]+)'", picture))]) < 40
    assert max(sum(sum(one.node) == height for one in drawn.drawn) for height in range(99)) <= MOST_IN_A_ROW


def words_of(picture: str) -> list[tuple[float, float, str]]:
    """Every text of a picture with where it stands."""
    found = re.findall(r"<text x='([\d.-]+)' y='([\d.-]+)'[^>]*>([^<]*)<", picture)
    return [(float(x), float(y), said) for x, y, said in found]


def test_words_of_a_small_picture_stand_beside_what_they_name() -> None:
    drawn = map_of("job", ["a", "b"], np.arange(4, dtype=np.int8).reshape(2, 2), (1, 0))
    heading = [
        (24, 34, "The lattice of job: 4 nodes"),
        (24, 56, "Chosen levels: a 1, b 0"),
        (24, 90, "Nodes of each height, coarse at the top"),
    ]
    columns = [(58, 106, "height"), (424, 90, "All nodes, levels in this order:"), (424, 106, "a, b")]
    bars = [(58, 171, "0"), (195, 171, "1"), (58, 151, "1"), (320, 151, "2, the chosen"), (58, 131, "2"), (195, 131, "1")]
    nodes = [(650, 134.5, "1 1"), (537, 196.5, "1 0"), (763, 196.5, "0 1"), (650, 258.5, "0 0")]
    legend = ["the chosen node", "fails the privacy model: 1", "passes, and was counted: 1", "cannot be better: cut by the bound: 1"]
    below = [(48, 372 + 18 * place, said) for place, said in enumerate([*legend, "not examined: memory: 1"])]
    assert words_of(lattice_picture(drawn).body) == [*heading, *columns, *bars, *nodes, *below]


def test_a_neighbour_of_the_chosen_node_has_its_step_below_its_box() -> None:
    size = MOST_IN_A_ROW + 1
    drawn = map_of("job", ["a", "b"], np.zeros((size, size), np.int8), (1, 1))
    words = words_of(lattice_picture(drawn).body)
    boxes = {said: (x, y - 4.5) for x, y, said in words}
    for node, step in (("2 1", "a +1"), ("1 0", "b -1")):
        (x, y), below = boxes[node], [(left, top) for left, top, said in words if said == step]
        assert below == [(x, y + 12 + 11)]


def test_words_in_a_box_fit_into_it_however_many_levels_there_are() -> None:
    drawn = map_of("job", [f"quasi-identifier {axis}" for axis in range(8)], np.zeros((2,) * 8, np.int8), (0,) * 7 + (1,))
    picture = nodes_picture(drawn, 60).body
    [box] = {float(width) for width in re.findall(r"<rect [^>]* width='([\d.]+)' height='[\d.]+' rx='5'", picture)}
    words = [(said, int(size)) for size, said in re.findall(r"text-anchor='middle' font-size='(\d+)'[^>]*>([^<]*)<", picture)]
    assert any(said.startswith("…") for said, _ in words)
    assert all(width_of(said, size) <= box for said, size in words)


@pytest.mark.parametrize(("size", "whole"), [(MOST_IN_A_ROW, True), (MOST_IN_A_ROW + 1, False)])
def test_a_lattice_is_drawn_whole_if_every_height_fits(size: int, whole: bool) -> None:
    drawn = map_of("job", ["a", "b"], np.zeros((size, size), np.int8), (0, 0))
    assert drawn.whole == whole
    assert (len(drawn.drawn) == size**2) == whole


def test_the_next_nodes_are_drawn_however_many_they_are() -> None:
    axes = MOST_IN_A_ROW + 1
    drawn = map_of("job", [f"q{axis}" for axis in range(axes)], np.zeros((2,) * axes, np.int8), (0,) * axes)
    assert sum(sum(one.node) == 1 for one in drawn.drawn) == axes
    assert not any(sum(one.node) > 1 for one in drawn.drawn)


@given(lattices(), st.sampled_from([320, 900]))
def test_pictures_for_a_page_are_well_formed_and_hold_the_chosen_node_and_its_neighbours(
    case: tuple[np.ndarray, tuple[int, ...]], width: int
) -> None:
    statuses, node = case
    drawn = map_of("<job>", [f"q<{number}>" for number in range(statuses.ndim)], statuses, node)
    heights, nodes = (ET.fromstring(picture(drawn, width).alone()) for picture in (heights_picture, nodes_picture))
    texts = [text.text for text in nodes.iter("{http://www.w3.org/2000/svg}text")]
    near = [one.node for one in drawn.drawn if abs(sum(one.node) - sum(node)) <= 1]
    assert {" ".join(map(str, one)) for one in near} <= set(texts)
    assert sum((text.text or "").endswith(", chosen") for text in heights.iter("{http://www.w3.org/2000/svg}text")) == 1


@pytest.mark.parametrize("width", [320, 900])
@pytest.mark.parametrize("shape", [(2, 2), (9,) * 5, (2,) * 15])
def test_pictures_for_a_page_are_not_wider_than_it(shape: tuple[int, ...], width: int) -> None:
    drawn = map_of("job", [f"a long name of column {number}" for number in range(len(shape))], np.zeros(shape, np.int8), (1,) * len(shape))
    for picture in (heights_picture(drawn, width), nodes_picture(drawn, width)):
        written = picture.alone()
        assert picture.width == width
        boxes = [(float(x), float(size)) for x, size in re.findall(r"<rect x='([\d.-]+)'[^>]* width='([\d.]+)'", written)]
        assert all(x >= 0 and x + size <= width for x, size in boxes)
        words = re.findall(r"<text x='([\d.-]+)'[^>]* text-anchor='(\w+)' font-size='(\d+)'[^>]*>([^<]*)<", written)
        for x, anchor, size, said in words:
            long = width_of(said, int(size)) * {"start": 1, "middle": 0.5, "end": 0}[anchor]
            assert float(x) + long <= width + 1, said
        # A page of paper holds each.
        assert picture.height < 1.4 * 900


@pytest.mark.parametrize("shape", [(2, 2), (4, 3), (9,) * 5, (2,) * 15])
def test_rows_of_page_pictures_stand_below_each_other_down_to_the_end(shape: tuple[int, ...]) -> None:
    drawn = map_of("job", [f"column {number}" for number in range(len(shape))], np.zeros(shape, np.int8), (1,) * len(shape))
    heights, nodes = heights_picture(drawn, 400), nodes_picture(drawn, 400)
    bars = [
        (float(y), float(size)) for y, size in re.findall(r"<rect x='[\d.]+' y='([\d.]+)' width='[\d.]+' height='([\d.]+)' ", heights.body)
    ]
    row = max(min(18, 400 / len(drawn.heights)), 6)
    first, *others = sorted(bars[: len(drawn.heights)])
    assert [y for y, _ in (first, *others)] == pytest.approx([26 + place * row for place in range(len(drawn.heights))], abs=0.1)
    assert first[1] == pytest.approx(row - min(4, row / 4), abs=0.1)
    texts = [float(y) for y in re.findall(r"<text [^>]*y='([\d.]+)'", nodes.body)]
    boxes = sorted({float(y) for y in re.findall(r"<rect x='[-\d.]+' y='([\d.]+)'", nodes.body)})
    tall = float(re.search(r"height='([\d.]+)'", nodes.body).group(1))  # type: ignore[union-attr]
    assert min(texts) == 12
    assert all(below - above >= tall for above, below in pairwise(boxes))
    assert nodes.height == pytest.approx(boxes[-1] + tall / 2 + 40, abs=0.1)
    middles = {round(y + tall / 2 + 4.5, 1) for y in boxes}
    assert middles <= {round(y, 1) for y in texts}


def test_the_chosen_height_alone_has_the_colour_of_the_chosen() -> None:
    drawn = map_of("job", ["a", "b"], np.zeros((4, 3), np.int8), (1, 1))
    words = re.findall(rf"<text x='[^']*' y='[^']*' {paint('chosen')} [^>]*>([^<]*)<", heights_picture(drawn, 400).body)
    assert words == ["2", "3, chosen"]
    whole = lattice_picture(drawn).body
    words = re.findall(rf"<text x='[^']*' y='[^']*' {paint('chosen')} ([^>]*)>([^<]*)<", whole)
    assert [said for _, said in words] == ["Chosen levels: a 1, b 1", "2", "3, the chosen"]
    bold = [said for looks, said in re.findall("<text ([^>]*)>([^<]*)<", whole) if "bold" in looks or "600" in looks]
    assert set(bold) >= {"2", "3, the chosen", "1 1"}
    assert not {"3", "0 0"} & set(bold)
    counts = re.findall(r"text-anchor='start' font-size='(\d+)'[^>]*>\d(?:, the chosen)?<", whole)
    assert counts == ["11"] * len(drawn.heights)


def test_words_of_a_picture_are_the_larger_the_more_they_head() -> None:
    drawn = map_of("job", ["a", "b"], np.zeros((2, 2), np.int8), (1, 0))
    sizes = [int(size) for size in re.findall(r"<text [^>]*font-size='(\d+)'", lattice_picture(drawn).body)]
    assert sizes[:6] == [18, 13, 13, 10, 13, 11]


def test_the_name_of_a_height_stands_on_the_line_of_its_number_of_nodes() -> None:
    drawn = map_of("job", ["a", "b"], np.zeros((4, 3), np.int8), (1, 1))
    lines = re.findall(r"<text x='[^']*' y='([^']*)'[^>]*>([^<]*)<", heights_picture(drawn, 400).body)[1:13]
    names, counts = lines[::2], lines[1::2]
    assert [said for _, said in names] == [str(height) for height in range(6)]
    assert [y for y, _ in names] == [y for y, _ in counts]


def test_a_row_of_nodes_that_just_fits_is_drawn_however_far_from_the_chosen_one() -> None:
    drawn = map_of("job", ["a", "b"], np.zeros((40, 30), np.int8), (0, 0))
    assert not drawn.whole
    rows = rows_of_nodes(drawn)
    most = max(map(len, rows))
    box = 14 + 9 * max(len(" ".join(map(str, one.node))) for one in drawn.drawn)
    width = most * (box + BOX_GAP) - BOX_GAP
    shown = [len(re.findall("<rect", nodes_picture(drawn, wide).body)) for wide in (width, width - 1)]
    assert shown == [len(drawn.drawn), sum(len(row) for row in rows if len(row) < most)]

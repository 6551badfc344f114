"""Attacks guess what slow obvious attackers guess, record by record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.attacks.attacked_tables import (
    AttackedRelease,
    fitting_classes,
    joint_codes,
    label_fits,
    people_known_by_labels,
    recombined_people,
    release_of_codes,
)
from core.attacks.inference import (
    ModalValues,
    allowed_counts,
    classes_exceeding,
    entropy_share,
    finer_halves,
    inference_from_left_out_persons,
    modal_values,
)
from core.attacks.record_attacks import (
    linkage_by_order,
    membership_by_digests,
    nearest_classes,
    people_per_class_set,
    persons_within,
    rare_pairs,
    right_links,
    singled_out_by_both,
    singled_out_by_labels,
    with_one_wrong_qid,
)
from core.recount.labels.label_spans import Spans
from schemas.registry.sensitive import DistinctSpec, EntropySpec, RecursiveSpec

releases = st.integers(1, 60).flatmap(
    lambda records: st.tuples(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=records, max_size=records),
        st.lists(st.integers(-1, 3), min_size=records, max_size=records),
    )
)


def release_of(drawn: tuple[list[tuple[int, int]], list[int]]) -> AttackedRelease:
    labels, values = drawn
    compact = np.stack([joint_codes(np.array(labels)[:, [place]]) for place in range(2)], axis=1)
    return release_of_codes(compact, {"value": np.array(values, np.int64)})


def rows_of(release: AttackedRelease) -> Iterator[tuple[tuple[int, ...], int]]:
    for owner, value in zip(release.owners.tolist(), release.values["value"].tolist(), strict=True):
        yield tuple(release.labels[owner].tolist()), value


@given(releases)
def test_classes_are_those_of_a_dictionary(drawn: tuple[list[tuple[int, int]], list[int]]) -> None:
    release = release_of(drawn)
    sizes = Counter(labels for labels, _ in rows_of(release))
    assert {tuple(labels): size for labels, size in zip(release.labels.tolist(), release.sizes.tolist(), strict=True)} == sizes
    # A null stands last within its class, as in the files of a release.
    assert [value for _, value in rows_of(release)] == [drawn[1][place] for place in release.file_positions]
    ordered = [(owner, value < 0, value) for owner, (_, value) in zip(release.owners.tolist(), rows_of(release), strict=True)]
    assert ordered == sorted(ordered)


@given(releases, st.integers(1, 6))
def test_predicates_of_labels_hold_of_as_many_as_a_look_at_each_record_says(drawn: tuple[list[tuple[int, int]], list[int]], k: int) -> None:
    release = release_of(drawn)
    rows = [labels for labels, _ in rows_of(release)]
    counts = [*Counter(rows).values(), *Counter(rows).values()]
    for place in range(2):
        counts += Counter(labels[place] for labels in rows).values()
    found = singled_out_by_labels(release, k, 10_000, np.random.default_rng(1))
    assert found.guesses == len(counts)
    assert found.right == sum(count < k for count in counts)


@given(releases)
def test_rare_pairs_and_modal_values_are_those_of_counters(drawn: tuple[list[tuple[int, int]], list[int]]) -> None:
    release = release_of(drawn)
    values: dict[int, Counter[int]] = defaultdict(Counter)
    for owner, value in zip(release.owners.tolist(), release.values["value"].tolist(), strict=True):
        if value >= 0:
            values[owner][value] += 1
    pairs = rare_pairs(release, "value")
    found = dict(zip(zip(pairs.owners.tolist(), pairs.values.tolist(), strict=True), pairs.counts.tolist(), strict=True))
    assert found == {(owner, value): count for owner, mine in values.items() for value, count in mine.items()}
    modal = modal_values(release, "value")
    for owner in range(len(release.sizes)):
        mine = values[owner]
        most = max(mine.values(), default=0)
        assert (modal.counts[owner], modal.valued[owner]) == (most, mine.total())
        assert modal.values[owner] == min((value for value, count in mine.items() if count == most), default=-1)
    alone = singled_out_by_both(release, "value", 10_000, np.random.default_rng(2))
    assert alone.right == sum(count == 1 for mine in values.values() for count in mine.values())


@given(releases)
def test_whoever_fits_and_is_nearest_is_who_a_look_at_each_class_says(drawn: tuple[list[tuple[int, int]], list[int]]) -> None:
    release = release_of(drawn)
    people = recombined_people(people_known_by_labels(release, np.arange(release.records)), np.random.default_rng(3))
    fits, nearest = fitting_classes(release, people), nearest_classes(release, people)
    for person in range(len(people)):
        agreed = [sum(bool(people.fits[place][person, label]) for place, label in enumerate(labels)) for labels in release.labels.tolist()]
        assert fits[person].tolist() == [count == 2 for count in agreed]
        assert nearest[person].tolist() == [count == max(agreed) and count > 0 for count in agreed]


def test_one_record_in_its_class_is_found_and_one_of_many_seldom() -> None:
    labels = np.array([[0, 0], *[[1, 1]] * 400])
    release = release_of_codes(labels, {})
    people = people_known_by_labels(release, np.arange(release.records))
    random = np.random.default_rng(4)
    alone = people.chosen_people(np.zeros(50, np.int64))
    assert right_links(release, alone, fitting_classes(release, alone), random) == 50
    assert right_links(release, people, fitting_classes(release, people), random) <= 12
    outside = recombined_people(people, random)
    assert right_links(release, outside, fitting_classes(release, outside), random) == 0
    assert len(with_one_wrong_qid(people, random)) == len(people)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=40))
def test_sets_of_classes_are_shared_by_as_many_as_frozensets_say(pairs: list[tuple[int, int]]) -> None:
    classes: dict[int, set[int]] = defaultdict(set)
    for person, owner in pairs:
        classes[person].add(owner)
    sharing = Counter(frozenset(mine) for mine in classes.values())
    people, owners = (np.array(one) for one in zip(*pairs, strict=True))
    assert people_per_class_set(people, owners).tolist() == [sharing[frozenset(classes[person])] for person in sorted(classes)]


@pytest.mark.parametrize(("order", "right"), [(range(200), 199), (range(199, -1, -1), 199)])
def test_an_order_of_records_is_noticed_whichever_way_it_goes(order: range, right: int) -> None:
    values = np.random.default_rng(5).permutation(200)
    release = release_of_codes(np.zeros((200, 1), np.int64), {"value": values})
    # The record at place i of the files is that of row order[i].
    rows = np.array(order)[release.file_positions]
    people = people_known_by_labels(release, np.arange(200))
    found = linkage_by_order(release, people, rows)
    assert (found.guesses, found.right) == (199, right)
    assert found.figures().verdict == "broken"


def test_the_order_of_content_is_nobodys() -> None:
    values = np.arange(200)
    release = release_of_codes(np.zeros((200, 1), np.int64), {"value": values})
    found = linkage_by_order(release, people_known_by_labels(release, np.arange(200)), values)
    assert found.right == found.control_right == 199
    assert found.figures().verdict == "safe"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 4)), min_size=1, max_size=40), st.booleans())
def test_people_of_a_predicate_are_counted_once(rows: list[tuple[int, int]], persons: bool) -> None:
    fits = np.array([[value & (1 << place) > 0 for place in range(3)] for value, _ in rows])
    whose = np.array([person for _, person in rows]) if persons else None
    found = persons_within(fits, whose).tolist()
    for place in range(3):
        mine = [person for (_, person), fit in zip(rows, fits[:, place], strict=True) if fit]
        assert found[place] == (len({person for person in mine if person >= 0}) if persons else len(mine))


def test_labels_fit_as_their_spans_say() -> None:
    spans = Spans(np.array([0, 2, 0, 4, 0]), np.array([2, 4, 4, 5, 2]), {2: np.array([0, 3])}, np.array([4]), 4)
    found = label_fits(spans, np.arange(5))
    for position, label in product(range(5), range(5)):
        assert found[position, label] == (position in spans.covered(label).tolist())
    assert label_fits(spans, np.arange(5), np.array([2, 0])).tolist() == found[:, [2, 0]].tolist()


@given(st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=4), min_size=1, max_size=8), st.integers(2, 3))
def test_no_class_that_keeps_l_exceeds_what_is_allowed(classes: list[list[int]], least: int) -> None:
    counts = np.array([max(one) for one in classes])
    held = np.array([sum(one) for one in classes])
    overall = np.full(4, 10)
    modal = ModalValues(np.zeros(len(classes), np.int64), counts, held, held, overall)
    for kind, spec, keeps in (
        ("distinct", DistinctSpec(distinct=least), lambda one: len(one) >= least),
        ("entropy", EntropySpec(entropy=least), lambda one: -sum(n / sum(one) * log(n / sum(one)) for n in one) >= log(least)),
        ("recursive", RecursiveSpec(recursive={"c": 2, "l": 2}), lambda one: max(one) < 2 * (sum(one) - max(one))),
    ):
        allowed = allowed_counts(kind, spec, modal)
        kept = np.array([keeps(one) for one in classes])
        some = ModalValues(modal.values[kept], counts[kept], held[kept], held[kept], overall)
        assert allowed is not None
        assert classes_exceeding(some, allowed[kept]) == 0
    assert classes_exceeding(ModalValues(modal.values, held, held, held, overall), held - 1.0) == len(classes)


def test_the_share_that_entropy_allows_is_where_the_rest_is_even() -> None:
    for values, diversity in ((2, 1.5), (4, 2.0), (9, 3.7)):
        share = entropy_share(diversity, values)
        assert -share * log(share) - (1 - share) * log((1 - share) / (values - 1)) == pytest.approx(log(diversity), abs=1e-6)


def test_whoever_was_left_out_with_one_value_is_known_by_a_neighbour() -> None:
    # Two classes of mixed values, and a combination that eight share and that is not published: all of them have one value.
    release = release_of_codes(np.array([[0, 0]] * 6 + [[1, 1]] * 6), {"value": np.array([0, 1, 2] * 4)})
    labels = np.array([[0, 0]] * 6 + [[1, 1]] * 6 + [[0, 1]] * 8 + [[1, 0]] * 2 + [[-1, 0]] * 9)
    values = np.array([0, 1, 2] * 4 + [1] * 19)
    found = inference_from_left_out_persons(release, "value", labels, values, 5, 100, np.random.default_rng(6))
    assert (found.guesses, found.right, found.control_guesses) == (7, 7, 10)
    assert found.control_right < 10
    assert found.figures().verdict in ("safe", "told")


def test_the_half_with_more_records_is_guessed() -> None:
    low, high, records = np.array([0, 0, 4]), np.array([8, 4, 8]), np.array([5, 2, 9])
    assert finer_halves(low, high, records)[0]
    assert not finer_halves(low, high, np.array([5, 9, 2]))[0]


def test_a_digest_confirms_whoever_is_there_and_nobody_else() -> None:
    published = {"900150983cd24fb0d6963f7d28e17f72"}  # MD5 of abc
    found = membership_by_digests("id", ["abc", "ABC", "xyz"], ["cba", "none"], published)
    assert (found.guesses, found.right, found.control_right) == (3, 2, 0)
    assert membership_by_digests("id", ["abc"], [], {"900150983cd2"}).right == 1
    assert membership_by_digests("id", ["abc"], [], {"9001509"}).right == 0

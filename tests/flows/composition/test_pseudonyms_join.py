"""What releases with one key disclose together: people are grouped by all that stands beside their pseudonym, in however many releases.

Every figure is compared with a look at the published files, in which pseudonyms are joined record by record.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from flows.verification import NOT_RECOUNTED, verified_release
from schemas.errors.refusals import OverlapError
from schemas.job.job import load_job
from tasks.publication.verify_and_publish import PublishedRelease
from tasks.store.keys import json_with_digest, values_with_digest
from tests.conftest import Anonymise, CommandLine
from tests.jobs import released

SECRET, OTHER = (hashlib.sha256(name).hexdigest() for name in (b"one", b"another"))
RANDOM = np.random.default_rng(3)
PEOPLE = pa.table(
    {
        "person": pa.array([f"p{number}" for number in range(240)]),
        "birth": pa.array(RANDOM.integers(1950, 1990, 240)),
        "area": pa.array(RANDOM.integers(0, 12, 240)),
        "dx": pa.array(RANDOM.choice(["flu", "cold"], 240)),
    }
)
_OF = RANDOM.integers(0, 200, 500)
VISITS = pa.table(
    {
        "visit": pa.array([f"v{number}" for number in range(500)]),
        "person": pa.array([f"p{number}" for number in _OF]),
        "month": pa.array(RANDOM.integers(0, 24, 500)),
        "ward": pa.array(RANDOM.choice(["a", "b"], 500)),
    }
)
NAMES = {"person", "visit", "patient", "doctor"}
HASH: Mapping[str, Any] = {"hash": {"key": {"env": "RELEASES_KEY"}}}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELEASES_KEY", SECRET)
    monkeypatch.setenv("OTHER_KEY", OTHER)


def job_in(
    folder: Path,
    name: str,
    table: pa.Table,
    qids: Mapping[str, Sequence[int]],
    *,
    hashed: Mapping[str, Any],
    person: str | Sequence[str] = "",
    **parts: Any,
) -> Path:
    """Write a source and a job that publishes what is no quasi-identifier and no dx untreated."""
    pq.write_table(table, folder / f"{name}.parquet")
    named = {column for column in {*NAMES, *hashed} if column in table.column_names}
    others = named - {*hashed, *([person] if isinstance(person, str) else person)}
    rest = [column for column in table.column_names if column not in {*qids, *named, "dx"}]
    columns: dict[str, Any] = {
        "identifiers": [{"name": column, "treatment": spec} for column, spec in hashed.items()] + sorted(others),
        "linkable": list(hashed),
        "quasi_identifiers": [{"name": qid, "hierarchy": {"widths": list(widths)}} for qid, widths in qids.items()],
        "sensitive": [column for column in ("dx",) if column in table.column_names and column not in qids],
        "insensitive": rest,
    }
    job = {
        "version": 1, "name": name, "source": {"path": f"{name}.parquet"}, "columns": columns | ({"person": person} if person else {}),
        "privacy": {"k": 4}, "suppression": {"limit": 0.5}, "method": {"name": "skald"}, "memory": "200MB", "target": f"releases/{name}",
    }  # fmt: skip
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(job | parts, sort_keys=False))
    return path


def disclosed(done: PublishedRelease, key: str, *, length: int = 64) -> dict[Hashable, Hashable]:
    """Return by pseudonym the set, with counts, of all that the files publish beside it, other pseudonyms left out."""
    frame = released(done.folder)
    others = [name for name in frame.columns if name not in NAMES]
    sets: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    for pseudonym, *row in frame.select([key, *others]).rows():
        sets[pseudonym[:length]][tuple(row)] += 1
    return {pseudonym: frozenset(counts.items()) for pseudonym, counts in sets.items()}


def below(sets: Sequence[Mapping[Hashable, Hashable]], k: int = 4) -> tuple[int, int]:
    """Return how many pseudonyms the last release shares with earlier ones, and how many of all are newly told apart below k."""
    everybody = set().union(*sets)

    def groups(releases: Sequence[Mapping[Hashable, Hashable]], who: set[Hashable]) -> Mapping[Hashable, int]:
        known = {one: tuple(release.get(one) for release in releases) for one in who}
        sizes = Counter(known.values())
        return {one: sizes[told] for one, told in known.items()}

    now = groups(sets, everybody)
    before, mine = set().union(*sets[:-1]), set(sets[-1])
    alone = groups(sets[:-1], before), groups(sets[-1:], mine)
    joins = before & mine
    risky = [
        one for one in everybody
        if now[one] < k and (one in joins or now[one] < (alone[0][one] if one in before else alone[1][one]))
    ]  # fmt: skip
    return len(joins), len(risky)


BIRTHS = {"birth": (1, 20, 40)}
AREAS = {"area": (1, 6, 12)}
MONTHS = {"month": (1, 12, 24)}


@pytest.mark.ci
def test_a_column_that_is_generalised_in_one_release_and_published_in_the_other(anonymise: Anonymise, tmp_path: Path) -> None:
    first = anonymise(job_in(tmp_path, "first", PEOPLE, BIRTHS, hashed={"person": HASH}))
    assert first.manifest.joined == ()
    job = job_in(tmp_path, "second", PEOPLE, AREAS, hashed={"person": HASH})
    with pytest.raises(OverlapError, match="pseudonyms of 'person' join this release to 1 earlier release"):
        anonymise(job, "overlaps=refuse")
    second = anonymise(job)
    [joined] = second.manifest.joined or ()
    assert (joined.people, joined.below_k) == below([disclosed(first, "person"), disclosed(second, "person")])
    assert joined.below_k
    assert joined.below_k > 200
    report = json.loads((second.folder / "report.json").read_text())
    assert joined.sentence() in [limit["text"] for limit in report["limits"]]


@pytest.mark.ci
def test_visits_beside_persons_are_joined_by_what_is_published_and_not_by_the_unit(anonymise: Anonymise, tmp_path: Path) -> None:
    first = anonymise(job_in(tmp_path, "people", PEOPLE, BIRTHS, hashed={"person": HASH}, person="person"))
    job = job_in(tmp_path, "visits", VISITS, MONTHS, hashed={"person": HASH}, person="visit")
    with pytest.raises(OverlapError):
        anonymise(job, "overlaps=refuse")
    second = anonymise(job)
    [joined] = second.manifest.joined or ()
    assert (joined.people, joined.below_k) == below([disclosed(first, "person"), disclosed(second, "person")])
    # Who never came is told apart by that, where fewer than k did not.
    assert joined.below_k
    assert (joined.releases, joined.k) == (1, 4)


@pytest.mark.ci
def test_jobs_that_count_visits_and_patients_are_joined_by_the_pseudonyms_of_both(anonymise: Anonymise, tmp_path: Path) -> None:
    first = anonymise(job_in(tmp_path, "by_visit", VISITS, MONTHS, hashed={"person": HASH}, person="visit"))
    second = anonymise(
        job_in(tmp_path, "by_person", VISITS.drop_columns(["ward"]), {"month": (1, 5, 25)}, hashed={"person": HASH}, person="person")
    )
    [joined] = second.manifest.joined or ()
    assert (joined.people, joined.below_k) == below([disclosed(first, "person"), disclosed(second, "person")])


@pytest.mark.ci
def test_a_column_that_names_people_with_another_one_joins_a_release_that_has_it_alone(anonymise: Anonymise, tmp_path: Path) -> None:
    sites = PEOPLE.select(["person", "birth"]).append_column("visit", pa.array([f"v{number % 2}" for number in range(240)]))
    both = {"person": HASH, "visit": HASH}
    first = anonymise(job_in(tmp_path, "first", sites, BIRTHS, hashed=both, person=["visit", "person"]))
    second = anonymise(job_in(tmp_path, "second", PEOPLE.select(["person", "area"]), AREAS, hashed={"person": HASH}, person="person"))
    third = anonymise(job_in(tmp_path, "third", sites, {"birth": (1, 30)}, hashed=both, person=["visit", "person"]))
    sets = [disclosed(one, "person") for one in (first, second, third)]
    [joined] = second.manifest.joined or ()
    assert (joined.people, joined.below_k) == below(sets[:2])
    assert joined.below_k
    together, of_key = third.manifest.joined or ()
    assert [(one.columns, one.releases) for one in (together, of_key)] == [(("visit", "person"), 1), (("visit", "person"), 2)]
    assert (of_key.people or 0) >= below(sets)[0] > 0


@pytest.mark.ci
@pytest.mark.parametrize("person", [False, True])
def test_a_key_joins_releases_that_call_the_column_otherwise(anonymise: Anonymise, tmp_path: Path, *, person: bool) -> None:
    """Of two columns of one key the first is looked at under other names, and none is taken for the other."""
    doctors = PEOPLE.select(["person", "area"]).append_column("doctor", pa.array([f"d{number % 40}" for number in range(240)]))
    tables = [PEOPLE.select(["person", "birth"]).rename_columns(["patient", "birth"]), doctors, PEOPLE.select(["person", "birth"])]
    qids, columns = (BIRTHS, AREAS, {"birth": (1, 30)}), (["patient"], ["person", "doctor"], ["person"])
    done = []
    for number, (table, levels, hashed) in enumerate(zip(tables, qids, columns, strict=True)):
        named = hashed[0] if person else "none"
        done.append(anonymise(job_in(tmp_path, f"job{number}", table, levels, hashed=dict.fromkeys(hashed, HASH), person=named)))
    sets = [disclosed(one, hashed[0]) for one, hashed in zip(done, columns, strict=True)]
    assert not done[0].manifest.joined
    for last in (1, 2):
        *_, joined = done[last].manifest.joined or ()
        assert (joined.columns, joined.releases, joined.people) == (tuple(columns[last]), last, below(sets[: last + 1])[0])
        assert joined.people
        if last == 2:
            assert joined.below_k == below(sets)[1]


def names(first: int, last: int) -> list[str]:
    return [f"p{number}" for number in range(first, last)]


ROLES: Mapping[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "a mother is a patient": ({"patient": names(0, 120), "doctor": names(120, 240)}, {"patient": names(120, 240)}, []),
    "roles change": ({"patient": names(0, 120), "doctor": names(120, 240)}, {"patient": names(120, 240), "doctor": names(0, 120)}, []),
    "one of two parts is another": (
        {"patient": names(0, 120), "doctor": names(500, 620)},
        {"patient": names(0, 120), "doctor": names(700, 820)},
        ["patient", "doctor"],
    ),
}


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("case", ROLES)
def test_a_key_joins_whatever_stands_beside_the_pseudonym(anonymise: Anonymise, tmp_path: Path, case: str) -> None:
    first, second, person = ROLES[case]
    for name, columns, qid in (("first", first, "birth"), ("second", second, "area")):
        table = pa.table({**columns, qid: RANDOM.integers(0, 12, 120)})
        parts = {"overlaps": "refuse"} if name == "second" else {}
        job = job_in(tmp_path, name, table, {qid: (1, 4, 16)}, hashed=dict.fromkeys(columns, HASH), person=person or "none", **parts)
        if name == "first":
            anonymise(job)
    with pytest.raises(OverlapError, match="join this release to 1 earlier release: "):
        anonymise(job)


@pytest.mark.ci
def test_who_stood_in_another_column_of_the_key_is_told_apart(anonymise: Anonymise, tmp_path: Path) -> None:
    """Three stand in one column and five in the other, beside the same values: fewer than four are alike in both releases."""
    both = {"patient": [*names(0, 3), *([None] * 5)], "doctor": [*([None] * 3), *names(3, 8)], "area": [1] * 8}
    anonymise(job_in(tmp_path, "first", pa.table(both), {"area": (1,)}, hashed={"patient": HASH, "doctor": HASH}, person="none"))
    one = pa.table({"patient": names(0, 8), "birth": [2] * 8})
    [joined] = anonymise(job_in(tmp_path, "second", one, {"birth": (1,)}, hashed={"patient": HASH}, person="none")).manifest.joined or ()
    assert (joined.people, joined.below_k, joined.smallest) == (8, 3, 3)


@pytest.mark.ci
def test_masked_texts_of_other_columns_join_nothing(anonymise: Anonymise, tmp_path: Path) -> None:
    mask = {"mask": {"keep": 2}}
    for name, column, first in (("first", "patient", 0), ("second", "doctor", 300)):
        table = pa.table({column: [f"{number:06d}" for number in range(first, first + 120)], "birth": RANDOM.integers(0, 4, 120)})
        done = anonymise(job_in(tmp_path, name, table, {"birth": (1, 4)}, hashed={column: mask}, person="none"))
        assert not done.manifest.joined


@pytest.mark.ci
def test_pseudonyms_of_one_known_person_count_as_one(anonymise: Anonymise, tmp_path: Path) -> None:
    # Eight visits, alike in everything, of two people: k = 4 of visits, two of people.
    alike = pa.table(
        {
            "visit": [f"v{n}" for n in range(16)],
            "person": [f"p{n // 4}" for n in range(16)],
            "month": [3] * 16,
            "ward": ["a"] * 8 + ["b"] * 8,
        }
    )
    anonymise(job_in(tmp_path, "by_visit", alike, MONTHS, hashed={"visit": HASH}, person="visit"))
    second = anonymise(job_in(tmp_path, "by_person", alike, MONTHS, hashed={"visit": HASH}, person="person"))
    [joined] = second.manifest.joined or ()
    # Two of each, whom no pseudonym shows: "at most 4" is told.
    assert (joined.people, joined.below_k, joined.by_labels, joined.smallest) == (4, 4, 0, 4)


def thirds() -> Iterator[tuple[str, pa.Table]]:
    """Yield three columns of 64 people of which any two are shared by four and all three by one."""
    for number, weight in enumerate((1, 4, 16)):
        yield f"third_{number}", pa.table({"person": [f"p{n}" for n in range(64)], "birth": [1950 + n // weight % 4 for n in range(64)]})


@pytest.mark.ci
def test_three_releases_together_disclose_more_than_any_two(anonymise: Anonymise, tmp_path: Path) -> None:
    done = [anonymise(job_in(tmp_path, name, table, {"birth": (1, 4)}, hashed={"person": HASH})) for name, table in thirds()]
    sets = [disclosed(one, "person") for one in done]
    assert [len(one.manifest.joined or ()) for one in done] == [0, 1, 1]
    assert [(one.people, one.below_k) for release in done[1:] for one in release.manifest.joined or ()] == [(64, 0), (64, 64)]
    assert (below(sets[:2]), below(sets)) == ((64, 0), (64, 64))


@pytest.mark.ci
def test_what_the_pseudonyms_of_a_removed_release_disclosed_stays_counted(anonymise: Anonymise, tmp_path: Path) -> None:
    first, second, third = [
        job_in(tmp_path, name, table, {"birth": (1, 4)}, hashed={"person": HASH}, overlaps="refuse") for name, table in thirds()
    ]
    anonymise(first)
    gone = anonymise(second)
    shutil.rmtree(gone.folder)
    for path in folder_of(tmp_path).glob(f"{gone.manifest.release}.*"):
        path.unlink()
    with pytest.raises(OverlapError, match=r"remove its folder .*, which leaves what its pseudonyms disclosed counted"):
        anonymise(third)


@pytest.mark.ci
def test_a_safe_pair_is_said_to_be_compared_and_is_published_under_refuse(anonymise: Anonymise, tmp_path: Path) -> None:
    first, second, _ = [
        job_in(tmp_path, name, table, {"birth": (1, 4)}, hashed={"person": HASH}, overlaps="refuse") for name, table in thirds()
    ]
    anonymise(first)
    [joined] = anonymise(second).manifest.joined or ()
    assert joined.is_safe
    assert "of somebody in several of them is that of at least k = 4 people" in joined.sentence()


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("hashed", "joins"),
    [
        ({"hash": {"key": {"env": "OTHER_KEY"}}}, False),
        ({"hash": {"key": {"env": "RELEASES_KEY"}, "length": 20}}, True),
    ],
    ids=["another key", "another length"],
)
def test_what_joins_is_the_key_and_not_how_much_of_a_pseudonym_is_published(
    anonymise: Anonymise, tmp_path: Path, hashed: Mapping[str, Any], joins: bool
) -> None:
    first = anonymise(job_in(tmp_path, "first", PEOPLE, BIRTHS, hashed={"person": HASH}))
    second = anonymise(job_in(tmp_path, "second", PEOPLE, AREAS, hashed={"person": hashed}))
    found = [(one.people, one.below_k) for one in second.manifest.joined or ()]
    assert found == ([below([disclosed(first, "person", length=16), disclosed(second, "person", length=16)])] if joins else [])


@pytest.mark.ci
def test_numbers_that_are_encrypted_join_whatever_separators_either_job_allows(anonymise: Anonymise, tmp_path: Path) -> None:
    numbered = PEOPLE.set_column(0, "person", pa.array([f"{number:08d}" for number in range(240)]))
    spec = {"key": {"env": "RELEASES_KEY"}}
    plain, parted = ({"encrypt": spec | more} for more in ({"alphabet": "digits"}, {"characters": "0123456789", "separators": "- "}))
    first = anonymise(job_in(tmp_path, "first", numbered, BIRTHS, hashed={"person": plain}))
    second = anonymise(job_in(tmp_path, "second", numbered, AREAS, hashed={"person": parted}))
    [joined] = second.manifest.joined or ()
    assert (joined.people, joined.below_k) == below([disclosed(first, "person"), disclosed(second, "person")])
    assert joined.people == len(disclosed(first, "person").keys() & disclosed(second, "person").keys()) > 100


def folder_of(tmp_path: Path) -> Path:
    return tmp_path / ".skald" / ".releases"


def lose_index(folder: Path) -> None:
    for path in folder.glob("*.sets"):
        path.unlink()


def damage_index(folder: Path) -> None:
    for path in folder.glob("*.sets"):
        path.write_bytes(path.read_bytes()[:-9])


def damage_head(folder: Path) -> None:
    for path in folder.glob("*.family"):
        path.write_text(path.read_text()[:-3])


def lose_head(folder: Path) -> None:
    for path in folder.glob("*.family"):
        path.unlink()


def older_entry(folder: Path) -> None:
    lose_head(folder)
    [record] = folder.glob("*.record")
    kept = values_with_digest(record)
    del kept["key_families"]
    record.write_text(json_with_digest(kept))


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("damage", [lose_index, older_entry, damage_index, damage_head, lose_head])
def test_what_cannot_be_joined_is_said_not_to_have_been_compared(anonymise: Anonymise, tmp_path: Path, damage: Any) -> None:
    anonymise(job_in(tmp_path, "first", PEOPLE, BIRTHS, hashed={"person": HASH}))
    damage(folder_of(tmp_path))
    job = job_in(tmp_path, "second", PEOPLE, AREAS, hashed={"person": HASH})
    with pytest.raises(OverlapError, match="was not compared"):
        anonymise(job, "overlaps=refuse")
    [joined] = anonymise(job).manifest.joined or ()
    assert (joined.people, joined.below_k, joined.is_safe) == (None, None, False)
    assert "was not compared" in joined.sentence()


@pytest.mark.ci
def test_the_index_holds_no_pseudonym_is_private_and_is_of_one_size_whatever_the_number_of_releases(
    anonymise: Anonymise, tmp_path: Path
) -> None:
    sizes = []
    for name in ("first", "second", "third"):
        done = anonymise(job_in(tmp_path, name, PEOPLE, BIRTHS, hashed={"person": HASH}))
        [index] = folder_of(tmp_path).glob("*.sets")
        assert index.stat().st_mode & 0o777 == 0o600
        assert not any(value.encode()[:16] in index.read_bytes() for value in released(done.folder)["person"])
        sizes.append(index.stat().st_size)
    assert sizes[0] == sizes[1] == sizes[2]
    assert not list(folder_of(tmp_path).glob("*.next"))


@pytest.mark.ci
def test_a_refused_release_leaves_nothing_in_the_index(anonymise: Anonymise, tmp_path: Path) -> None:
    anonymise(job_in(tmp_path, "first", PEOPLE, BIRTHS, hashed={"person": HASH}))
    before = {path.name: path.read_bytes() for path in folder_of(tmp_path).iterdir() if path.suffix in {".sets", ".family", ".next"}}
    with pytest.raises(OverlapError):
        anonymise(job_in(tmp_path, "second", PEOPLE, AREAS, hashed={"person": HASH}), "overlaps=refuse")
    after = {path.name: path.read_bytes() for path in folder_of(tmp_path).iterdir() if path.suffix in {".sets", ".family", ".next"}}
    assert before == after


@pytest.mark.ci
def test_the_same_release_made_again_is_counted_once(anonymise: Anonymise, tmp_path: Path) -> None:
    anonymise(job_in(tmp_path, "first", PEOPLE, BIRTHS, hashed={"person": HASH}))
    job = job_in(tmp_path, "second", PEOPLE, AREAS, hashed={"person": HASH})
    done = anonymise(job)
    done.folder.rename(tmp_path / "handed_on")
    again = anonymise(job)
    assert again.manifest.release == done.manifest.release
    assert again.manifest.joined == done.manifest.joined


@pytest.mark.slow
def test_the_command_line_warns_of_whom_pseudonyms_join(direct: CommandLine, tmp_path: Path) -> None:
    for name, qids in (("first", BIRTHS), ("second", AREAS)):
        job_in(tmp_path, name, PEOPLE, qids, hashed={"person": HASH})
        done = direct("run", f"{name}.yaml", "--json")
        assert done.returncode == 0
    assert "Earlier: pseudonyms of 'person', 1 earlier release: " in done.stderr


@pytest.mark.ci
def test_verify_repeats_what_releases_disclose_together_and_refuses_it_where_the_job_does(anonymise: Anonymise, tmp_path: Path) -> None:
    anonymise(job_in(tmp_path, "first", PEOPLE, BIRTHS, hashed={"person": HASH}))
    path = job_in(tmp_path, "second", PEOPLE, AREAS, hashed={"person": HASH})
    done = anonymise(path)
    verified = verified_release(load_job(path), str(done.folder), None)
    assert NOT_RECOUNTED in verified.notes
    with pytest.raises(OverlapError, match="under which this release would not have been"):
        verified_release(load_job(path, ("overlaps=refuse",)), str(done.folder), None)


@pytest.mark.ci
def test_new_people_under_the_same_key_are_joined_to_nobody(anonymise: Anonymise, tmp_path: Path) -> None:
    anonymise(job_in(tmp_path, "first", PEOPLE, BIRTHS, hashed={"person": HASH}))
    others = PEOPLE.set_column(0, "person", pa.array([f"q{number}" for number in range(240)]))
    done = anonymise(job_in(tmp_path, "second", others, AREAS, hashed={"person": HASH}))
    assert done.manifest.joined == ()

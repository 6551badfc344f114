"""The same records and the same job give the same bytes, however the source is stored and the work is cut."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.conftest import Anonymise
from tests.jobs import CSV_TYPES, digests, job_of, people, people_job, write_csv, write_job

TABLE = people(400)
QUICK = settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # a run is too dear to shrink with
SETTINGS = ("privacy.k=4", "rows_per_file=100")


@pytest.fixture(scope="module")
def undisturbed(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], tuple[int, ...] | None]:
    """Digests and node of the release of one file, one chunk and one thread."""
    made = anonymise(people_job(tmp_path_factory.mktemp("one"), TABLE), *SETTINGS, "threads=1")
    assert [file.sha256 for file in made.manifest.files] == digests(made.folder)
    assert len(made.manifest.files) > 2
    return digests(made.folder), made.manifest.node


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("chunk_rows", "threads"), [(7, 2), (100, 1), (100, 2), (100_000, 2)])
def test_release_is_identical_for_any_chunking_and_threads(anonymise, undisturbed, tmp_path: Path, chunk_rows: int, threads: int) -> None:
    made = anonymise(people_job(tmp_path, TABLE), *SETTINGS, f"chunk_rows={chunk_rows}", f"threads={threads}")
    assert (digests(made.folder), made.manifest.node) == undisturbed


@pytest.mark.slow
@QUICK
@given(order=st.randoms(use_true_random=False), files=st.integers(1, 6), row_group=st.integers(20, 600), chunk_rows=st.integers(50, 600))
def test_release_is_identical_for_any_order_of_rows_files_and_row_groups(
    anonymise, undisturbed, order, files: int, row_group: int, chunk_rows: int
) -> None:
    rows = list(range(len(TABLE)))
    order.shuffle(rows)
    with TemporaryDirectory() as folder:
        job = people_job(Path(folder), TABLE.take(rows), files=files, row_group=row_group)
        made = anonymise(job, *SETTINGS, f"chunk_rows={chunk_rows}")
        assert (digests(made.folder), made.manifest.node) == undisturbed


@pytest.mark.slow
@QUICK
@given(rows=st.integers(1, 60), seed=st.integers(0, 1000), k=st.integers(1, 6), limit=st.sampled_from([0, 0.1, 0.5]), data=st.data())
def test_any_small_table_gives_one_release_however_it_is_cut(anonymise, rows: int, seed: int, k: int, limit: float, data) -> None:
    table, k = people(rows, seed), min(k, rows)
    columns = job_of()["columns"]
    columns |= {"quasi_identifiers": columns["quasi_identifiers"][:3], "identifiers": ["person", "height", "smoker", "born"]}
    order = data.draw(st.permutations(range(rows)))
    found = []
    with TemporaryDirectory() as folder:
        for number, (records, files, chunk_rows) in enumerate([(table, 1, 1000), (table.take(list(order)), min(rows, 3), 13)]):
            job = people_job(Path(folder, str(number)), records, files=files, columns=columns)
            made = anonymise(job, f"privacy.k={k}", f"suppression.limit={limit}", f"chunk_rows={chunk_rows}")
            found.append((digests(made.folder), made.manifest.node, made.manifest.loss))
    assert found[0] == found[1]


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_csv_gives_the_release_of_the_equivalent_parquet(anonymise, undisturbed, tmp_path: Path, name: str, delimiter: str) -> None:
    write_csv(tmp_path / name, TABLE, delimiter)
    job = write_job(tmp_path, job_of(source={"path": name, "delimiter": delimiter, "types": CSV_TYPES}))
    made = anonymise(job, *SETTINGS, "chunk_rows=150")
    assert (digests(made.folder), made.manifest.node) == undisturbed


@pytest.mark.ci
def test_dictionary_columns_give_the_release_of_plain_ones(anonymise, undisturbed, tmp_path: Path) -> None:
    text = [name for name in TABLE.column_names if pa.types.is_string(TABLE[name].type)]
    coded = pa.table({name: TABLE[name].dictionary_encode() if name in text else TABLE[name] for name in TABLE.column_names})
    made = anonymise(people_job(tmp_path, coded, row_group=90), *SETTINGS, "chunk_rows=90")
    assert (digests(made.folder), made.manifest.node) == undisturbed


@pytest.mark.ci
def test_text_that_is_written_without_dictionaries_gives_the_same_release(anonymise, undisturbed, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    pq.write_table(TABLE, tmp_path / "people" / "000.parquet", use_dictionary=False, compression="none")
    made = anonymise(job, *SETTINGS)
    assert (digests(made.folder), made.manifest.node) == undisturbed


@pytest.mark.ci
def test_names_of_the_source_files_leave_no_trace(anonymise, undisturbed, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, files=3)
    for number, path in enumerate(sorted((tmp_path / "people").iterdir())):
        path.rename(path.with_name(f"{9 - number}-renamed.parquet"))
    made = anonymise(job, *SETTINGS)
    assert (digests(made.folder), made.manifest.node) == undisturbed


@pytest.mark.ci
def test_files_of_one_class_that_is_larger_than_a_file_do_not_depend_on_the_order(anonymise, tmp_path: Path) -> None:
    found = []
    for number, rows in enumerate([np.arange(400), np.random.default_rng(1).permutation(400)]):
        job = people_job(tmp_path / str(number), TABLE.take(pa.array(rows)), files=1 + number)
        made = anonymise(job, "privacy.k=400", "suppression.limit=0", "rows_per_file=120", f"chunk_rows={200 + number}")
        assert made.manifest.classes == 1
        assert len(made.manifest.files) > 2
        found.append(digests(made.folder))
    assert found[0] == found[1]


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("root", ["dense", "occupied"])
def test_root_depends_on_the_set_of_records_and_memory_alone(anonymise, tmp_path: Path, root: str) -> None:
    # Four numbers make 64 ** 4 = 16.8 million bins: 64 MB hold 4 million of them, 640 MB hold all.
    random = np.random.default_rng(3)
    numbers = {name: random.integers(0, 64, 300) for name in "abcd"}
    table = pa.table(numbers | {"s": random.integers(0, 3, 300)})
    qids = [{"name": name, "hierarchy": {"widths": [1, 8, 32]}} for name in "abcd"]
    columns_ = {"quasi_identifiers": qids, "sensitive": ["s"]}
    roots = {}
    for memory in ("64MB", "640MB"):
        for number, (files, chunk_rows) in enumerate([(1, 1000), (4, 60)]):
            job = people_job(tmp_path / f"{memory}-{number}", table, files=files, columns=columns_, memory=memory)
            made = anonymise(job, f"method.root={root}", "suppression.limit=1", f"chunk_rows={chunk_rows}")
            roots.setdefault(memory, []).append((made.untold.search["root"], made.manifest.node, digests(made.folder)))
    assert all(first == second for first, second in roots.values())
    assert (roots["64MB"][0][0] == roots["640MB"][0][0]) == (root == "occupied")

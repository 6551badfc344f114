"""Vaults: a value keeps its token, whatever happens in between, and nobody else reads it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors.signals import RefusedError
from schemas.job.job import Job, load_job
from schemas.registry.treatments import Secret
from tasks.writing.vaults import SCHEMA, RowDigest, issue_tokens, read_key, tokens_of_values, values_of, vault_id, vault_path
from tests.jobs import job_of, write_job
from tests.laws import tried
from tests.places import ROOT


def job_at(folder: Path) -> Job:
    return load_job(write_job(folder / "jobs", job_of()))


def large(values: list[str]) -> pa.Array:
    return pa.array(values, pa.large_string())


@pytest.mark.slow
@tried(8)
@given(st.lists(st.lists(st.text(), max_size=8), min_size=1, max_size=4))
def test_a_value_keeps_its_token_and_comes_back_from_it(tmp_path_factory: pytest.TempPathFactory, nights: list[list[str]]) -> None:
    folder = tmp_path_factory.mktemp("vault")
    job, path, spill = job_at(folder), folder / "vault.parquet", folder / "spill"
    known: dict[str, str] = {}
    identity = None
    for night in nights:
        assert issue_tokens(job, path, [large(night), large(night[::-1])], spill) == len(set(night) - known.keys())
        identity = identity or vault_id(job, path)
        assert vault_id(job, path) == identity
        found = (
            dict(zip(night, tokens_of_values(job, path, large(night), spill).to_pylist(), strict=True))
            if len(set(night)) == len(night)
            else {}
        )
        assert not [value for value in found if known.get(value, found[value]) != found[value]]
        vault = pq.read_table(path)
        known = dict(zip(vault["value"].to_pylist(), vault["token"].to_pylist(), strict=True))
        assert len(set(known.values())) == len(known) == len(vault)
    assert values_of(job, path, large([*known.values(), "f" * 32]), spill).to_pylist() == [*known, None]
    assert path.stat().st_mode & 0o777 == 0o600


def test_runs_at_the_same_time_share_tokens(tmp_path: Path) -> None:
    job, path = job_at(tmp_path), tmp_path / "vault.parquet"
    with ThreadPoolExecutor(4) as pool:
        parts = [large([f"{number}" for number in range(first, first + 300)]) for first in (0, 100, 200, 300)]
        fresh = list(pool.map(lambda part: issue_tokens(job, path, [part], tmp_path / f"spill{part[0]}"), parts))
    assert sum(fresh) == 600
    assert len(set(pq.read_table(path)["token"].to_pylist())) == pq.read_metadata(path).num_rows == 600


WORK = """
import sys, itertools
from pathlib import Path
import pyarrow as pa
from schemas.job.job import load_job
from tasks.writing.vaults import issue_tokens
job, path = load_job(Path(sys.argv[1])), Path(sys.argv[2])
for turn in itertools.count(int(sys.argv[3])):
    issue_tokens(job, path, [pa.array([f"{turn}-{row}" for row in range(3000)], pa.large_string())], path.parent / "spill")
    print(turn, flush=True)
"""


@pytest.mark.slow
def test_a_vault_survives_kill_9_at_any_moment_with_all_its_tokens(tmp_path: Path) -> None:
    job = job_at(tmp_path)
    path, known, first = tmp_path / "vault.parquet", dict[str, str](), 0
    for turn in range(2):
        command = [sys.executable, "-c", WORK, str(job.folder / "job.yaml"), str(path), str(first)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
        assert process.stdout
        for _ in range(3 + turn):
            told = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.communicate()
        vault = pq.read_table(path)
        now = dict(zip(vault["value"].to_pylist(), vault["token"].to_pylist(), strict=True))
        assert now.items() >= known.items()
        assert {f"{turn}-{row}" for turn in range(told + 1) for row in range(3000)} <= now.keys()
        known, first = now, told + 1
    left = [file for file in tmp_path.iterdir() if file.is_file()]
    assert all(file.stat().st_mode & 0o077 == 0 for file in left)
    issue_tokens(job, path, [], tmp_path / "spill")
    assert {file.name for file in tmp_path.iterdir() if file.is_file()} <= {"vault.parquet", ".vault.parquet.lock", ".vault.parquet.state"}


GOOD = b"0123456789abcdef0123456789abcdef"


def place_at(path: Path, content: bytes | None = GOOD, mode: int = 0o600) -> Secret:
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    return Secret(file=path)


def test_a_key_is_the_bytes_of_its_file_but_for_a_line_end_and_the_text_of_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_at(tmp_path)
    for content in (GOOD, GOOD + b"\n", GOOD + b"\r\n"):
        assert read_key(job, place_at(tmp_path / "key", content)) == GOOD
    assert read_key(job, Secret(file=Path("../key"))) == GOOD
    monkeypatch.setenv("A_KEY", GOOD.decode())
    assert read_key(job, Secret(env="A_KEY")) == GOOD


@pytest.mark.parametrize(
    ("where", "content", "mode", "why"),
    [
        ("key", None, 0, "does not exist"),
        ("key", b"", 0o600, "holds no key"),
        ("key", GOOD[:15], 0o600, "too weak"),
        ("key", GOOD[:16], 0o600, "too weak"),
        ("key", GOOD, 0o640, "others may read"),
        ("key", GOOD, 0o602, "others may read"),
        ("jobs/releases/key", GOOD, 0o600, "inside the target"),
        ("jobs/.skald/people/deep/key", GOOD, 0o600, "inside the work folder"),
    ],
)
def test_a_key_that_is_weak_or_could_leak_is_refused(tmp_path: Path, where: str, content: bytes | None, mode: int, why: str) -> None:
    job = job_at(tmp_path)
    with pytest.raises(RefusedError, match=why) as raised:
        read_key(job, place_at(tmp_path / where, content, mode))
    assert GOOD[:8].decode() not in str(raised.value)


def test_a_link_into_the_target_is_seen(tmp_path: Path) -> None:
    job, place = job_at(tmp_path), place_at(tmp_path / "jobs" / "releases" / "key")
    (tmp_path / "link").symlink_to(place.file or "")
    with pytest.raises(RefusedError, match="inside the target"):
        read_key(job, Secret(file=tmp_path / "link"))


def test_vaults_are_refused_where_keys_are_and_so_are_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_at(tmp_path)
    monkeypatch.setenv("A_VAULT", "releases/vault.parquet")
    wrong = {
        "inside the target": Secret(env="A_VAULT"),
        "inside the work folder": Secret(file=job.work_path / "v"),
        "folder that does not exist": Secret(file=tmp_path / "nowhere" / "v"),
        "others may read": place_at(tmp_path / "open", mode=0o644),
        "is not set": Secret(env="NO_VAULT"),
    }
    for why, place in wrong.items():
        with pytest.raises(RefusedError, match=why):
            vault_path(job, place)
    place = place_at(tmp_path / "other")
    with pytest.raises(RefusedError, match="no vault"):
        vault_id(job, vault_path(job, place))
    assert vault_id(job, vault_path(job, Secret(file=tmp_path / "none"))) == "new"


def test_what_a_killed_run_left_beside_a_vault_goes_with_the_next_one(tmp_path: Path) -> None:
    left = tmp_path / ".vault.parquet.1-2.part"
    left.touch()
    issue_tokens(job_at(tmp_path), tmp_path / "vault.parquet", [large(["a"])], tmp_path / "spill")
    assert not left.exists()


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write other rows with all that the vault says of itself."""
    vault, said = pq.read_table(path), pq.read_metadata(path).metadata
    with pq.ParquetWriter(path, vault.schema, compression="zstd") as writer:
        writer.write_table(change(vault))
        writer.add_key_value_metadata({name: value for name, value in said.items() if name.startswith(b"skald.vault.")})


def exchange_tokens(path: Path) -> None:
    rewritten(path, lambda vault: vault.set_column(1, "token", pa.array(vault["token"].to_pylist()[::-1], pa.large_string())))


def lose_a_row(path: Path) -> None:
    rewritten(path, lambda vault: vault.slice(1))


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 4] ^= 1
    path.write_bytes(content)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize("damage", [exchange_tokens, lose_a_row, flip_a_bit, cut_short], ids=lambda damage: damage.__name__)
def test_a_vault_that_is_not_what_was_written_is_refused_and_not_written_on(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    job, path = job_at(tmp_path), tmp_path / "vault.parquet"
    issue_tokens(job, path, [large([f"value {number}" for number in range(500)])], tmp_path / "spill")
    (tmp_path / ".vault.parquet.state").unlink()
    damage(path)
    damaged = path.read_bytes()
    with pytest.raises(RefusedError, match="damaged"):
        vault_id(job, path)
    with pytest.raises(RefusedError, match="damaged"):
        issue_tokens(job, path, [large(["another"])], tmp_path / "spill")
    assert path.read_bytes() == damaged


@pytest.mark.ci
@pytest.mark.parametrize("memory", ["beside the vault", "in the work folder"])
def test_a_vault_that_is_gone_older_or_another_one_is_refused_before_it_makes_new_tokens(tmp_path: Path, memory: str) -> None:
    job, path, spill = job_at(tmp_path), tmp_path / "vault.parquet", tmp_path / "spill"
    job.work_path.mkdir(parents=True)
    states = []
    for night in ("one", "two"):
        issue_tokens(job, path, [large([night])], spill)
        states.append(path.read_bytes())
    forgotten = [tmp_path / ".vault.parquet.state"] if memory == "in the work folder" else (job.work_path / "vaults").iterdir()
    for left in forgotten:
        left.unlink()
    issue_tokens(job, tmp_path / "other.parquet", [large(["one"])], spill)
    issue_tokens(job, tmp_path / "other.parquet", [large(["two"])], spill)

    def refused(why: str) -> None:
        before = path.read_bytes() if path.exists() else None
        with pytest.raises(RefusedError, match=why):
            vault_id(job, path)
        with pytest.raises(RefusedError, match=why):
            issue_tokens(job, path, [large(["three"])], spill)
        assert (path.read_bytes() if path.exists() else None) == before

    path.write_bytes(states[0])
    refused("older than the one that was used here before .generation 1 of 2.")
    path.write_bytes((tmp_path / "other.parquet").read_bytes())
    refused("another vault is in the place")
    path.write_bytes(states[0])
    (tmp_path / ".vault.parquet.state").unlink(missing_ok=True)
    elsewhere = job_at(tmp_path / "elsewhere")
    assert issue_tokens(elsewhere, path, [large(["three"])], spill) == 1
    (tmp_path / ".vault.parquet.state").unlink()
    if memory == "in the work folder":
        refused("not the one that was used here before, though of the same generation")
        path.unlink()
        refused("the vault is gone")
    path.write_bytes(states[1])
    assert issue_tokens(job, path, [large(["one", "two", "three"])], spill) == 1


def test_a_vault_of_an_earlier_version_is_taken_and_grows_into_one_with_a_digest(tmp_path: Path) -> None:
    job, path, spill = job_at(tmp_path), tmp_path / "vault.parquet", tmp_path / "spill"
    tokens = pa.table({"value": large(["a"]), "token": large(["0" * 32])}).replace_schema_metadata({"skald.vault": "0123456789abcdef"})
    pq.write_table(tokens, path)
    assert vault_id(job, path) == "0123456789abcdef"
    assert issue_tokens(job, path, [large(["a", "b"])], spill) == 1
    assert vault_id(job, path) == "0123456789abcdef"
    assert tokens_of_values(job, path, large(["a"]), spill).to_pylist() == ["0" * 32]
    exchange_tokens(path)
    with pytest.raises(RefusedError, match="damaged"):
        vault_id(job, path)


def test_a_value_that_comes_again_and_again_gets_one_token_and_keeps_it(tmp_path: Path) -> None:
    job, path, spill, known = job_at(tmp_path), tmp_path / "vault.parquet", tmp_path / "spill", dict[str, str]()
    for pieces, fresh in ((["bab", "c"], 3), (["cd", "", "dd"], 1), ([], 0)):
        assert issue_tokens(job, path, [large(list(piece)) for piece in pieces], spill) == fresh
        vault = pq.read_table(path)
        now = dict(zip(vault["value"].to_pylist(), vault["token"].to_pylist(), strict=True))
        assert now.items() >= known.items()
        assert len(vault) == len(now) == len(set(now.values())) == len(known) + fresh
        known = now
    assert list(known) == ["a", "b", "c", "d"]
    assert tokens_of_values(job, path, large(["d", "e", "a"]), spill).to_pylist() == [known["d"], None, known["a"]]


def test_a_vault_is_made_though_nothing_is_asked_of_it_and_stays_as_it_is_where_no_value_is_new(tmp_path: Path) -> None:
    job, path, spill = job_at(tmp_path), tmp_path / "vault.parquet", tmp_path / "spill"
    assert issue_tokens(job, path, [], spill) == 0
    generations = []
    for values, fresh in ((["a", "b"], 2), (["b", "a"], 0)):
        before, last = path.read_bytes(), path.stat().st_mtime_ns
        assert issue_tokens(job, path, [large(values)], spill) == fresh
        assert (path.read_bytes() == before, path.stat().st_mtime_ns == last) == (not fresh, not fresh)
        generations.append(int(pq.read_metadata(path).metadata[b"skald.vault.generation"]))
    assert generations == [2, 2]


TEXTS = st.one_of(st.none(), st.text("ab", max_size=3))


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_the_digest_of_a_vault_does_not_depend_on_how_its_rows_are_cut(
    rows: list[tuple[str | None, str | None]], cut: int, other: int
) -> None:
    whole = pa.RecordBatch.from_arrays([pa.array([row[place] for row in rows], pa.large_string()) for place in range(2)], schema=SCHEMA)

    def digest(*batches: pa.RecordBatch) -> str:
        made = RowDigest("identity", 1)
        for batch in batches:
            made.add(batch)
        return made.result()

    low, high = sorted((min(cut, len(rows)), min(other, len(rows))))
    assert digest(whole.slice(0, low), whole.slice(low, high - low), whole.slice(high)) == digest(whole)
    changed = [*rows, ("a", None)]
    more = pa.RecordBatch.from_arrays([pa.array([row[place] for row in changed], pa.large_string()) for place in range(2)], schema=SCHEMA)
    assert digest(more) != digest(whole)

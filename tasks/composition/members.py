"""What is kept of a release so that later ones can be compared with it: which class each combination came to, in numbers alone.

Where equal combinations come to one class, that is a function of the QIDs: groups at each node, and the class of each cell of groups; the
combinations are those of the chunks' histograms. Where single records are recoded, combinations are kept with their classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import ipc
from pydantic import BaseModel, ConfigDict

from core.columns.coding import Packing, single_word
from core.columns.domains import read_domains
from core.composition.members import Members
from core.recoding.recoding import SUPPRESSED, Recoding, Stage
from schemas.errors.signals import UnmeasuredError
from tasks.counting.chunk_cells import whole_cells
from tasks.counting.chunk_histograms import OF_CHUNK
from tasks.counting.coding import Coding, load_coding
from tasks.counting.domains import chunk_key, qid_names
from tasks.engine.runs import Run
from tasks.lattice.kept_recodings import RecodingArtifacts, read_recoding_of
from tasks.records.recodings import assigned
from tasks.source.chunks import Source
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store
from tasks.store.tables import read_table

VIEWS, MEMBERS = Step("view", __name__), Step("members", __name__)
BYTES_PER_CELL = 64


class KeptClasses(BaseModel):
    """Where it lies which class each combination of a release came to.

    Attributes:
        domain: The domain table.
        names: Columns of the domain table: the QIDs, then what a privacy model looks at.
        qids: How many of them are QIDs.
        view: Groups and cells of each stage of a recoding of cells.
        parts: Histograms of the chunks that it was made of.
        members: Combinations with their classes, of recodings of single records.
        untold: Why classes are not known, as the end of a sentence; empty where they are.
    """

    model_config = ConfigDict(frozen=True)

    domain: Artifact | None = None
    names: tuple[str, ...] = ()
    qids: int = 0
    view: Artifact | None = None
    parts: tuple[Artifact, ...] = ()
    members: tuple[Artifact, ...] = ()
    untold: str = ""


class View(NamedTuple):
    """How a stage sees cells: the group of each code by QID, how many groups there are, and the class of each cell of groups."""

    groups: list[NDArray[np.integer[Any]]]
    stage: Stage


def kept_classes(run: Run, source: Source) -> KeptClasses:
    """Keeps what later releases need to be compared with this one.

    Raises:
        StorageError: an artefact is not what its step promises.
        JobError: hierarchy files that cannot be read, all at once.
        HierarchyError: the hierarchy's file cannot be read.
    """
    if run.members is not None:
        domain, members = run.members
        return KeptClasses(domain=domain, names=_names(run), qids=len(qid_names(run.job)), members=tuple(members))
    if run.recoded is None:
        return KeptClasses(untold="its classes were made fragment by fragment, and which of equal records are in which is not kept")
    domain, recoding = run.recoded
    if recoding.withheld:
        return KeptClasses(
            untold="records of a combination are published or not by whose they are, and classes are compared by combinations"
        )
    parts = [run.store.find(OF_CHUNK, chunk_key(run.job, chunk.key)) for chunk in source.chunks]
    if None in parts:
        return KeptClasses(untold="the combinations of its chunks were not counted")
    view = _keep_view(run, domain, recoding)
    return KeptClasses(domain=domain, names=_names(run), qids=len(qid_names(run.job)), view=view, parts=tuple(filter(None, parts)))


def _names(run: Run) -> tuple[str, ...]:
    return (*qid_names(run.job), *run.job.privacy.columns)


def _keep_view(run: Run, domain: Artifact, recoding: RecodingArtifacts) -> Artifact:
    coding = load_coding(run.job, domain, run.store)
    key = VIEWS.key(coding.key, recoding.digests, run.job.intervals)

    def write(path: Path) -> int:
        read = read_recoding_of(coding, recoding, run.job.intervals, run.store)
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **_arrays(coding, read))
        return len(read.stages)

    return run.store.make("view", key, ".npz", write)


def _arrays(coding: Coding, recoding: Recoding) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for number, stage in enumerate(recoding.stages):
        for qid, (hierarchy, level) in enumerate(zip(coding.hierarchies, stage.node, strict=True)):
            arrays[f"group_{number}_{qid}"] = hierarchy.groups[level]
        for place, word in enumerate(stage.words):
            arrays[f"word_{number}_{place}"] = word
        arrays[f"node_{number}"] = np.array(stage.node)
        arrays[f"size_{number}"] = np.array(stage.packing.sizes)
        arrays[f"class_{number}"] = stage.classes
    return arrays


def _views(path: Path) -> Iterator[View]:
    with np.load(path, allow_pickle=False) as arrays:
        for number in range(sum(name.startswith("class_") for name in arrays.files)):
            packing = Packing(tuple(arrays[f"size_{number}"].tolist()))
            words = tuple(arrays[f"word_{number}_{place}"] for place in range(len(packing.words)))
            stage = Stage(tuple(arrays[f"node_{number}"].tolist()), packing, words, arrays[f"class_{number}"])
            yield View([arrays[f"group_{number}_{qid}"] for qid in range(len(packing.sizes))], stage)


def members_key(recoding: RecodingArtifacts, number: int, part: Artifact) -> Key:
    """Returns the key of the combinations and classes of a chunk's records."""
    return MEMBERS.key(recoding.digests, number, part.sha256)


def keep_members(run: Run, domain: Artifact, parts: Sequence[Artifact], recoding: RecodingArtifacts) -> None:
    """Keeps combinations and classes of single records, for releases that come later.

    Args:
        run: Gets to know where they lie.
        domain: The domain table.
        parts: The coded records of each chunk, in the order of the source.
        recoding: Their classes.

    Raises:
        StorageError: an artefact is not what its step promises.
        JobError: hierarchy files that cannot be read, all at once.
    """
    coding = load_coding(run.job, domain, run.store)
    sizes = [one.size for one in coding.domains]

    def write(path: Path, number: int, part: Artifact) -> int:
        with pa.memory_map(str(run.store.path(part))) as mapped:
            table = ipc.open_file(mapped).read_all()
            codes = np.stack([table.column(position).to_numpy().astype(np.int64) for position in range(len(sizes))], axis=1)
        classes = assigned(recoding, number, run.store).astype(np.int64)
        found = _counted(sizes, codes, classes, np.ones(len(classes), np.int64))
        columns = [*found[0].T, *found[1:]]
        pq.write_table(pa.table(columns, names=list(map(str, range(len(columns))))), path, compression="lz4", write_statistics=False)
        return len(found[1])

    kept = []
    for number, part in enumerate(parts):
        key = members_key(recoding, number, part)
        kept.append(run.store.make("members", key, ".parquet", partial(write, number=number, part=part)))
    run.members = domain, kept


def read_members(kept: KeptClasses, store: Store, memory: int) -> Members:
    """Returns the combinations of a release with their classes.

    Args:
        kept: Where they lie.
        store: The store of the run folder that made it.
        memory: Bytes that may be taken.

    Raises:
        UnmeasuredError: they are gone, or more than the memory holds.
    """
    if kept.untold:
        raise UnmeasuredError(kept.untold)
    needed = [one for one in (kept.domain, kept.view, *kept.parts, *kept.members) if one]
    if kept.domain is None or not all(map(store.whole, needed)):
        raise UnmeasuredError("its artefacts are gone")
    if sum(part.rows for part in (*kept.parts, *kept.members)) > memory // BYTES_PER_CELL:
        raise UnmeasuredError("together they tell more combinations apart than the job's memory holds")
    domains = read_domains(read_table(store, kept.domain), kept.names)
    coding = Coding(domains[: kept.qids], (), (kept.domain.sha256, ""), domains[kept.qids :])
    found = list(_of_cells(coding, kept, store) if kept.view else _of_records(kept, store))
    codes, classes, counts = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return Members(coding.domains, *_counted([one.size for one in coding.domains], codes, classes, counts))


Rows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _of_records(kept: KeptClasses, store: Store) -> Iterator[Rows]:
    for part in kept.members:
        *codes, classes, counts = (column.to_numpy() for column in pq.read_table(store.path(part)).columns)
        yield np.stack(codes, axis=1), classes, counts


def _of_cells(coding: Coding, kept: KeptClasses, store: Store) -> Iterator[Rows]:
    assert kept.view is not None
    views = list(_views(store.path(kept.view)))
    sizes = [domain.size for domain in (*coding.domains, *coding.sensitive)]
    for part in kept.parts:
        words, counts = whole_cells(coding, part, store)
        codes = Packing(tuple(sizes)).unpack(words)[:, : kept.qids].astype(np.int64)
        classes = np.full(len(counts), SUPPRESSED)
        for groups, stage in views:
            cells = stage.packing.pack([group[codes[:, qid]] for qid, group in enumerate(groups)])
            classes = np.where(classes == SUPPRESSED, stage.assigner.assign(cells), classes)
        yield codes, classes.astype(np.int64), counts


def _counted(sizes: Sequence[int], codes: NDArray[np.int64], classes: NDArray[np.int64], counts: NDArray[np.int64]) -> Rows:
    """Adds up the records of equal combinations of one class."""
    key = single_word((*Packing(tuple(sizes)).pack(list(codes.T)), classes))
    _, firsts, place = np.unique(key, return_index=True, return_inverse=True)
    summed = np.zeros(len(firsts), np.int64)
    np.add.at(summed, place, counts)
    return codes[firsts], classes[firsts], summed

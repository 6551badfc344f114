"""Disclosures of a written release: refused if job or policy do not accept them, or kept in digests.

Refusals come after the recount and before anything is published. The content beside each pseudonym is kept in digests, with which later
releases of the same key are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from core.composition.pseudonym_sets import disclosed_sql, pseudonym_owners_sql
from core.recount.classes import Recount
from core.recount.histories import TablesRecount
from core.recount.linked import exposing_links, pseudonyms_are_persons
from schemas.errors.refusals import AttackError, LinkedError, OverlapError, UntreatedError
from schemas.job.fitting import linked_faults
from schemas.job.job import Job
from schemas.job.policy import Policy
from schemas.job.privacy import AttackBasis, AttackSettings, attacks_sentence, broken_attacks
from schemas.registry.treatment_kinds import treatment_kind
from schemas.relational.manifest import TablesManifest
from schemas.release.figures import reported_count_text
from schemas.release.increments import joint_warnings
from schemas.release.manifest import Manifest, left_over_clause, published_qids
from tasks.composition.pseudonym_families import Disclosed
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import run_step, step_here
from tasks.publication.recount_calls import Written, written_at_hand
from tasks.recount.original import Original, normalised_relation
from tasks.release.files import file_error, relation_of
from tasks.source.chunks import ChunkedSource
from tasks.store.database import connect, literal, parquet_sql, quote, write_parquet
from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact, Store
from tasks.writing.people import WrittenPersons

if TYPE_CHECKING:
    from tasks.attacks.release_attack import PlayedAttacks

Result = TypeVar("Result")
MOST_FETCHED = 64_000_000
"""Bytes of data files that are read back from a store to attack them."""
IN_A_STORE = "The files lie in a store and are large, and were not read back to attack them."


def check_linked(job: Job, recount: Recount) -> None:
    """Raise ``LinkedError`` if fewer than k have a set of linked classes, unless the job accepts that."""
    for one in exposing_links(job, recount.linked):
        unit = "person" if job.columns.person else "pseudonym"
        remedy = "Leave the column out" if one.columns in job.columns.links else "Leave one of these columns out"
        keeps = dict(job) | {"method": {"linked": "keep"}}
        tells = one.columns == tuple(job.columns.person) and getattr(job.method, "linked", None) == "tell"
        if tells and not linked_faults({part: dict(keeps[part]) for part in ("columns", "method", "suppression", "privacy")}):
            remedy += ", ask for method.linked: keep"
        left = left_over_clause(one.left_over)
        raise LinkedError.below_k(one.columns, one.below_k, one.people, one.smallest, job.privacy.k, unit, left, remedy)


def check_untreated(run: Run, recount: Recount) -> None:
    """Raise ``UntreatedError`` if the policy forbids that untreated columns single out fewer than k."""
    if together := recount.together.get("insensitive"):
        _refuse_untreated(run, together.below_k, recount.units, recount.unit)


def check_untreated_tables(run: Run, recount: TablesRecount) -> None:
    """Raise ``UntreatedError`` as ``check_untreated`` does, for a release of several tables."""
    if together := recount.persons_together:
        _refuse_untreated(run, together.below_k, together.all, together.unit)


def _refuse_untreated(run: Run, below_k: int, whole: int, unit: str) -> None:
    policy, k = run.policy, run.job.privacy.k
    if policy and not policy.accept_untreated and below_k:
        raise UntreatedError.below_k(reported_count_text(below_k, k), whole, unit, k, policy.path)


def attack_written(run: Run, written: Written, source: ChunkedSource) -> PlayedAttacks | None:
    """Attack written files; return the figures, None if turned off; raise ``AttackError`` if refused.

    Args:
        written: The files.
        source: What they were made of.
    """
    settings = run.job.attacks
    if settings is None:
        return None
    with run.phase("attacks"):
        played = _where_files_are(run, written, "attacks", play_attacks, ATTACKED, "attack", settings, source)
    if by := refusal_words(settings, run.policy):
        if played.broken:
            raise AttackError.broken([attacks_sentence(one) for one in played.broken], by)
        if played.basis.unplayed:
            raise AttackError.unplayed(played.basis.unplayed, by)
    return played


def check_recalled(run: Run, manifest: Manifest | TablesManifest) -> None:
    """Raise if the run's job or policy would refuse to publish the published release now.

    What is published stays, and its manifest is believed: it was compared and attacked when it was made. Only settings that do not change
    the release are looked at, since others would have made another one.
    """
    job, policy, release = run.job, run.policy, manifest.release
    told = joint_warnings(manifest)
    if job.overlaps == "refuse" and (told or manifest.overlaps is None):
        raise OverlapError.recalled(release, told or ("When it was made, no earlier release was looked for.",))
    if by := refusal_words(job.attacks, policy):
        if broken := broken_attacks(manifest.attacks):
            raise AttackError.published(release, [attacks_sentence(one) for one in broken], by)
        basis = manifest.attacked
        too_few = policy is not None and basis is not None and basis.sample is not None and basis.sample < policy.least_attacked
        # Of several tables some attacks are never played.
        if basis is None or too_few or (basis.unplayed and isinstance(manifest, Manifest)):
            raise AttackError.recalled_unplayed(release, by)
    if policy and not policy.accept_untreated and manifest.passthrough_together and manifest.passthrough_together.below_k:
        raise UntreatedError.published(release, policy.path)


def refusal_words(settings: AttackSettings | None, policy: Policy | None) -> str:
    """Return words for who refuses attackable releases, the policy or the job; empty if neither."""
    if policy and policy.attacks:
        return f"the policy '{policy.path}'"
    return "the job (attacks.refuse)" if settings and settings.refuse else ""


def attack_fields(manifest: Manifest | TablesManifest, played: PlayedAttacks | None, *, refused: bool) -> dict[str, Any]:
    """Return a manifest's fields on the attacks that may be published; none if no attacks were run.

    Args:
        manifest: Says what earlier releases tell together with this one.
        played: The attacks; None where none were played.
        refused: Whether the job refuses releases that tell more together with earlier ones.
    """
    if played is None:
        return {}
    from tasks.attacks.release_attack import earlier_attacks  # noqa: PLC0415

    earlier = earlier_attacks(manifest.overlaps or (), manifest.joined or (), refused=refused)
    return {"attacks": (*played.published, *earlier), "attacked": played.basis}


def _where_files_are(
    run: Run, written: Written, phase: str, function: Callable[..., Result], step: StepCode, label: str, *arguments: Any
) -> Result:
    """Call a function on written files: in a task where these lie in a bucket, else here."""
    if written.staging is not None:
        return step_here(phase, label, lambda: function(run.job, run.store, written, *arguments))
    return run_step(run, phase, function, Call.once(step, label, (run.job.with_task_memory(), run.store, written, *arguments)))


def play_attacks(job: Job, store: Store, written: Written, settings: AttackSettings, source: ChunkedSource) -> PlayedAttacks:
    """Attack written files by their labels and by the people of the source; return the figures."""
    # Loads what no run needs whose job turned attacks off.
    from tasks.attacks.release_attack import AttackedFiles, PlayedAttacks, attack_code, attack_release  # noqa: PLC0415

    if written.staging is None and sum(file.bytes or 0 for file in written.files) > MOST_FETCHED:
        sample = None if settings.sample == "all" else settings.sample
        basis = AttackBasis(sample=sample, seed=settings.seed, code=attack_code(), unplayed=(IN_A_STORE,))
        return PlayedAttacks(labels=(), source=(), basis=basis)
    with written_at_hand(job, written, store) as (spill, files):
        # Made here: what was converted lies elsewhere on each machine.
        original = Original(normalised_relation(job, source.relation), source.columns)
        return attack_release(job, settings, AttackedFiles(files, written.layout, original, records=source.records), spill)


ATTACKED, DISCLOSED = StepCode("attacked", __name__), StepCode("disclosed", __name__)
PHASE = "overlaps"


def disclosed_by(run: Run, written: Written, payload: Sequence[str], class_persons: WrittenPersons) -> list[Disclosed]:
    """Return, per set of joining columns, artefacts of digests of what is published beside pseudonyms.

    Args:
        written: The data files.
        payload: The columns that they publish besides quasi-identifiers.
        class_persons: Who is in which class, for jobs that name persons.
    """
    if not run.job.columns.links:
        return []
    key, salt = DISCLOSED.key(written.release), run.secret.keyed("disclosed", written.release)
    given = list(payload), class_persons, salt, key
    made = _where_files_are(run, written, PHASE, store_disclosures, DISCLOSED, "disclosed", *given)
    joining = run.job.columns.joining
    digests, owners = made[: len(joining)], list(made[len(joining) :])
    return [
        Disclosed(columns, one, owners.pop(0) if _has_owners(run.job, columns, class_persons) else None)
        for columns, one in zip(joining, digests, strict=True)
    ]


def _has_owners(job: Job, columns: Sequence[str], kept: WrittenPersons) -> bool:
    """Return whether the owners of pseudonyms are stored: where not all pseudonyms stand for persons."""
    return bool(kept.people) and (len(job.columns.joining) > 1 or not pseudonyms_are_persons(job, columns))


def store_disclosures(
    job: Job, store: Store, written: Written, payload: Sequence[str], class_persons: WrittenPersons, salt: str, key: Key
) -> list[Artifact]:
    """Write digests of each set of joining columns, then owners of non-persons; return the artefacts."""
    made, joining = [], job.columns.joining
    with (
        written_at_hand(job, written, store) as (spill, files),
        connect(job, spill, last=True) as connection,
        file_error(written.what),
    ):
        source = relation_of(connection, files, written.layout)
        for number, columns in enumerate(joining):
            labels = [quote(name) for name in published_qids(job)]
            statement = disclosed_sql(source, _expressions(job, columns), labels, _others(job, payload, columns), literal(salt))
            made.append(_kept(connection, statement, DISCLOSED.key(key, number), store))
        for number, columns in enumerate(joining):
            if _has_owners(job, columns, class_persons):
                made.append(_kept(connection, _owners(job, columns, class_persons, store), DISCLOSED.key(key, number, "owners"), store))
    return made


def _owners(job: Job, columns: Sequence[str], kept: WrittenPersons, store: Store) -> str:
    people = kept.files(store)
    assert people is not None
    places = [f"link_{job.columns.linking.index(name)}" for name in columns]
    return pseudonym_owners_sql(parquet_sql(people[0]), _expressions(job, columns, places))


def _expressions(job: Job, columns: Sequence[str], read_as: Sequence[str] | None = None) -> list[str]:
    """Return SQL expressions of pseudonyms, without the part that depends on the job's length setting."""
    kinds = {one.name: treatment_kind(one.treatment) for one in job.columns.pseudonyms}
    names = read_as or [quote(name) for name in columns]
    return [
        f"left({name}::VARCHAR, {kinds[column].stable:d})" if kinds[column].stable else f"{name}"
        for column, name in zip(columns, names, strict=True)
    ]


def _others(job: Job, payload: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the other published columns, without pseudonyms that differ for each value."""
    naming = {one.name for one in job.columns.pseudonyms if treatment_kind(one.treatment).tells_apart}
    return [quote(name) for name in payload if name not in naming and name not in columns]


def _kept(connection: duckdb.DuckDBPyConnection, statement: str, key: Key, store: Store) -> Artifact:
    return store.make(DISCLOSED.name, key, ".parquet", lambda path: write_parquet(connection, statement, path, "COMPRESSION uncompressed"))

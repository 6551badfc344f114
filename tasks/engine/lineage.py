"""OpenLineage events of a run, and their sending by a thread: figures of the release, no cell value.

They are sent where the environment names an endpoint, by the variables of OpenLineage's own client. So the person who runs the program
decides that, and not the author of the job. If the endpoint cannot be reached, there is a warning. The run neither stops nor waits,
because a release does not depend on it.

The end of a run waits for a limited time. Unsent events are reported in one line, when the run is over.
"""

from __future__ import annotations

import hashlib
import logging
import os
import queue
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from schemas.errors.base import SkaldError
from schemas.job.job import Job
from schemas.release.manifest import Manifest
from tasks.engine.lineage_outputs import OutputTable, jobs_by_table, output_tables, release_figures

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient


LOG = logging.getLogger("skald.lineage")
SECONDS, SECONDS_INTERRUPTED = 10.0, 3.0
"""How long a run that is over waits for its events; where somebody wants it to end, less."""


class Sender:
    """Background sender of OpenLineage events.

    Args:
        client: OpenLineage's.
    """

    def __init__(self, client: OpenLineageClient) -> None:
        self._client, self._events = client, queue.SimpleQueue[Any]()
        self._asked = self._sent = 0
        self._faults: list[str] = []
        self._given_up = threading.Event()
        # A daemon: a process that ends waits for no endpoint.
        self._thread = threading.Thread(target=self._work, name="skald-lineage", daemon=True)
        self._thread.start()

    def send(self, event: Any) -> None:
        """Queue an event for sending and return at once."""
        self._asked += 1
        self._events.put(event)

    def failed(self, error: Exception) -> None:
        """Count an event that could not be built, for the report of ``close``."""
        self._asked += 1
        self._faults.append(type(error).__name__)

    def close(self, seconds: float = SECONDS) -> None:
        """Wait at most so many seconds until all events are sent; log a warning on those that were not."""
        self._events.put(None)
        self._thread.join(seconds)
        self._given_up.set()
        if missing := self._asked - self._sent:
            # Of errors their kinds alone: their texts may hold an address with a password.
            kinds = ", ".join(dict.fromkeys(self._faults)) or f"no answer within {seconds:.0f} s"
            LOG.warning("%d of %d events of OpenLineage could not be sent (%s); the run goes on without.", missing, self._asked, kinds)

    def _work(self) -> None:
        while (event := self._events.get()) is not None and not self._given_up.is_set():
            try:
                self._client.emit(event)
            except Exception as error:
                self._faults.append(type(error).__name__)
            else:
                self._sent += 1
        try:
            # Transports that keep events back send them now.
            self._client.close()
        except Exception as error:
            self._faults.append(type(error).__name__)


MOST_CHARACTERS = 500
QUERY = "postgresql://query"
_UNFIT = re.compile(r"[\s\0#?&%\"'<>\[\]{}|\\^`]")


class Lineage(NamedTuple):
    """Addresses of a release and its sources, and figures of its manifest.

    Attributes:
        release: Address of its folder.
        sources: Addresses of the folders or files that the job names, each once.
    """

    release: str
    sources: tuple[str, ...]
    facts: dict[str, str | int]


def lineage_of(job: Job, manifest: Manifest) -> Lineage:
    """Return addresses of a release and its sources, and manifest figures, for a Prefect asset."""
    facts: dict[str, str | int] = {
        "release": manifest.release,
        "method": manifest.method,
        "job": manifest.job,
        "inputs": manifest.inputs,
        "k": job.privacy.k,
        "records": manifest.records,
        "released": manifest.released,
        "suppressed": manifest.suppressed,
        "classes": manifest.classes,
        "min_class": manifest.min_class,
        "optimal": manifest.optimal,
    }
    return Lineage(asset_address(job.release_location(manifest.release)), sources_of(job), facts)


def sources_of(job: Job) -> tuple[str, ...]:
    """Return the addresses of the folders or files that a job reads, each once."""
    # Of a database neither address nor statement: a statement may hold values.
    plain = [_plain_part(path, hive=job.source.hive) for path in job.source.path or [QUERY]]
    return tuple(dict.fromkeys(asset_address(path if "://" in path else str(job.folder / path)) for path in plain))


def asset_address(path: str) -> str:
    """Return a path as an address for Prefect's assets: at most 500 characters, unfit ones replaced by _.

    Prefect's asset keys know no escapes, so unfit characters become ``_``. A longer address ends in a digest.
    One folder has one address, whether a job names it through ``..`` or not.
    """
    path = path if "://" in path else os.path.normpath(path)
    text = _UNFIT.sub("_", path if "://" in path else f"file://{PurePath(path).as_posix()}")
    # Paths that are long differ at the end most of all, which is cut off: the digest tells them apart.
    digest = hashlib.sha256(path.encode(errors="surrogatepass")).hexdigest()[:32]
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 33]}~{digest}"


def _plain_part(pattern: str, *, hive: bool) -> str:
    """Return a path up to its first wildcard, or up to its first partition folder (``name=value``)."""
    parts = pattern.split("/")
    ends = re.compile(r"[*?\[=]" if hive else r"[*?\[]")
    plain = next((number for number, part in enumerate(parts) if ends.search(part)), len(parts))
    return "/".join(parts[:plain])


if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

    from schemas.relational.manifest import TablesManifest
    from schemas.relational.tables_job import TablesJob

Client = TypeVar("Client")
URL, CONFIGURATION, TRANSPORT = "OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT"
INTERRUPTED = 130
_COUNT = re.compile(r"(?<![\w.'/-])[0-9][0-9,]*(\.[0-9]+)?(?![\w'/-])")


def events_are_enabled() -> bool:
    """Return whether the environment configures OpenLineage and ``OPENLINEAGE_DISABLED`` is not set."""
    if os.environ.get("OPENLINEAGE_DISABLED", "").lower() in {"true", "1"}:
        return False
    return any(name in {URL, CONFIGURATION} or name.startswith(TRANSPORT) for name in os.environ)


class RunEvents:
    """Sender of one run's OpenLineage events; does nothing unless the environment enables them.

    Args:
        job: The job that is run, of one table or of several.
    """

    def __init__(self, job: Job | TablesJob) -> None:
        self._job, self._run = job, ""
        client = _client() if events_are_enabled() else None
        self._sender = Sender(client) if client else None

    def send_start(self) -> None:
        """Queue OpenLineage's event START for this run; do not wait until it is sent."""
        self._send("START", {})

    def send_complete(self, manifest: Manifest | TablesManifest, columns: Mapping[str, Sequence[str]], *, new: bool) -> None:
        """Queue the event COMPLETE with the release; wait at most ten seconds until all events are sent.

        Args:
            manifest: Of the release.
            columns: Published columns of each of several tables; empty for one.
            new: Whether this run made the release.
        """
        self._send("COMPLETE", {"exit": 0, "release": release_figures(manifest, new=new)}, lambda: output_tables(manifest, columns))
        self._close(SECONDS)

    def send_end(self, error: SkaldError | None) -> None:
        """Queue FAIL with an error's code and message, or ABORT for None; wait some seconds for all events."""
        told = {"exit": error.exit_code, "sentence": without_counts(str(error))} if error else {"exit": INTERRUPTED}
        self._send("FAIL" if error else "ABORT", told)
        self._close(SECONDS if error else SECONDS_INTERRUPTED)

    def _send(self, state: str, ending: dict[str, Any], published: Callable[[], Mapping[str, OutputTable]] = dict) -> None:
        if self._sender is None:
            return
        try:
            from tasks.engine.openlineage import event  # noqa: PLC0415 - loads what most runs have no use for

            said = {"method": self._job.method.name, "k": self._job.privacy.k} | ending
            made = event(state, self._run, self._job.name, said, self._sources(), self._outputs(published()))
            self._run = str(made.run.runId)
        except Exception as error:
            self._sender.failed(error)
        else:
            self._sender.send(made)

    def _close(self, seconds: float) -> None:
        if self._sender is not None:
            self._sender.close(seconds)

    def _sources(self) -> list[tuple[str, str]]:
        """Return namespace and name of each source; what several tables are read from counts once."""
        addresses = [address for of_table in jobs_by_table(self._job).values() for address in sources_of(of_table)]
        return [dataset_of(address) for address in dict.fromkeys(addresses)]

    def _outputs(self, published: Mapping[str, OutputTable]) -> list[tuple[tuple[str, str], OutputTable | None]]:
        """Return namespace and name of each table in the target, and what is published of it."""
        places = {name: "/".join(filter(None, [of_table.target_location, name])) for name, of_table in jobs_by_table(self._job).items()}
        return [(dataset_of(asset_address(place)), published.get(name)) for name, place in places.items()]


def without_counts(sentence: str) -> str:
    """Return an error message with its numbers replaced by "some", as they could disclose small counts."""
    return _COUNT.sub("some", sentence)


def dataset_of(address: str) -> tuple[str, str]:
    """Return OpenLineage's namespace and name of an address: ``file`` and path, or bucket and key."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        return "file", parts.path
    return f"{parts.scheme}://{parts.netloc}", parts.path.strip("/") or "/"


def _unaliased(client: Callable[[], Client]) -> Client:
    """Create an OpenLineage client and restore the environment variables that it adds.

    They would outlive this run and enable the events of later ones.
    """
    before = {name for name in os.environ if name.startswith(TRANSPORT)}
    try:
        return client()
    finally:
        for name in [name for name in os.environ if name.startswith(TRANSPORT) and name not in before]:
            del os.environ[name]


def _client() -> OpenLineageClient | None:
    try:
        from openlineage.client import OpenLineageClient  # noqa: PLC0415 - the package is an option

        url = os.environ.get(URL, "")
        if not url.startswith("file://"):
            return _unaliased(OpenLineageClient)
        # The client knows files by a configuration only, and one line of environment is what people write.
        file = {"transport": {"type": "file", "log_file_path": urlsplit(url).path, "append": True}}
        return _unaliased(lambda: OpenLineageClient(config=file))
    except ImportError:
        LOG.warning("Events of OpenLineage are asked for, and openlineage-python is not installed: pip install 'skald[openlineage]'.")
    except Exception as error:
        LOG.warning("The place of OpenLineage's events cannot be used (%s); the run goes on without.", type(error).__name__)
    return None

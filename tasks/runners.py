"""Where the chunk tasks of a run work: on threads of its own process, or on the workers of a Dask cluster.

The choice is two environment variables, so that the command line, a deployment and a Prefect worker make it in the same way:
``SKALD_RUNNER=dask``, and ``SKALD_SCHEDULER`` with the address of a scheduler that exists. Without an address a cluster on this machine
is started for the run. Dask is an optional extra and imported only when it is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from schemas.errors import SkaldError, listed

if TYPE_CHECKING:
    from prefect.task_runners import TaskRunner

RUNNER, SCHEDULER = "SKALD_RUNNER", "SKALD_SCHEDULER"
CONTINUES = "Nothing was published; what is finished stays, and the same command continues from there."
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?[^\s/:]+:\d{1,5}|(?:(?:tcp|tls|ws|wss|ucx)://)?\[[0-9a-fA-F:]+\]:\d{1,5}")
RunnerName = Literal["threads", "dask"]


class RunnerError(SkaldError):
    """The workers that were asked for are not to be had, or cannot do the work."""

    @classmethod
    def not_installed(cls) -> RunnerError:
        """The optional extra is missing."""
        return cls("--runner dask needs the optional extra 'dask': install it with pip install 'skald[dask]', or leave the option out.")

    @classmethod
    def unknown(cls, name: str) -> RunnerError:
        """The runner is neither of the two."""
        return cls(f"{RUNNER} is '{name}'; it can be threads or dask.")

    @classmethod
    def contradiction(cls, option: str, remedy: str) -> RunnerError:
        """Two options that exclude each other."""
        return cls(f"{option} does not go with this runner: {remedy}.")

    @classmethod
    def unreachable(cls, address: str) -> RunnerError:
        """Nothing that speaks Dask answers at the address."""
        return cls(f"No Dask scheduler answers at '{address}'. Start one with 'dask scheduler', or correct --scheduler.")

    @classmethod
    def not_an_address(cls, address: str) -> RunnerError:
        """It does not look like one."""
        return cls(f"'{address}' is not the address of a Dask scheduler; give tcp://host:port, or tls://host:port.")

    @classmethod
    def not_started(cls) -> RunnerError:
        """The cluster on this machine did not start."""
        return cls("A Dask cluster could not be started on this machine. Leave out --runner dask, or name one that runs with --scheduler.")

    @classmethod
    def lost(cls, address: str) -> RunnerError:
        """The scheduler went away."""
        return cls(f"The Dask scheduler at '{address}' went away. {CONTINUES}")

    @classmethod
    def no_workers(cls, address: str, seconds: float) -> RunnerError:
        """A scheduler without a worker."""
        return cls(f"The Dask scheduler at '{address}' has had no worker for {seconds:.0f} s. Start one with 'dask worker'. {CONTINUES}")

    @classmethod
    def workers_died(cls, phase: str) -> RunnerError:
        """One chunk ended so many workers that Dask gave it up."""
        return cls(
            f"The Dask workers died one after another at the same task of '{phase}', most likely for want of memory. "
            f"Lower chunk_rows or give workers more. {CONTINUES}"
        )

    @classmethod
    def not_shared(cls, folder: str) -> RunnerError:
        """A worker does not see the run folder."""
        return cls(
            f"A Dask worker cannot read '{folder}'. Source, hierarchies and the job's work folder must be under the same path for all "
            f"workers, and they must run as the same user. {CONTINUES}"
        )

    @classmethod
    def versions_differ(cls, packages: Sequence[str]) -> RunnerError:
        """A worker has other versions of what makes a release."""
        return cls(f"A Dask worker has another version of {listed(packages)}. Install the same on all workers. {CONTINUES}")

    @classmethod
    def cannot_work(cls, kind: str) -> RunnerError:
        """A worker could not even begin."""
        return cls(f"A Dask worker could not run a task ({kind}). Install the same skald on all workers. {CONTINUES}")


def choose_runner(runner: RunnerName | None, scheduler: str | None, *, direct: bool = False) -> None:
    """Sets where the flows that are imported from here on run their chunk tasks; an address alone means Dask.

    Args:
        runner: ``threads`` or ``dask``; None keeps what the environment says.
        scheduler: Address of a Dask scheduler that exists, as in ``tcp://host:8786``.
        direct: Whether the run does without Prefect.

    Raises:
        RunnerError: Dask is not installed, the address is none, or the options exclude each other.
    """
    if scheduler:
        check_address(scheduler)
    if scheduler and runner == "threads":
        raise RunnerError.contradiction("--scheduler", "leave it out, or use --runner dask")
    if runner or scheduler:
        os.environ[RUNNER] = "dask" if scheduler else str(runner)
        os.environ[SCHEDULER] = scheduler or ""
    if on_dask() and direct:
        if runner or scheduler:
            raise RunnerError.contradiction("--direct", "Dask's tasks are Prefect's; leave out --direct")
        del os.environ[RUNNER]


def check_address(address: str) -> None:
    """Refuses what Dask would look for in vain, and for long.

    Raises:
        RunnerError: it is not an address.
    """
    if not _ADDRESS.fullmatch(address):
        raise RunnerError.not_an_address(address)


def on_dask() -> bool:
    """Tells whether chunk tasks go to Dask.

    Raises:
        RunnerError: they should, but Dask is not installed; or the runner is not known.
    """
    name = os.environ.get(RUNNER) or "threads"
    if name not in {"threads", "dask"}:
        raise RunnerError.unknown(name)
    if name == "dask" and not (find_spec("prefect_dask") and find_spec("distributed")):
        raise RunnerError.not_installed()
    return name == "dask"


def task_runner(workers: int) -> TaskRunner[Any]:
    """Returns Prefect's task runner for a flow of this process.

    Args:
        workers: How many tasks this machine works on at a time.

    Raises:
        RunnerError: Dask is asked for and not installed, or the scheduler's address is none.
    """
    if on_dask():
        from tasks.dask_runner import dask_runner  # noqa: PLC0415

        scheduler = os.environ.get(SCHEDULER) or None
        if scheduler:
            check_address(scheduler)
        return dask_runner(scheduler, workers)
    from prefect.task_runners import ThreadPoolTaskRunner  # noqa: PLC0415

    threads: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=workers)
    return threads

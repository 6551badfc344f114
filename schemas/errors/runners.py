"""Errors of workers: Dask clusters and processes that cannot do the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from schemas.errors.base import SkaldError, listed, shown_path

RUNNER, SCHEDULER = "SKALD_RUNNER", "SKALD_SCHEDULER"
RunnerName = Literal["threads", "processes", "dask"]


class RunnerError(SkaldError):
    """Raised when the requested workers are not available or cannot do the work."""

    @classmethod
    def not_installed(cls) -> RunnerError:
        """Extra ``skald[dask]``, an optional dependency, is not installed."""
        return cls("--runner dask needs the optional extra 'dask': install it with pip install 'skald[dask]', or leave the option out.")

    @classmethod
    def unknown(cls, name: str) -> RunnerError:
        """Runner name is none of threads, processes and dask."""
        return cls(f"{RUNNER} is '{name}'; it can be threads, processes or dask.")

    @classmethod
    def contradiction(cls, option: str, remedy: str) -> RunnerError:
        """Two options of the runner exclude each other."""
        return cls(f"{option} does not go with this runner: {remedy}.")

    @classmethod
    def unreachable(cls, address: str) -> RunnerError:
        """No Dask scheduler answers at the address."""
        return cls(f"No Dask scheduler answers at '{address}'. Start one with 'dask scheduler', or correct --scheduler.")

    @classmethod
    def no_certificate(cls, address: str) -> RunnerError:
        """Scheduler requires a TLS certificate, and Dask is configured without one."""
        return cls(
            f"The Dask scheduler at '{address}' wants a certificate, and Dask is configured with none. Set "
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …__TLS__CLIENT__CERT and …__TLS__CLIENT__KEY."
        )

    @classmethod
    def not_encrypted(cls, address: str) -> RunnerError:
        """Scheduler address is not encrypted, and Dask is configured to require encryption."""
        return cls(
            f"'{address}' is not encrypted, and Dask is configured to require that. Give the scheduler's address as tls://host:port."
        )

    @classmethod
    def not_an_address(cls, address: str) -> RunnerError:
        """Text does not look like an address of a Dask scheduler."""
        return cls(f"'{address}' is not the address of a Dask scheduler; give tcp://host:port, or tls://host:port.")

    @classmethod
    def not_started(cls) -> RunnerError:
        """Dask could not start a cluster on this machine."""
        return cls("A Dask cluster could not be started on this machine. Leave out --runner dask, or name one that runs with --scheduler.")

    @classmethod
    def scheduler_lost(cls, address: str) -> RunnerError:
        """Dask's scheduler does not answer any more."""
        return cls(f"The Dask scheduler at '{address}' went away.").continuing()

    @classmethod
    def no_workers(cls, address: str, seconds: float) -> RunnerError:
        """No worker has been connected to the Dask scheduler for some time."""
        return cls(f"The Dask scheduler at '{address}' has had no worker for {seconds:.0f} s. Start one with 'dask worker'.").continuing()

    @classmethod
    def workers_died(cls, phase: str) -> RunnerError:
        """One task ended several Dask workers, so that Dask stopped trying it."""
        return cls(
            f"The Dask workers died one after another at the same task of '{phase}', most likely for want of memory. "
            f"Lower chunk_rows or give workers more."
        ).continuing()

    @classmethod
    def process_died(cls, phase: str) -> RunnerError:
        """One worker process of this machine ended unexpectedly."""
        return cls(f"A process that worked at '{phase}' ended, most likely for want of memory. Lower chunk_rows or 'memory'.").continuing()

    @classmethod
    def not_shared(cls, folder: str) -> RunnerError:
        """Dask worker cannot read the run folder."""
        return cls(
            f"A Dask worker cannot read '{shown_path(folder)}'. Source, hierarchies and the job's work folder must be "
            f"under the same path for all "
            f"workers, and they must run as the same user."
        ).continuing()

    @classmethod
    def versions_differ(cls, packages: Sequence[str]) -> RunnerError:
        """Dask worker has other versions of packages that affect a release."""
        return cls(f"A Dask worker has another version of {listed(packages)}. Install the same on all workers.").continuing()

    @classmethod
    def altered_call(cls) -> RunnerError:
        """Call files were altered, or a worker has the key of another run."""
        return cls("A call of this run is not what was laid out for its worker, and was not made. See who can write there.").continuing()


class WithdrawnError(SkaldError):
    """Raised in a call that was cancelled because another call failed or the run must end.

    An exception is raised because a result would be kept for the next run.
    """

    def __init__(self, sentence: str = "Given up, because another task of this phase failed or the run was told to end.") -> None:
        super().__init__(sentence)

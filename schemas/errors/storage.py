"""How databases, object stores and Prefect's server can fail, each in one sentence without a credential and without a cell value."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors.base import SkaldError, SourceError, StorageError, counted, listed
from schemas.errors.shown import shown_path


def _published(release: str) -> str:
    return f"Release '{release}' is published, verified and whole, but"


class PointerError(StorageError):
    """A release is published, and what points to it is not."""

    @classmethod
    def not_named(cls, release: str, target: str) -> PointerError:
        """``CURRENT`` could not be written after the rename that published."""
        return cls(
            f"{_published(release)} 'CURRENT' in '{target}' could not be written and still names the "
            "one before, if any. See to the disk and the folder's permissions; the same command then names it."
        )


class AfterPublicationError(StorageError):
    """A release is published, and what follows its publication failed."""

    @classmethod
    def of_release(cls, release: str, what: str, reason: str) -> AfterPublicationError:
        """Something is left undone; ``what`` says that it is, as in 'the registry could not be written'."""
        return cls(f"{_published(release)} {what} ({reason}).")


class PrintingError(StorageError):
    """A release is published, and what is printed of it reaches nobody."""

    @classmethod
    def of_release(cls, release: str, reason: str) -> PrintingError:
        """Standard output is closed or full."""
        return cls(f"{_published(release)} standard output cannot be written ({reason}).")

    @classmethod
    def summary_failed(cls, release: str, kind: str) -> PrintingError:
        """Its summary cannot be made: a fault of ours, of which the kind alone is told."""
        return cls(f"{_published(release)} what is printed of it could not be made ({kind}).")


class PeopleLostError(StorageError):
    """What a run kept of who is in which class is not as it was made."""

    @classmethod
    def of_run(cls, files: int) -> PeopleLostError:
        """It was removed or altered before people were counted by it."""
        return cls(
            f"Of what the work folder keeps of people, {counted(files, 'file')} went missing or changed before they were counted by it. "
            "Nothing was published; what is finished stays, and the same command makes the rest again."
        )


class MachineError(StorageError):
    """The system gives this process less than any run needs."""

    @classmethod
    def no_memory(cls) -> MachineError:
        """An allocation failed."""
        return cls(
            "The system gives this process no more memory, whatever the job's 'memory' says. Lower 'memory' or 'threads', or raise the "
            "limit (ulimit -v); nothing was published, what is finished stays, and the same command continues from there."
        )

    @classmethod
    def no_room(cls, limit: int, least: int) -> MachineError:
        """The address space is limited to less than the libraries map."""
        return cls(
            f"The system allows this process {limit / 1e9:,.1f} GB of address space, and the libraries of every command map up to "
            f"{least / 1e9:,.0f} GB, most of which they never use. Raise the limit (ulimit -v), or limit resident memory instead (a "
            "container's, or a control group's); nothing was read or published."
        )

    @classmethod
    def no_files(cls) -> MachineError:
        """No further file could be opened."""
        return cls(
            "The system lets this process open no further file. Raise the limit (ulimit -n) or lower 'threads'; nothing was published, "
            "what is finished stays, and the same command continues from there."
        )


class DatabaseError(SourceError):
    """A database cannot be read, or what a query returns cannot be kept as it is."""

    @classmethod
    def not_installed(cls) -> DatabaseError:
        """The driver is an option."""
        return cls("Reading from PostgreSQL needs its driver: pip install 'skald[postgresql]'.")

    @classmethod
    def no_address(cls, where: str) -> DatabaseError:
        """The variable or file of ``connection`` holds no address."""
        return cls(
            f"source.connection names {where}, which holds no address such as postgresql://reader@host/database. Set it and run again."
        )

    @classmethod
    def unreachable(cls) -> DatabaseError:
        """The server refused the connection or did not answer."""
        return cls(
            "The PostgreSQL server cannot be reached or refused the connection. Check source.connection and libpq's variables "
            "(PGHOST, PGUSER, PGPASSWORD, PGSERVICE, …) with psql."
        )

    @classmethod
    def refused(cls, kind: str, state: str | None) -> DatabaseError:
        """The database could not run the statement; its own words may hold values, so only the code is told."""
        code = f" (SQLSTATE {state})" if state else ""
        return cls(f"{kind} could not run the job's query{code}. Try it there, where the whole message can be read: it may hold data.")

    @classmethod
    def not_select(cls) -> DatabaseError:
        """Only one SELECT makes sense."""
        return cls("source.query must be a single SELECT statement.")

    @classmethod
    def no_such_type(cls, faults: Sequence[str]) -> DatabaseError:
        """Columns whose values Parquet cannot hold, each with its type."""
        return cls(
            f"{counted(len(faults), 'column')} cannot be kept as they are: {', '.join(faults)}. Cast them to text, a number or a time in "
            "the source or in source.query."
        )

    @classmethod
    def no_precision(cls, names: Sequence[str]) -> DatabaseError:
        """PostgreSQL's numeric has no fixed number of digits."""
        example = f"{{{names[0]}: 'decimal(18,2)'}}"
        return cls(f"{listed(names)} is numeric in PostgreSQL, without a fixed number of digits. Say it as in source.types: {example}.")

    @classmethod
    def misfits(cls, faults: Sequence[str]) -> DatabaseError:
        """Values that the type of ``source.types`` cannot hold exactly, or that no type can; each fault names column and count."""
        return cls(f"The rows of the query do not fit: {'; '.join(faults)}. Correct source.types, or mend them in source.query.")

    @classmethod
    def unknown_types(cls, names: Sequence[str]) -> DatabaseError:
        """``source.types`` names columns that the query does not return."""
        return cls(f"source.types names {listed(names)}, which the query does not return.")


class ObjectStoreError(StorageError):
    """An object store cannot be read or written."""

    @classmethod
    def not_installed(cls, scheme: str) -> ObjectStoreError:
        """The package for a kind of store is an option."""
        remedy = "pip install 'skald[s3]'" if scheme.startswith("s3") else "install fsspec's package for it (gcsfs, adlfs)"
        return cls(f"Addresses that begin with {scheme}:// need a package that is not installed: {remedy}.")

    @classmethod
    def failed(cls, address: str, reason: str) -> ObjectStoreError:
        """Credentials, network, bucket or rights."""
        return cls(
            f"'{shown_path(address)}' cannot be read or written ({reason}). Check the address, the credentials of the "
            f"environment and their rights. "
            "What is finished stays, and the same command continues from there."
        )

    @classmethod
    def differs(cls, address: str, files: int) -> ObjectStoreError:
        """What was read back is not what was written."""
        return cls(
            f"{counted(files, 'file')} of '{address}' read back otherwise than they were written. No manifest was written, so nothing is "
            "published; run again when no other run writes there."
        )

    @classmethod
    def exists(cls, address: str) -> ObjectStoreError:
        """Another run published the same release meanwhile."""
        return cls(
            f"'{address}' was published by another run meanwhile and is not written over. Run again: the same job then does nothing."
        )


class OutputError(StorageError):
    """The released records cannot be written as the job asks."""

    @classmethod
    def too_many_folders(cls, most: int) -> OutputError:
        """``partition_by`` has too many distinct values."""
        return cls(f"output.partition_by would make more than {most:,} folders. Choose columns with fewer published values.")

    @classmethod
    def no_folder(cls, records: int) -> OutputError:
        """Empty text, or the word by which Hive calls null."""
        return cls(
            f"output.partition_by: {counted(records, 'record')} with text that cannot be a folder's name (empty, or Hive's word for null)."
        )

    @classmethod
    def long_folder(cls, values: int) -> OutputError:
        """A file system takes names of 255 bytes."""
        return cls(f"output.partition_by: {counted(values, 'value')} too long for a folder's name. Choose another column.")


class ServerError(StorageError):
    """Prefect's server cannot be used, or went away. Threads of Prefect's then wait for it, and the process must not wait for them."""

    @classmethod
    def unusable(cls, host: str, reason: str) -> ServerError:
        """The configured server is not there, or is none."""
        return cls(
            f"Prefect's server at '{host}' cannot be used ({reason}). Start it, or unset PREFECT_API_URL (or choose another profile), "
            "or run with --direct; what is finished stays, and the same command continues from there."
        )

    @classmethod
    def bad_settings(cls, settings: Sequence[str]) -> ServerError:
        """Prefect's settings are not what Prefect takes; of which ones it says the names, and values are not repeated."""
        named = f" ({listed(settings)})" if settings else ""
        return cls(
            f"Prefect cannot read its settings{named}. Look at its variables (PREFECT_…), .env, prefect.toml, pyproject.toml and the "
            "active profile in ~/.prefect/profiles.toml, or run with --direct, which needs no Prefect. Nothing was published."
        )

    @classmethod
    def server_stopped(cls) -> ServerError:
        """It went away in the middle of a run."""
        return cls("Prefect's server went away. What is finished stays, and the same command continues from there once it runs again.")


class DeploymentError(StorageError):
    """A job cannot be deployed on Prefect's server as it was asked; nothing there was changed."""

    @classmethod
    def no_server(cls) -> DeploymentError:
        """None is configured, and one of this process would be gone with it."""
        return cls("There is no Prefect server to deploy on. Set PREFECT_API_URL, as in http://127.0.0.1:4200/api, or choose a profile.")

    @classmethod
    def no_times(cls, cron: str, timezone: str) -> DeploymentError:
        """Not five fields, or no such zone."""
        return cls(
            f"--cron '{cron}' in '{timezone}' says no times. Give minute, hour, day, month and weekday, as in '0 2 * * *', and a zone."
        )

    @classmethod
    def fields(cls, cron: str, count: int) -> DeploymentError:
        """Other schedulers take seconds and years too, each in a place of its own."""
        return cls(
            f"--cron '{cron}' has {counted(count, 'field')}. Give five: minute, hour, day, month and weekday, as in '0 2 * * *' for two "
            "o'clock every night; there are no seconds and no years."
        )

    @classmethod
    def never(cls, cron: str) -> DeploymentError:
        """Such as 30 February."""
        return cls(f"--cron '{cron}' names a day that never comes, so that the job would never run. Correct day and month.")

    @classmethod
    def name_taken(cls, name: str, job_file: str) -> DeploymentError:
        """Deployments are named after jobs, whose names only their folders tell apart."""
        return cls(f"Deployment '{name}' is of another job file ({job_file}). Give this job another name, or delete that deployment.")

    @classmethod
    def other_host(cls, name: str, host: str) -> DeploymentError:
        """The same path on two hosts may be two jobs, and whoever deployed last would have the runs of both."""
        return cls(
            f"Deployment '{name}' is of a job at this path on host '{host}'. Give this job another name; if both hosts see the same file, "
            "say --take-over."
        )


class ThreadsError(SkaldError):
    """The system allows too few threads or processes."""

    @classmethod
    def refused(cls) -> ThreadsError:
        """The system allows no further thread or process."""
        return cls(
            "The system allows no further thread or process. Raise its limit (ulimit -u, or that of the container), or lower 'threads'; "
            "nothing was published, what is finished stays, and the same command continues from there."
        )

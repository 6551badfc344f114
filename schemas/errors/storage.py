"""Errors of databases, object stores and Prefect's server.

A message never has a credential or a cell value.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors.base import STAYS, SkaldError, SourceError, StorageError, counted, listed, nearest, shown_path


def _published(release: str) -> str:
    """Return the beginning of a message about a release that is published and complete."""
    return f"Release '{release}' is published, verified and whole, but"


class PointerError(StorageError):
    """Raised when a release is published, but ``CURRENT`` does not name it."""

    @classmethod
    def not_named(cls, release: str, target: str) -> PointerError:
        """File ``CURRENT`` could not be written after the release was published."""
        return cls(
            f"{_published(release)} 'CURRENT' in '{target}' could not be written and still names the "
            "one before, if any. See to the disk and the folder's permissions; the same command then names it."
        )


class AfterPublicationError(StorageError):
    """Raised when a release is published, but a later step failed."""

    @classmethod
    def of_release(cls, release: str, failure: str, reason: str) -> AfterPublicationError:
        """One step after the publication of a release failed.

        ``failure`` is a clause about it, as in 'the registry could not be written'.
        """
        return cls(f"{_published(release)} {failure} ({reason}).")


class PrintingError(StorageError):
    """Raised when a release is published, but its summary could not be printed."""

    @classmethod
    def of_release(cls, release: str, reason: str) -> PrintingError:
        """No more text can be written to standard output: it is closed or full."""
        return cls(f"{_published(release)} standard output cannot be written ({reason}).")

    @classmethod
    def summary_failed(cls, release: str, kind: str) -> PrintingError:
        """Summary of the release could not be made, by a fault of SKALD.

        Only the kind of the error is in the message.
        """
        return cls(f"{_published(release)} what is printed of it could not be made ({kind}).")


class PeopleLostError(StorageError):
    """Raised when a run's files about persons and their classes were lost or altered."""

    @classmethod
    def of_run(cls, files: int) -> PeopleLostError:
        """Files about persons were removed or altered before persons were counted from them."""
        return cls(
            f"Of what the work folder keeps of people, {counted(files, 'file')} went missing or changed before they were counted by it. "
            "Nothing was published; what is finished stays, and the same command makes the rest again."
        )


class MachineError(StorageError):
    """Raised when the operating system gives the process too few resources."""

    @classmethod
    def no_memory(cls) -> MachineError:
        """Memory allocation failed."""
        return cls(
            "The system gives this process no more memory, whatever the job's 'memory' says. Lower 'memory' or 'threads', or raise the "
            "limit (ulimit -v)."
        ).continuing()

    @classmethod
    def no_room(cls, limit: int, least: int) -> MachineError:
        """Address space is limited to less than the libraries need."""
        return cls(
            f"The system allows this process {limit / 1e9:,.1f} GB of address space, and the libraries of every command map up to "
            f"{least / 1e9:,.0f} GB, most of which they never use. Raise the limit (ulimit -v), or limit resident memory instead (a "
            "container's, or a control group's); nothing was read or published."
        )

    @classmethod
    def no_files(cls) -> MachineError:
        """No further file can be opened by this process."""
        return cls("The system lets this process open no further file. Raise the limit (ulimit -n) or lower 'threads'.").continuing()

    @classmethod
    def no_such_letters(cls) -> MachineError:
        """Path has a letter that the locale's encoding of file names lacks."""
        return cls("A path has a letter that file names lack in this locale. Set PYTHONUTF8=1, or LC_ALL to a locale of UTF-8.")


REASONS = {
    "08006": ": the connection was lost",
    "08P01": ": server or pooler ended the connection",
    "40001": ": the standby gave up the query for changes of the primary; run again, or read the primary",
    "42P01": ": there is no such table",
    "42501": ": the role may not read it, or row-level security hides rows",
    "57014": ": the server cancelled it, as statement_timeout does",
    "57P01": ": the server ended the connection",
}


class DatabaseError(SourceError):
    """Raised when a database cannot be read, or the rows of a query cannot be kept exactly."""

    @classmethod
    def not_installed(cls) -> DatabaseError:
        """PostgreSQL's driver, an optional dependency, is not installed."""
        return cls("Reading from PostgreSQL needs its driver: pip install 'skald[postgresql]'.")

    @classmethod
    def no_address(cls, where: str) -> DatabaseError:
        """Neither variable nor file of ``source.connection`` holds a valid address."""
        return cls(
            f"source.connection names {where}, which holds no address such as postgresql://reader@host/database. Set it and run again."
        )

    @classmethod
    def not_opened(cls, file: str) -> DatabaseError:
        """DuckDB file cannot be opened: another program writes to it, or it is no such file."""
        return cls(
            f"'{shown_path(file)}' cannot be opened as a DuckDB file. Close the program that has it open for writing. If none has, it is "
            "damaged, of another format or version, or not yours to read."
        )

    @classmethod
    def unreachable(cls) -> DatabaseError:
        """PostgreSQL server refused the connection or did not answer."""
        return cls(
            "The PostgreSQL server cannot be reached or refused the connection. Check source.connection and libpq's variables "
            "(PGHOST, PGUSER, PGPASSWORD, PGSERVICE, …) with psql. A pooler in between needs a free connection, pool_mode session or "
            "transaction, and ignore_startup_parameters = options if you set any."
        )

    @classmethod
    def used_session(cls, left: Sequence[str]) -> DatabaseError:
        """Pooler gave a session in which another client left what gives names another meaning."""
        return cls(
            f"The pooler gave a session in which somebody left {listed(left)}, so the query may read another table. Connect to the server "
            "itself, or have the pooler reset sessions (pool_mode session, or server_reset_query_always). What is meant to be set belongs "
            "into PGOPTIONS or ALTER ROLE … SET."
        )

    @classmethod
    def refused(cls, kind: str, state: str | None) -> DatabaseError:
        """Database could not run the query, or read the table.

        Its own message may hold values, so only the error code is shown.
        """
        code = f" (SQLSTATE {state}{REASONS.get(state, '')})" if state else ""
        return cls(
            f"{kind} could not read the table or run the query{code}. Try it there, where the whole message can be read: it may hold data."
        )

    @classmethod
    def no_table(cls, file: str, table: str, known: Sequence[str]) -> DatabaseError:
        """DuckDB file has no table or view that ``source.table`` names."""
        there = f"it has {listed(known)}" if known else "it has none"
        return cls(f"'{shown_path(file)}' has no table '{table}'{nearest(table, known)}; {there}. Name one that it has.")

    @classmethod
    def not_select(cls) -> DatabaseError:
        """``source.query`` is not a single SELECT statement, or returns no column."""
        return cls("source.query must be a single SELECT statement that returns columns.")

    @classmethod
    def no_such_type(cls, faults: Sequence[str]) -> DatabaseError:
        """Columns of the query have types that Parquet cannot hold; each fault names one."""
        return cls(
            f"{counted(len(faults), 'column')} cannot be kept as they are: {', '.join(faults)}. Cast them to text, a number or a time in "
            "the source or in source.query."
        )

    @classmethod
    def no_precision(cls, names: Sequence[str]) -> DatabaseError:
        """Numeric columns of PostgreSQL have no type, which says their digits."""
        example = f"{{{names[0]}: 'decimal(18,2)'}}"
        return cls(
            f"{listed(names)} is numeric in PostgreSQL, and only a type says its digits. Give it one, as in source.types: {example}, "
            "or by --type in a draft."
        )

    @classmethod
    def values_do_not_fit(cls, faults: Sequence[str]) -> DatabaseError:
        """Values of the query do not fit exactly into their type.

        The type is that of ``source.types``, or no type fits. Each fault names a column and a count.
        """
        return cls(f"The rows of the query do not fit: {'; '.join(faults)}. Correct source.types, or mend them in source.query.")

    @classmethod
    def unknown_types(cls, names: Sequence[str]) -> DatabaseError:
        """Columns of ``source.types`` are missing from the rows of the query."""
        return cls(f"source.types names {listed(names)}, which the query does not return.")


class ObjectStoreError(StorageError):
    """Raised when an object store cannot be read or written."""

    @classmethod
    def not_installed(cls, scheme: str) -> ObjectStoreError:
        """Package for this kind of object store is not installed."""
        remedy = "pip install 'skald[s3]'" if scheme.startswith("s3") else "install fsspec's package for it (gcsfs, adlfs)"
        return cls(f"Addresses that begin with {scheme}:// need a package that is not installed: {remedy}.")

    @classmethod
    def failed(cls, address: str, reason: str) -> ObjectStoreError:
        """Address cannot be read or written: credentials, network, bucket or rights are wrong."""
        return cls(
            f"'{shown_path(address)}' cannot be read or written ({reason}). Check the address, the credentials of the "
            "environment and their rights. Each worker needs credentials in an environment of its own."
        ).continuing(STAYS)

    @classmethod
    def differs(cls, address: str, files: int) -> ObjectStoreError:
        """Files in the object store differ from the files that were written."""
        return cls(
            f"{counted(files, 'file')} of '{address}' read back otherwise than they were written. No manifest was written, so nothing is "
            "published; run again when no other run writes there."
        )

    @classmethod
    def exists(cls, address: str) -> ObjectStoreError:
        """Another run published the same release in the meantime."""
        return cls(
            f"'{address}' was published by another run meanwhile and is not written over. Run again: the same job then does nothing."
        )


class OutputError(StorageError):
    """Raised when the released records cannot be written as the job asks."""

    @classmethod
    def too_many_folders(cls, most: int) -> OutputError:
        """Columns of ``output.partition_by`` have too many distinct values."""
        return cls(f"output.partition_by would make more than {most:,} folders. Choose columns with fewer published values.")

    @classmethod
    def no_folder(cls, records: int) -> OutputError:
        """Values of ``output.partition_by`` are empty text or Hive's word for null."""
        return cls(
            f"output.partition_by: {counted(records, 'record')} with text that cannot be a folder's name (empty, or Hive's word for null)."
        )

    @classmethod
    def folders_alike(cls, folders: int) -> OutputError:
        """File system takes the names of folders for those of others, which differ by case alone."""
        return cls(
            f"output.partition_by: {counted(folders, 'folder')} would be one with another, as the target's file system does not tell upper "
            "from lower case. Set 'target' on another one, or normalise: [case]."
        )

    @classmethod
    def long_folder(cls, values: int) -> OutputError:
        """Values of ``output.partition_by`` are too long for a folder name (255 bytes)."""
        return cls(f"output.partition_by: {counted(values, 'value')} too long for a folder's name. Choose another column.")


class ServerError(StorageError):
    """Raised when Prefect's server cannot be used or stops.

    Threads of Prefect then wait for the server, and the process must not wait for them.
    """

    @classmethod
    def unusable(cls, host: str, reason: str) -> ServerError:
        """Prefect's server at the configured address does not answer or is another program."""
        return cls(
            f"Prefect's server at '{host}' cannot be used ({reason}). Start it, or unset PREFECT_API_URL (or choose another profile), "
            "or run with --direct."
        ).continuing(STAYS)

    @classmethod
    def bad_settings(cls, settings: Sequence[str]) -> ServerError:
        """Prefect cannot read its settings.

        The message has the names of the settings, never their values.
        """
        named = f" ({listed(settings)})" if settings else ""
        return cls(
            f"Prefect cannot read its settings{named}. Look at its variables (PREFECT_…), .env, prefect.toml, pyproject.toml and the "
            "active profile in ~/.prefect/profiles.toml, or run with --direct, which needs no Prefect. Nothing was published."
        )

    @classmethod
    def no_home(cls, reason: str) -> ServerError:
        """User has no folder in which Prefect could keep its files, as in many containers."""
        return cls(
            f"Prefect's folder in the user's cache cannot be made ({reason}). Set HOME or XDG_CACHE_HOME to a folder that is yours to "
            "write, or run with --direct, which needs no Prefect. Nothing was published."
        )

    @classmethod
    def server_stopped(cls) -> ServerError:
        """Prefect's server stopped during a run."""
        return cls("Prefect's server went away.").continuing(
            "What is finished stays, and the same command continues from there once it runs again."
        )


class DeploymentError(StorageError):
    """Raised when a job cannot be deployed on Prefect's server; nothing there was changed."""

    @classmethod
    def no_server(cls) -> DeploymentError:
        """No Prefect server is configured.

        A server within this process would end with it.
        """
        return cls("There is no Prefect server to deploy on. Set PREFECT_API_URL, as in http://127.0.0.1:4200/api, or choose a profile.")

    @classmethod
    def no_times(cls, cron: str, timezone: str) -> DeploymentError:
        """Cron expression does not have five valid fields, or the time zone is unknown."""
        return cls(
            f"--cron '{cron}' in '{timezone}' says no times. Give minute, hour, day, month and weekday, as in '0 2 * * *', and a zone."
        )

    @classmethod
    def not_five_fields(cls, cron: str, count: int) -> DeploymentError:
        """Cron expression does not have exactly five fields.

        Other schedulers also take seconds and years, each at its own position.
        """
        return cls(
            f"--cron '{cron}' has {counted(count, 'field')}. Give five: minute, hour, day, month and weekday, as in '0 2 * * *' for two "
            "o'clock every night; there are no seconds and no years."
        )

    @classmethod
    def never_due(cls, cron: str) -> DeploymentError:
        """Cron expression names a day that never comes, such as 30 February."""
        return cls(f"--cron '{cron}' names a day that never comes, so that the job would never run. Correct day and month.")

    @classmethod
    def name_taken(cls, name: str, job_file: str) -> DeploymentError:
        """Another job file already has a deployment of this name.

        Deployments are named after jobs, and jobs in different folders may have the same name.
        """
        return cls(f"Deployment '{name}' is of another job file ({job_file}). Give this job another name, or delete that deployment.")

    @classmethod
    def other_host(cls, name: str, host: str) -> DeploymentError:
        """Deployment of this name and path belongs to a job on another host.

        The same path on two hosts may be two jobs. The last deployment would get the runs of both.
        """
        return cls(
            f"Deployment '{name}' is of a job at this path on host '{host}'. Give this job another name; if both hosts see the same file, "
            "say --take-over."
        )


class ThreadsError(SkaldError):
    """Raised when the system allows too few threads or processes."""

    @classmethod
    def refused(cls) -> ThreadsError:
        """No further thread or process is allowed by the system."""
        return cls(
            "The system allows no further thread or process. Raise its limit (ulimit -u, or that of the container), or lower 'threads'. "
        ).continuing()

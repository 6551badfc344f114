"""Results that a program gets for a release: manifest, report and notebook summary."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# ruff: noqa: PLC0415 - who imports skald should not wait for what is used later


@dataclass(frozen=True, repr=False)
class Release:
    """Base class of results: the manifest of a release.

    Attributes:
        manifest: What `manifest.json` says.
    """

    manifest: dict[str, Any]

    @property
    def report(self) -> dict[str, Any] | None:
        """Content of `report.json`, or None if it is not available."""
        raise NotImplementedError

    @property
    def page(self) -> str | None:
        """HTML page of the report, self-contained, or None if it is not available."""
        raise NotImplementedError

    def _repr_html_(self) -> str | None:
        """Return the report's summary as HTML for notebooks, or None without a report.

        With None the notebook shows the plain form.
        """
        from schemas.release.report import Report
        from tasks.report.page import notebook_summary

        return notebook_summary(Report.model_validate(self.report)) if self.report is not None else None


@dataclass(frozen=True, repr=False)
class Published(Release):
    """A published release, with its manifest, folder and report.

    A notebook shows its summary.

    Attributes:
        release: Its id.
        folder: Its folder; for a target in an object store its address, as text.
        new: Whether this call made it: the same job on the same data does nothing.
    """

    release: str
    folder: Path | str
    new: bool

    def __repr__(self) -> str:
        return f"Published({self.release!r}, folder={str(self.folder)!r}, new={self.new})"

    @property
    def report(self) -> dict[str, Any] | None:
        """Content of `report.json`, or None if the release is in an object store."""
        text = self._document("report.json")
        return None if text is None else json.loads(text)

    @property
    def page(self) -> str | None:
        """HTML page of the report, self-contained, or None if the release is in an object store."""
        return self._document("report.html")

    def _document(self, name: str) -> str | None:
        """Return the text of a file in the release, or None."""
        path = self.folder / name if isinstance(self.folder, Path) else None
        from schemas.reading.regular_files import content_of

        # The folder is others' too, and may hold anything by now.
        return content_of(path, may_be_link=False).decode() if path and path.is_file() else None


@dataclass(frozen=True, repr=False)
class Anonymised(Release):
    """Manifest and report of a table that was anonymised in memory.

    A notebook shows their summary.

    Attributes:
        documents: The report's two files by name, as text.
    """

    documents: dict[str, str]

    def __repr__(self) -> str:
        released, records = self.manifest["released"], self.manifest["records"]
        return f"Anonymised({released:,} of {records:,} records, smallest class {self.manifest['min_class']:,})"

    @property
    def report(self) -> dict[str, Any] | None:
        """Content of `report.json`."""
        return dict(json.loads(self.documents["report.json"]))

    @property
    def page(self) -> str | None:
        """HTML page of the report, self-contained."""
        return self.documents["report.html"]


@dataclass(frozen=True, repr=False)
class AnonymisedTables(Anonymised):
    """Manifest and report of several tables that were anonymised in memory.

    A notebook shows their summary.
    """

    def __repr__(self) -> str:
        persons = self.manifest["persons"]
        of = "" if persons["source"] is None else f" of {persons['source']:,}"
        return f"Anonymised({persons['released']:,}{of} persons, smallest history {self.manifest['min_class']:,})"

    def _repr_html_(self) -> str:
        """Return the report's sentences as HTML for notebooks."""
        from html import escape

        return "".join(f"<p>{escape(sentence)}</p>" for sentence in json.loads(self.documents["report.json"])["sentences"])

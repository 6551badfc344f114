"""What a report says, before all else, of a release in which pseudonyms stand for persons."""

from __future__ import annotations

from schemas.release.report import Limit

PSEUDONYMOUS = (
    Limit(
        text="This release is pseudonymous, not anonymous: whoever holds the key or the vault can find persons in it or undo pseudonyms, "
        "and what is masked in part stays readable in part. Pseudonyms are in no risk above.",
        source="GDPR, Article 4(5) and Recital 26",
    ),
    Limit(
        text="Releases with the same key or vault can be linked record by record, and so can the records of one person in this release. "
        "Their classes together may be narrower than k records. Another key for each receiver keeps releases apart.",
        source="Article 29 Working Party, Opinion 05/2014 on Anonymisation Techniques",
    ),
)

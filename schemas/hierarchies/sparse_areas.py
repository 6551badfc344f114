"""ZIP code areas in which so few people live that HIPAA's safe harbour wants them told as 000, census by census.

45 CFR 164.514(b)(2)(i)(B) looks at the areas of all ZIP codes that begin with the same three digits, and at the current data of the Bureau
of the Census. The list of 2000 is that of the guidance of the Department of Health and Human Services; those of 2010 and 2020 are sums of
the census's ZIP code tabulation areas (2020: DHC, table P1). Both times they are the same 18 areas.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, WithJsonSchema

from schemas.reading.model import alternatives, fault

OF_2000 = (
    "036", "059", "063", "102", "203", "556", "692", "790", "821", "823", "830", "831", "878", "879", "884", "890", "893",
)  # fmt: skip
OF_2010 = (
    "036", "059", "102", "202", "203", "204", "205", "369", "556", "692", "753", "772", "821", "823", "878", "879", "884", "893",
)  # fmt: skip
OF_2020 = OF_2010
SPARSE_ZIP_CODES = {"hipaa": OF_2020, "hipaa_2020": OF_2020, "hipaa_2010": OF_2010, "hipaa_2000": OF_2000}
"""First three digits of the ZIP codes of areas of 20,000 people or fewer, by the word of a job; ``hipaa`` is the newest census."""
# Before there were several, the one word was that of 2000: a job that meant that list keeps its digest under its name.
DIGESTED = {"hipaa": "hipaa_2020", "hipaa_2000": "hipaa"}
LeafStatistics: TypeAlias = Literal["hipaa", "hipaa_2000", "hipaa_2010", "hipaa_2020"]


def sparse_prefixes(value: object) -> object:
    """Returns the word of a census, or a list of beginnings of one length.

    Raises:
        PydanticCustomError: neither of the two.
    """
    if isinstance(value, str) and value in SPARSE_ZIP_CODES:
        return value
    if not isinstance(value, list) or not value or not all(isinstance(prefix, str) and prefix for prefix in value):
        raise fault(f"must be the word {alternatives(SPARSE_ZIP_CODES)}, or a list of beginnings as text; put each in quotes")
    if len({len(prefix) for prefix in value}) > 1:
        raise fault("must be beginnings of one length")
    return value


_LIST: dict[str, Any] = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
Sparse = Annotated[
    LeafStatistics | list[str], BeforeValidator(sparse_prefixes), WithJsonSchema({"anyOf": [{"enum": list(SPARSE_ZIP_CODES)}, _LIST]})
]

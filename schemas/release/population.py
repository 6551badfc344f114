"""What a manifest says of a release's risk in the population that the source was drawn from."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from schemas.errors.base import counted


class PopulationRisk(BaseModel):
    """Risk against somebody who knows that a person is in the population, and not whether they are in the data.

    Attributes:
        records: Rows of the population.
        k_map: The fewest of them that the labels of a class fit (k-map: Sweeney, IJUFKS 2002), never fewer than the class has records.
        journalist_max: 1/k_map.
        journalist_mean: See `core.privacy.risk`, as are those below.
        journalist_share_above: Share of the records in classes whose risk is above 0.09.
        marketer: Share of the records that a marketer is expected to match rightly.
        lacking: Classes that have more records than the population has rows for them: it does not hold everybody who is in the data.
    """

    model_config = ConfigDict(frozen=True)

    records: int
    k_map: int
    journalist_max: float
    journalist_mean: float
    journalist_share_above: float
    marketer: float
    lacking: int


def population_sentences(found: PopulationRisk | None) -> tuple[str, ...]:
    """Returns what was measured, for summary and report; nothing where no population was given."""
    if found is None:
        return ()
    fits = f"In the population of {counted(found.records, 'row')} every class fits {counted(found.k_map, 'row')} or more (k-map)"
    risk = f"a journalist's risk is at most {found.journalist_max:.2%} and {found.journalist_mean:.2%} on average"
    told = f"{fits}: {risk}, a marketer's {found.marketer:.2%}."
    if not found.lacking:
        return (told,)
    return told, f"Classes with more records than the population has rows for them: {found.lacking:,}. It does not hold everybody."

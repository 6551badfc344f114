"""What columns are by their names and values: the table, how names are read, and what values say against them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.roles.schemas import SCHEMAS, labelled
from core.formats.concept_names import concept_names, concept_of, name_words
from core.formats.proposals import ColumnProfile, propose_role

LETTERS = {
    "I": "identifier", "K": "key", "Q": "quasi_identifier", "S": "sensitive", "N": "insensitive", "W": "withheld", "G": "weight",
}  # fmt: skip


def test_every_name_of_the_table_is_found_under_its_first_line_however_it_is_written() -> None:
    seen: dict[str, str] = {}
    for concept, name, _ in concept_names():
        # Two names may be one without blanks: the line that comes first has it.
        first = seen.setdefault("".join(name_words(name)), concept.role)
        for written in (name, name.upper().replace(" ", "_"), "".join(word.capitalize() for word in name.split()), name.replace(" ", "-")):
            found = concept_of(written)
            assert found is not None
            assert found.concept.role == first or any(letter.isdigit() for letter in name), written


@pytest.mark.parametrize("schema", sorted(SCHEMAS))
def test_names_of_common_schemas_have_an_acceptable_role(schema: str) -> None:
    wrong = []
    for column in labelled(schema):
        found = concept_of(column.name)
        if found is not None and found.concept.role not in {LETTERS[letter] for letter in column.roles}:
            wrong.append(column.name)
    # What a name does not tell alone, values may.
    assert len(wrong) <= len(labelled(schema)) / 10, wrong


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Straße", "identifier"), ("Prénom", "identifier"), ("Año de Nacimiento", "quasi_identifier"),
        ("Código Postal", "quasi_identifier"),
        ("numeroSecuriteSociale", "identifier"), ("raça", "quasi_identifier"), ("Nationalität", "quasi_identifier"),
        ("patientname", "identifier"), ("birthyear", "quasi_identifier"), ("county_name", "quasi_identifier"),
        ("drug_name", "sensitive"), ("member_count", None), ("order_nr", "key"), ("client_key", "identifier"),
        ("updated_at", "insensitive"), ("surgery_date", "quasi_identifier"), ("country of birth of father", "quasi_identifier"),
        ("xqzt", None),
    ],
)  # fmt: skip
def test_names_are_read_without_accents_in_any_case_and_by_their_head(name: str, role: str | None) -> None:
    found = concept_of(name)
    assert (found and found.concept.role) == role


@given(st.text())
def test_no_name_is_too_strange(name: str) -> None:
    assert all(word.isalpha() for word in name_words(name))
    concept_of(name)


def role(name: str, kind: str = "integer", values: int = 2000, distinct: int = 40, **more: object) -> str:
    return propose_role(ColumnProfile(name, kind, values, distinct, **more)).role  # type: ignore[arg-type]


def test_postal_codes_and_dates_of_a_sure_name_are_no_telephone_numbers() -> None:
    phones = ("telephone numbers",)
    for name in ("postal_code", "PLZ", "date_of_birth", "admission_date", "country"):
        assert role(name, "text", value_patterns=phones) == "quasi_identifier", name
    # Other names leave that to the values, and no name outweighs other looks.
    for name in ("q7", "diagnosis", "income", "notes", "home_phone", "hasforeigncountry"):
        assert role(name, "text", value_patterns=phones) == "identifier", name
    for look in ("e-mail addresses", "social-security numbers", "IP addresses", "payment cards"):
        assert role("postal_code", "text", value_patterns=(look,)) == "identifier", look
        assert role("postal_code", "text", value_patterns=(*phones, look)) == "identifier", look


def test_values_outweigh_names() -> None:
    assert role("contact", "text", distinct=2) == "sensitive"
    assert role("first_name", "text", distinct=40) == "identifier"
    assert role("hospital_code", "text", distinct=12, value_patterns=("e-mail addresses",)) == "identifier"
    assert role("location", "text", distinct=1990, mean_length=20) == "identifier"
    assert role("weight", "double", distinct=1500, span=9_000.0) == "weight"
    assert role("weight", "double", distinct=500, span=60.0) == "quasi_identifier"
    assert role("q7", "text", distinct=1900, mean_length=80) == "withheld"
    assert role("diagnosis", "text", distinct=1900, mean_length=60) == "withheld"
    assert role("q7", "date") == "quasi_identifier"
    assert role("country", "text", distinct=1) == "insensitive"
    # Nearly constant: of a sure name it stays, of a name that was cut into words it does not.
    assert role("country", "text", distinct=3, top=0.99) == "quasi_identifier"
    assert role("hasforeigncountry", "text", distinct=3, top=0.99) == "sensitive"


def test_numbers_of_nearly_every_record_are_measures_if_they_look_like_them() -> None:
    numbered = propose_role(ColumnProfile("x9", "integer", 2000, 1990, even=0.5))
    assert (numbered.role, numbered.question) == ("identifier", "names")
    for shape in ({"even": 0.1}, {"even": 0.5, "negative": True}, {"even": 0.5, "top": 0.2}):
        measured = propose_role(ColumnProfile("x9", "integer", 2000, 1990, **shape))  # type: ignore[arg-type]
        assert (measured.role, measured.publish_setting, measured.question) == ("sensitive", "shared", "outside")


def test_what_is_unsure_is_asked_and_what_is_published_as_values_is_shared() -> None:
    for name in ("x1", "age", "income", "updated_at", "email", "id", "perwt"):
        one = propose_role(ColumnProfile(name, "integer", 2000, 300, even=0.5))
        assert (one.question is None) == (one.confidence >= 0.7)
        assert (one.publish_setting == "shared") == (one.role in {"sensitive", "insensitive", "weight"})

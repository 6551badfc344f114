"""A query tells where its columns come from, or is refused: no value of a column that is never published goes out under another name."""

from __future__ import annotations

import duckdb
import pytest

from schemas.job.policy import UNTOLD, Policy, origins
from tasks.store.database import syntax_of

POLICY = Policy.model_validate({"version": 1, "never_published": ["ssn", "*_secret"]})
TOLD = [
    "SELECT age, ssn FROM visits",
    "SELECT v.age, v.SSN, p.name FROM visits v JOIN people p ON v.ssn = p.ssn",
    "SELECT name, age FROM visits JOIN people USING (ssn)",
    "SELECT * FROM visits",
    "FROM visits",
    "SELECT v.* EXCLUDE (ssn) FROM visits v",
    "SELECT * EXCLUDE (ssn), age + 1 AS older FROM visits WHERE ssn LIKE '1%' ORDER BY ssn",
    "SELECT count(*) AS visits_of_one, min(age) AS age FROM visits GROUP BY ssn",
    "SELECT ssn AS SSN, age FROM visits",
    "WITH old AS (SELECT * FROM visits WHERE age > 20) SELECT age, ssn FROM old",
    "SELECT age FROM (SELECT age, ssn FROM visits) AS inner_one",
    "SELECT age, name FROM visits, LATERAL (SELECT name FROM people WHERE people.ssn = visits.ssn) AS one",
    "SELECT age FROM visits UNION ALL SELECT age FROM visits",
    "SELECT ssn FROM visits UNION SELECT ssn FROM people",
    "SELECT age, CASE WHEN age > 20 THEN 'old' ELSE 'young' END AS kind FROM visits",
    "SELECT age AS ssn FROM visits",
    "SELECT DISTINCT ON (ssn) age FROM visits",
    "SELECT age FROM visits WHERE EXISTS (SELECT 1 FROM people WHERE people.ssn = visits.ssn)",
]
RENAMED = [
    "SELECT ssn AS x FROM visits",
    'SELECT "SSN" AS x FROM visits',
    "SELECT x: ssn FROM visits",
    "SELECT a_secret AS x FROM people",
    "SELECT upper(ssn) AS x FROM visits",
    "SELECT ssn || '' FROM visits",
    "SELECT CAST(ssn AS TEXT) AS y FROM visits",
    "SELECT (SELECT min(ssn) FROM visits) AS x",
    "SELECT (SELECT ssn FROM visits LIMIT 1) AS x",
    "SELECT x FROM (SELECT ssn AS x FROM visits) AS inner_one",
    "WITH other AS (SELECT ssn AS x FROM visits) SELECT x FROM other",
    "SELECT age, x FROM visits, LATERAL (SELECT visits.ssn AS x) AS one",
    "SELECT name FROM people UNION ALL SELECT ssn FROM visits",
    "SELECT first_value(ssn) OVER (ORDER BY age) AS x FROM visits",
    "SELECT max(age) FILTER (WHERE ssn = '1'), list(ssn)::TEXT AS x FROM visits",
    "SELECT col0 FROM (VALUES ((SELECT min(ssn) FROM visits))) AS t",
    "SELECT ssn.part AS x FROM (SELECT {'part': '123-45'} AS ssn) AS t",
]
NOT_TOLD = [
    "SELECT * RENAME (ssn AS x) FROM visits",
    "SELECT * REPLACE (ssn AS age) FROM visits",
    "SELECT COLUMNS('s.*') AS x FROM visits",
    "SELECT max(COLUMNS(*)) FROM visits",
    "SELECT a, b FROM visits AS v(a, b)",
    "WITH c(a, b) AS (SELECT * FROM visits) SELECT a FROM c",
    "SELECT visits::TEXT AS x FROM visits",
    "SELECT v::TEXT AS x FROM visits AS v",
    "SELECT unnest(v) FROM visits AS v",
    "SELECT * FROM query('SELECT ssn AS x FROM visits')",
    "UNPIVOT visits ON ssn INTO NAME n VALUE x",
    "SELECT name FROM people UNION ALL SELECT * EXCLUDE (age) FROM visits",
    "SELECT * FROM people UNION ALL SELECT * FROM people",
    "WITH RECURSIVE c AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM c WHERE x < 3) SELECT x FROM c",
    "SELECT 1; SELECT ssn AS x FROM visits",
    "DROP TABLE visits",
    "SELECT FROM WHERE",
]


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect()
    found.execute("CREATE TABLE visits AS SELECT '123-45' AS ssn, 30 AS age")
    found.execute("CREATE TABLE people AS SELECT 'Ann' AS name, '123-45' AS ssn, '123-45' AS a_secret")
    return found


@pytest.mark.parametrize("statement", TOLD)
def test_no_value_of_such_a_column_goes_out_under_another_name(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    assert origins(syntax_of(statement), POLICY.banned) == ((), ())
    answer = connection.execute(statement)
    names = [str(column[0]) for column in answer.description or ()]
    for name, value in zip(names, answer.fetchall()[0], strict=True):
        assert POLICY.banned([name]) or "123-45" not in str(value)


@pytest.mark.parametrize("statement", RENAMED)
def test_what_is_made_of_such_a_column_is_refused_by_its_name(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    found = origins(syntax_of(statement), POLICY.banned)
    assert [name.casefold() for name in found.renamed] == ["a_secret" if "a_secret" in statement else "ssn"]
    assert connection.execute(statement).fetchall(), "the statement means something"


@pytest.mark.parametrize("statement", NOT_TOLD)
def test_what_does_not_tell_what_it_makes_columns_of_is_refused(statement: str) -> None:
    assert origins(syntax_of(statement), POLICY.banned).untold


def test_what_cannot_be_read_is_said_in_one_way() -> None:
    assert origins(None, POLICY.banned) == ((), (UNTOLD,))

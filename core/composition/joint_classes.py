"""SQL statements that count what two releases disclose together, over the records of both.

Each table has ``content``, ``class``, ``shared``, ``person``, ``untreated`` and ``value_0`` …: digests, with 0 for no person and for null.

Both releases keep every class at k or more. An attacker who looks for a person in both looks in one class of each, and so among the
records that the two have in common. An attacker who takes the records of one release out of the other is left with those that came, or
that left. Either may be fewer than k (Ganta, Kasiviswanathan and Smith, KDD 2008; Byun, Sohn, Bertino and Li, SDM 2006).

The class of a record that is not released is -1, and it is a class as others are: that a person is missing discloses something too.

A person in both releases with a changed published value is singled out by the two files alone: one line is gone and one is new. So such a
record counts among those that left and those that came. It counts among those in both too: the values that it kept link the two lines. So
do rows in several tables that hang together otherwise.

Records of which a value changed have classes of their own, by the columns that changed. The other columns of the files stay as they were:
nine whose notes changed leave no line of sensitive values gone, and so do not hide the one who left. Nor do lines that are equal in both
files hide among these the one whose line stayed. That many changed may be known: all pay rose by two per cent, or the file was read in
another way. A change that perhaps nobody sees hides no other one, and is at risk.

Where no persons are named, a record whose quasi-identifiers change is another one: one left and one came. If one label covers both, the
files show a line as before. So it hides nobody else who left the same class: those of whom a line is gone are counted by themselves too.
If its untreated values change as well, its sensitive ones still have a line as before, so they are counted by these alone as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ARRANGEMENTS = ("arranged_values", "arranged_labels", "arranged_source", "arranged_rows")
ARRANGED_VALUES, ARRANGED_LABELS, _, ARRANGED = ARRANGEMENTS
"""Columns of persons with rows in several tables: how published values below the unit stand together, the labels there, values with the
quasi-identifiers of the source, and values with these labels."""
WITHOUT, LABELLED, SOURCED = "without", "labelled", "sourced"
"""Digests of how values stand together below the unit: of all but a column, and of a column with the labels or with the source's."""
PAIRED = "paired"
"""Digests of how the values of one column or of two stand below the unit, where there are others."""
MINE, THEIRS, JOINED = "mine", "theirs", "joined"
"""Tables of the records of this release, of the other one, and of both with their joint classes."""
SAME_LABELS = f"coalesce(m_{ARRANGED_LABELS} = t_{ARRANGED_LABELS}, false)"
"""The SQL condition that a person's labels below the unit are the same in both releases."""
ABSENT = -2
"""The class of a record that a source does not hold."""
OF_CHANGED = 2**48
"""What is added to the classes of a record in both, times a power of two for each kind of change. No release has so many classes."""
MOST_KINDS = 64
"""Kinds of changes that are told apart; those of further columns count as one."""
OF_PERHAPS_CHANGED = OF_CHANGED * 2**MOST_KINDS
"""What is added to the class of a record of which perhaps nobody sees that it changed."""


def equal_records_sql() -> str:
    """Return SQL that counts records of files that one source alone has, and those equal to the other's.

    It yields the fields of ``core.units.source_digests.Likeness`` in their order.

    It is right because GROUP BY brings each content together once, with how often either source holds it.
    """
    return f"""
        WITH both_sides AS (
            SELECT content, true AS ours FROM {MINE} WHERE NOT shared UNION ALL SELECT content, false FROM {THEIRS} WHERE NOT shared),
        counted AS (SELECT count(*) FILTER (ours) AS m, count(*) FILTER (NOT ours) AS t FROM both_sides GROUP BY content)
        SELECT coalesce(sum(m), 0)::DOUBLE, coalesce(sum(t), 0)::DOUBLE, coalesce(sum(m) FILTER (t > 0), 0)::BIGINT,
               coalesce(sum(t) FILTER (m > 0), 0)::BIGINT, coalesce(sum(m) FILTER (m > 1) / sum(m), 0)::DOUBLE,
               coalesce(sum(t) FILTER (t > 1) / sum(t), 0)::DOUBLE
        FROM counted
    """


def common_persons_sql() -> str:
    """Return SQL that counts the persons who have records in both ``mine`` and ``theirs``.

    A record of no person has the person 0.
    """
    return f"SELECT count(DISTINCT person) FROM {MINE} WHERE person <> 0 AND person IN (SELECT person FROM {THEIRS})"


def equal_record_count_sql(columns: Sequence[str], *, of_files: bool) -> str:
    """Return SQL that counts the records of ``mine`` with an equal in ``theirs``, one for each.

    It is right because GROUP BY brings equal records together once, and as many are in both as the smaller of the two counts.

    Args:
        columns: By which records are equal. Of those that are named by their person alone, records of no person have no equal.
        of_files: Whether only the records of shared files are looked at.
    """
    by = ", ".join(columns)
    known = " AND ".join(["true", *["shared"] * of_files, *["person <> 0"] * ("content" not in columns)])
    return f"""
        WITH both_sides AS (
            SELECT {by}, true AS ours FROM {MINE} WHERE {known} UNION ALL SELECT {by}, false FROM {THEIRS} WHERE {known}),
        counted AS (SELECT count(*) FILTER (ours) AS m, count(*) FILTER (NOT ours) AS t FROM both_sides GROUP BY {by})
        SELECT coalesce(sum(least(m, t)), 0)::BIGINT FROM counted
    """


class RecordMatching(NamedTuple):
    """The rule by which records of two sources are taken for the same record, and then compared.

    Records of files that both sources have are the same in any case.

    Attributes:
        contents: Whether records are the same ones that are alike in all that they are linked by.
        persons: Whether, of what is then left, two records of one person are: its other values may have changed. Of a person who is in
            both, no record is that of anybody else either, however alike.
        untreated: Whether it is compared what both publish beside labels and sensitive values.
        by_column: How many digests of single columns of that tell which of them changed; 0 if there is one of all together.
        values: How many sensitive columns there are; of those among ``same`` both releases have the values.
        same: Which of them.
        arranged: By which of ARRANGEMENTS it is compared how the values of a person stand together over tables: by none, by values alone,
            or by all.
        ways: Whether both publish what is ``untreated`` in the same ways; None where they publish it as it is. Else a change shows if the
            published value changed too, and perhaps nobody sees it where the ways differ.
        remade: Whether this one publishes other values of a sensitive column that the other publishes as it is: then contents alone show
            that a value has perhaps changed.
        apart: Digests of how single columns stand, by which kinds of changes are told apart. That anything changed, others show.
        lines: Sensitive columns in which lines of classes that belong together are equal for all that is seen; None where lines are not
            compared, because persons are named. What the two publish in different ways is not compared.
    """

    contents: bool
    persons: bool
    untreated: bool = False
    values: int = 0
    same: tuple[int, ...] = ()
    arranged: tuple[str, ...] = ()
    ways: bool | None = None
    remade: bool = False
    apart: tuple[str, ...] = ()
    lines: tuple[int, ...] | None = None
    by_column: int = 0


def joined_records_sql(identity: RecordMatching) -> str:
    """Return SQL that makes ``joined``: records of either release with their class in both, or ABSENT.

    Its columns are ``a`` and ``b``, a record's classes, ``person``, ``changed``, ``beside``, ``hidden`` (the other release has a line for
    it), ``value_0`` …, and ``their_value_0`` … of those not in ``same``. A record in both whose published values changed has a row for
    each release besides that is ``changed``. To the published classes of all its rows ``_kinds`` of the changes are added. A further record
    of a person has one that is ``beside`` and counts as no record. ``value_0`` … of a row of both are those of this release.

    It is right because a record is in just one row of ``pairs``. Records that are alike are numbered on either side, and the first of
    one is the first of the other, so that as many are in both as the smaller of the two counts. Those come first that are alike in more:
    which of them, no attacker can find out who knows no more than what they hold. Two who change places are alike in all, and everybody who
    knows them knows that each has left a class and come to another. So a person who is in both is paired with no other one.
    """
    levels = _levels(identity)
    lines = []
    steps, mine, theirs = [_kept(identity)], "kept_mine", "kept_theirs"
    for level, by in enumerate(levels):
        if by[0] in OF_LINES:
            lines.append(level)
            found = " UNION ALL ".join(f"SELECT m_class, t_class FROM pairs_{before} WHERE is_pair" for before in range(level))
            steps += _with_partners(by[0], found, mine, theirs)
            mine, theirs = f"{mine}_{by[0]}", f"{theirs}_{by[0]}"
        steps += [_numbered(side, by) for side in (mine, theirs)]
        steps.append(_paired(identity, f"pairs_{level}", f"{mine}_numbered", f"{theirs}_numbered", by))
        mine, theirs = f"left_{level}_mine", f"left_{level}_theirs"
        steps += [_left(identity, f"pairs_{level}", *sides) for sides in (("m", "t", mine), ("t", "m", theirs))]
        if level in lines and levels[level + 1][0] not in OF_LINES:
            # A pair of lines says what the files show, and not whose they are: a record alike may still be in a small joint class.
            sides = ("m", mine, f"shown_{level}_mine"), ("t", theirs, f"shown_{level}_theirs")
            shown = HIDDEN_IN_VALUES if "hidden" in by else HIDDEN_IN_ALL
            steps += [_with_hidden(identity, lines[-len(OF_LINES) :], shown, *side) for side in sides]
            (*_, mine), (*_, theirs) = sides
    rows = [f"SELECT *, false AS beside FROM pairs_{level} WHERE is_pair" for level in range(len(levels)) if level not in lines]
    alone = f"SELECT *, false AS beside FROM pairs_{len(levels) - 1} WHERE NOT is_pair"
    further = [_beside(identity, mine, f"kept_{THEIRS}", THEIRS), _beside(identity, f"kept_{MINE}", theirs, MINE)] * identity.persons
    pairs = " UNION ALL ".join([*rows, alone, *further])
    steps.append(f"compared AS ({pairs}), pairs AS ({_with_looked_up(identity)})")
    return f"CREATE OR REPLACE TEMP TABLE {JOINED} AS WITH {', '.join(steps)} {_rows(identity)}"


def _levels(identity: RecordMatching) -> list[tuple[str, ...]]:
    """Return the column sets by which records are paired in turn, strictest first.

    Records of no person are never paired by their person.
    """
    untreated, published = ("untreated",) if identity.untreated else (), ("published",) if identity.ways else ()
    values = tuple(f"value_{number}" for number in identity.same)
    alike = ("content", "kept", "whose") if identity.persons else ("content", "kept")
    levels = [(*alike, *untreated, *identity.arranged[-1:]), (*alike, *untreated), *[(*alike, *published)] * bool(published)]
    if identity.lines is not None:
        # Before those that are alike but for what is published: what is not hidden then is what the files show.
        in_one_way = identity.ways is not False and not identity.remade
        held = tuple(f"value_{number}" for number in identity.lines if in_one_way or number in identity.same)
        others = published or untreated
        whole = [(partner, "kept", *others, *held) for partner in OF_LINES] if in_one_way else []
        # After records that are alike: of these it is known whose they are.
        of_values = [(partner, "kept", "hidden", *held) for partner in OF_LINES] if held and (others or not in_one_way) else []
        return [*dict.fromkeys(levels), *whole, alike, *of_values, *[alike] * bool(of_values)]
    levels.append(alike)
    if identity.persons:
        levels += [("person", *values, *untreated), ("person", *values, *published), ("person", *values), ("person",)]
    return list(dict.fromkeys(levels))


HIDDEN_IN_ALL, HIDDEN_IN_VALUES = 1, 2
"""What is hidden of a record for which the other release has a line: all that is published, or its sensitive values alone."""
OF_LINES = ("my_class", "their_class")
"""By which class lines are compared: each class of the one release with that of the other of which it holds the most records."""


def _with_partners(partner: str, pairs: str, mine: str, theirs: str) -> list[str]:
    """Return the SQL steps that name the class of one release for the records of both; null without one.

    Where one release has coarser levels, each class of the other lies in one class of it.
    """
    own, other = ("m_class", "t_class") if partner == OF_LINES[0] else ("t_class", "m_class")
    at_home, away = (mine, theirs) if partner == OF_LINES[0] else (theirs, mine)
    most = f"row_number() OVER (PARTITION BY {other} ORDER BY count(*) DESC, {own}) = 1"
    released = f"FROM ({pairs}) WHERE m_class >= 0 AND t_class >= 0 GROUP BY m_class, t_class"
    known = f"SELECT {own} AS {partner}, {other} AS class {released} QUALIFY {most}"
    return [
        f"{at_home}_{partner} AS (SELECT *, CASE WHEN class >= 0 THEN class END AS {partner} FROM {at_home})",
        f"{away}_{partner} AS (SELECT r.*, p.{partner} FROM {away} AS r LEFT JOIN ({known}) AS p USING (class))",
    ]


def _kept(identity: RecordMatching) -> str:
    """Return SQL of both tables with ``kept`` and ``whose``, equal for records that may be paired.

    Records of shared files are compared with those alone: elsewhere an equal record is another one. ``whose`` is the person where the
    other release has records of it, else 0; it is there only where records are paired by persons.
    """
    steps = []
    for name, other, one in ((MINE, THEIRS, 1), (THEIRS, MINE, 1 if identity.contents else 2)):
        whose = f", CASE WHEN person IN (SELECT person FROM {other}) THEN person ELSE 0 END AS whose" if identity.persons else ""
        kept = f"rowid AS row, CASE WHEN shared THEN 0 ELSE {one} END AS kept, 0 AS hidden"
        steps.append(f"kept_{name} AS (SELECT *, {kept}{whose} FROM {name})")
    return ", ".join(steps)


def _numbered(side: str, by: Sequence[str]) -> str:
    return f"{side}_numbered AS (SELECT *, row_number() OVER (PARTITION BY {', '.join(by)} ORDER BY class, person) AS place FROM {side})"


def _carried(identity: RecordMatching) -> list[str]:
    return [
        "class",
        "content",
        "kept",
        "hidden",
        *["whose"] * identity.persons,
        "person",
        *_untreated(identity),
        *["row"] * bool(_looked_up(identity)),
        *identity.arranged,
        *(f"value_{number}" for number in range(identity.values)),
    ]


def _paired(identity: RecordMatching, name: str, mine: str, theirs: str, by: Sequence[str]) -> str:
    """Return the SQL step that pairs equal records of both releases, with each column once per release.

    A record without a partner has a row too, with nulls for the other release.
    """
    same = " AND ".join(f"m.{column} = t.{column}" for column in (*by, "place"))
    somebody = " AND m.person <> 0" if by[0] == "person" else ""
    both = "m.class IS NOT NULL AND t.class IS NOT NULL AS is_pair"
    return f"{name} AS MATERIALIZED (SELECT {_both_sides(identity)}, {both} FROM {mine} m FULL JOIN {theirs} t ON {same}{somebody})"


def _beside(identity: RecordMatching, mine: str, theirs: str, whole: str) -> str:
    """Return SQL that pairs persons' further records with the one record that the other release has.

    Whoever knows a person looks for any of the records among those of the class of that one.
    """
    one_each = f"(SELECT count(*) = count(DISTINCT person) FROM {whole} WHERE person <> 0)"
    same = f"m.person = t.person AND m.person <> 0 AND {one_each}"
    return f"SELECT {_both_sides(identity)}, false AS is_pair, true AS beside FROM {mine} m JOIN {theirs} t ON {same}"


def _both_sides(identity: RecordMatching) -> str:
    return ", ".join(f"{side}.{column} AS {side}_{column}" for side in ("m", "t") for column in _carried(identity))


def _with_hidden(identity: RecordMatching, lines: Sequence[int], shown: int, side: str, left: str, name: str) -> str:
    """Return the SQL step of one release's records that are left, those of pairs of lines as ``hidden``."""
    columns = _carried(identity)
    hidden = ", ".join(f"coalesce(nullif({side}_hidden, 0), {shown})" if column == "hidden" else f"{side}_{column}" for column in columns)
    each = [f"SELECT {', '.join(columns)} FROM {left}", *(f"SELECT {hidden} FROM pairs_{level} WHERE is_pair" for level in lines)]
    return f"{name} AS ({' UNION ALL '.join(each)})"


def _left(identity: RecordMatching, pairs: str, side: str, other: str, name: str) -> str:
    """Return the SQL step that selects the records of one release without a partner in the other."""
    columns = ", ".join(f"{side}_{column} AS {column}" for column in _carried(identity))
    return f"{name} AS (SELECT {columns} FROM {pairs} WHERE {other}_class IS NULL)"


def _rows(identity: RecordMatching) -> str:
    """Return SQL of the rows of the joined table.

    A pair has one row, and where its values changed two more, one per release.
    """
    rearranged, perhaps = _rearranged(identity)
    (perhaps if identity.ways is False else rearranged).extend(_republished(identity))
    perhaps += ["m_content IS DISTINCT FROM t_content"] * identity.remade
    every, others = range(identity.values), [number for number in range(identity.values) if number not in identity.same]

    def either(sides: str, number: int) -> str:
        # The first that has it. What both publish as it is nobody knows by one that leaves the record out; means are of such records too.
        same = number in identity.same
        known = (f"CASE WHEN {side}_class >= 0 OR {not same} THEN {side}_value_{number} END" for side in sides)
        return f"coalesce({', '.join(known)})"

    both, mine, theirs = (
        "".join(f", {either(sides, number)} AS value_{number}" for number in every)
        + "".join(f", {either(sides[::-1], number)} AS their_value_{number}" for number in others)
        for sides in ("mt", "mm", "tt")
    )
    # Of a value that one of both does not publish nobody sees that it changed.
    shown = "is_pair AND m_class >= 0 AND t_class >= 0"
    seen = [*_differing(identity), *rearranged]
    kinds = _kinds([*seen, *_apart(identity)])
    differing = f"CASE WHEN {shown} THEN {kinds} ELSE 0 END"
    a, b = (f"coalesce({side}, {ABSENT}) + {differing}" for side in ("m_class", "t_class"))
    hidden = "CASE WHEN is_pair THEN 0 ELSE coalesce(m_hidden, t_hidden) END AS hidden"
    joint = f"{a} AS a, {b} AS b, coalesce(m_person, t_person) AS person, false AS changed, beside, {hidden}"
    # Whose a record of either release is, both say alike, or one says nothing of it; of two who are each in one release only, this one's.
    whose, of_changed = "coalesce(m_person, t_person)", f"FROM pairs WHERE {shown} AND ({' OR '.join(['false', *seen, *perhaps])})"
    kind = f"coalesce(nullif({kinds}, 0), {OF_PERHAPS_CHANGED})"
    return f"""
        SELECT {joint}{both} FROM pairs
        UNION ALL SELECT m_class + {kind}, {ABSENT}, {whose}, true, false, m_hidden{mine} {of_changed}
        UNION ALL SELECT {ABSENT}, t_class + {kind}, {whose}, true, false, t_hidden{theirs} {of_changed}
    """


def _differing(identity: RecordMatching) -> list[str]:
    """Return SQL conditions that a sensitive value changed, one for each column that both publish."""
    return [f"m_value_{number} IS DISTINCT FROM t_value_{number}" for number in identity.same]


def _kinds(changes: Sequence[str]) -> str:
    """Return SQL of what is added to the classes of a record for its changes; 0 without any.

    Who changed in one column stays in the lines of the others. So these show who else left, or changed in them.
    """
    kinds = (OF_CHANGED * 2 ** min(kind, MOST_KINDS - 1) for kind in range(len(changes)))
    found = (f"CASE WHEN {one} THEN {kind}::HUGEINT ELSE 0 END" for one, kind in zip(changes, kinds, strict=True))
    return f"({' | '.join(['0::HUGEINT', *found])})"


def _republished(identity: RecordMatching) -> list[str]:
    """Return SQL conditions that untreated columns changed, each by itself or all together."""
    each = [f"_{number}" for number in range(identity.by_column)] or [""] * identity.untreated
    return [" AND ".join(f"m_{kind}{one} IS DISTINCT FROM t_{kind}{one}" for kind in _untreated(identity)) for one in each]


def _looked_up(identity: RecordMatching) -> list[str]:
    """Return the digests that only tell kinds of changes apart."""
    return [*(f"{kind}_{number}" for kind in _untreated(identity) for number in range(identity.by_column)), *identity.apart]


def _with_looked_up(identity: RecordMatching) -> str:
    """Return SQL of ``compared`` with digests that tell kinds of changes apart; null without changes.

    So these are read once, and of few records, and not carried along from level to level.
    """
    digests = [f"{side}.{one} AS {side}_{one}" for side in "mt" for one in _looked_up(identity)]
    if not digests:
        return "FROM compared"
    changed = " OR ".join(["m_untreated IS DISTINCT FROM t_untreated", *_differing(identity), *_rearranged(identity)[0]])
    joins = (
        f"LEFT JOIN {table} {side} ON {side}.rowid = CASE WHEN is_pair AND ({changed}) THEN {side}_row END"
        for side, table in (("m", MINE), ("t", THEIRS))
    )
    return f"SELECT compared.*, {', '.join(digests)} FROM compared {' '.join(joins)}"


def _untreated(identity: RecordMatching) -> list[str]:
    return ["untreated", *["published"] * (identity.ways is not None)]


def _apart(identity: RecordMatching) -> list[str]:
    """Return the SQL conditions by which changes that are seen are told apart by columns."""
    known = {LABELLED: f" AND {SAME_LABELS}", SOURCED: f" AND NOT {SAME_LABELS}"}
    where = ((one, known.get(one.rpartition("_")[0], "")) for one in identity.apart)
    # Of records that did not change they are null.
    return [f"(m_{one} IS DISTINCT FROM t_{one}{more})" for one, more in where]


def _rearranged(identity: RecordMatching) -> tuple[list[str], list[str]]:
    """Return SQL conditions for a pair whose values are seen, or perhaps seen, to stand otherwise.

    Labels of other levels all differ. Then values that stand otherwise in the source are perhaps seen, or other quasi-identifiers.
    """
    values, _, source, both = (f"m_{one} IS DISTINCT FROM t_{one}" for one in ARRANGEMENTS)
    found = {ARRANGED_VALUES: values, ARRANGED: f"({both} AND {SAME_LABELS})"}
    return [found[one] for one in found if one in identity.arranged], [f"({both} AND {source})"] * (ARRANGED in identity.arranged)

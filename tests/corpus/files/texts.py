"""CSV files: each type with the spellings that are taken and those that are not, and the shapes that files have."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.corpus.files.cases import Case

TAKEN: dict[str, dict[str, Any]] = {
    "integer": {
        "7": 7,
        " 7 ": 7,
        "+7": 7,
        "-7": -7,
        "007": 7,
        "20.0": 20,
        "9223372036854775807": 2**63 - 1,
        "-9223372036854775808": -(2**63),
    },
    "decimal(6,2)": {text: Decimal(text) for text in ("0.1", "-0.10", ".5", "+1.5", "1.500", "9999.99", "7", "0.00")},
    "decimal(38,0)": {text: Decimal(text) for text in ("99999999999999999999999999999999999999", "-1", "0")},
    "double": {
        text: float(text)
        for text in (
            "0.1",
            "1e300",
            "5e-324",
            "0.30000000000000004",
            "0.10000000000000001",
            "9007199254740992",
            "-1.5E-7",
            "1.",
            "inf",
            "7",
        )
    },
    "boolean": {"true": True, "FALSE": False, "t": True, "F": False, "yes": True, "No": False, "1": True, "0": False},
    "date": {
        "2024-02-29": date(2024, 2, 29),
        "2024-2-9": date(2024, 2, 9),
        "2024/02/29": date(2024, 2, 29),
        "0001-01-01": date(1, 1, 1),
        "9999-12-31": date(9999, 12, 31),
        "2024-01-02 00:00:00": date(2024, 1, 2),
        "2024-01-02T00:00": date(2024, 1, 2),
    },
    "timestamp": {
        "2024-02-29": datetime(2024, 2, 29),
        "2024-02-29T23:59:59": datetime(2024, 2, 29, 23, 59, 59),
        "0001-01-01 00:00": datetime(1, 1, 1),
        "9999-12-31 23:59:59.999999": datetime(9999, 12, 31, 23, 59, 59, 999999),
        "2024-01-02 9:05:01.5": datetime(2024, 1, 2, 9, 5, 1, 500000),
        "2024-01-02 00:00:00.123456000": datetime(2024, 1, 2, 0, 0, 0, 123456),
    },
    "timestamptz": {
        "2024-01-02T23:59:59Z": datetime(2024, 1, 2, 23, 59, 59, tzinfo=UTC),
        "2024-01-02T23:59:59+05:00": datetime(2024, 1, 2, 18, 59, 59, tzinfo=UTC),
        "2024-01-02 23:59:59-08": datetime(2024, 1, 3, 7, 59, 59, tzinfo=UTC),
        "2024-01-02 23:59:59.5+0530": datetime(2024, 1, 2, 18, 29, 59, 500000, UTC),
    },
    "text": {text: text for text in ("007", " x ", "NULL", "N/A", "1.0", "ä€😀", "a;b", "\t")},
}
"""By type, what a spelling is in Python's own reading of it."""
REFUSED: dict[str, tuple[str, ...]] = {
    "integer": ("20.4", "20.5", "1e3", "1_000", "1,000", "0x1F", "9223372036854775808", "abc", "7 7", "NaN"),
    "decimal(6,2)": ("1.005", "0.001", "10000", "1e1", "1,5", ".", "NaN", "12345.6"),
    "double": ("9007199254740993", "0.12345678901234567890", "1e400", "1e-400", "1,5", "123456789012345678", "0x1p3", "abc"),
    "boolean": ("2", "on", "truth", "-1", "1.0"),
    "date": (
        "2024-01-02 23:59:59",
        "2024-02-30",
        "02.01.2024",
        "01/02/2024",
        "20240102",
        "10000-01-01",
        "today",
        "2024-01-02Z",
        "24-01-02",
    ),
    "timestamp": (
        "2024-01-02T23:59:59Z",
        "2024-01-02 23:59:59+05:00",
        "2024-01-02 00:00:00.1234567",
        "2024-01-02 24:00:00",
        "2024-01-02 12:00:60",
        "infinity",
        "1704240000",
        "2024-01-02 12:00 PM",
    ),
    "timestamptz": ("2024-01-02T23:59:59", "2024-01-02", "2024-01-02 23:59:59 CET"),
}


def written(folder: Path, values: list[str], name: str = "in.csv", **how: Any) -> None:
    """Write a CSV file of ``h`` and ``v`` with Python's own writer."""
    pack: Callable[[bytes], bytes] = how.pop("pack", bytes)
    encoding = how.pop("encoding", "utf-8")
    text = io.StringIO(newline="")
    writer = csv.writer(text, **how)
    writer.writerow(["h", "v"])
    writer.writerows(["a", value] for value in values)
    (folder / name).write_bytes(pack(text.getvalue().encode(encoding)))


def raw(content: bytes, name: str = "in.csv") -> Callable[[Path], Any]:
    """Return what writes bytes."""
    return lambda folder: (folder / name).write_bytes(content)


def zstd(content: bytes) -> bytes:
    """Pack bytes with zstd."""
    made: bytes = pa.Codec("zstd").compress(content, asbytes=True)
    return made


def cases() -> Iterator[Case]:
    """Yield the cases of CSV."""
    for dtype, taken in TAKEN.items():
        source = {"path": "in.csv", "types": {} if dtype == "text" else {"v": dtype}}
        yield Case(f"csv {dtype} taken", partial(written, values=[*taken, ""]), source, [*taken.values(), None])
        for text in REFUSED.get(dtype, ()):
            # Beside one that is taken, so that it is the one that is refused.
            values = [next(iter(taken)), text]
            yield Case(
                f"csv {dtype} {text}",
                partial(written, values=values),
                source,
                said='1 row with a "v" not of the type that source.types gives',
            )
    texts = ["x", 'say "no"', "a,b", "two\nlines", "ä", " "]
    for name, how in {
        "quotes": {},
        "semicolons": {"delimiter": ";"},
        "tabs": {"delimiter": "\t"},
        "bars": {"delimiter": "|"},
        "unix": {"lineterminator": "\n"},
        "all quoted": {"quoting": csv.QUOTE_ALL},
        "a mark": {"encoding": "utf-8-sig"},
    }.items():
        source = {"path": "in.csv", "delimiter": how.get("delimiter", ",")}
        yield Case(f"csv {name}", partial(written, values=texts, **how), source, texts)
    yield Case("csv gzip", partial(written, values=texts, name="in.csv.gz", pack=gzip.compress), {"path": "in.csv.gz"}, texts)
    yield Case("csv zstd", partial(written, values=texts, name="in.csv.zst", pack=zstd), {"path": "in.csv.zst"}, texts)
    yield Case("csv two gzips", raw(gzip.compress(b"h,v\na,1\n") + gzip.compress(b"a,2\n"), "in.csv.gz"), {"path": "in.csv.gz"}, ["1", "2"])
    yield Case("csv nulls of the job", raw(b"h,v\na,NA\na,\na,-\n"), {"path": "in.csv", "null_values": ["NA", "-"]}, [None, "", None])
    yield Case("csv without its last line end", raw(b"h,v\na,1\na,2"), {"path": "in.csv"}, ["1", "2"])
    broken = {
        "latin": (b"h,v\na,\xe4\n", "is not text in utf-8"),
        "utf-16": ("h,v\na,x\n".encode("utf-16"), ""),
        "too few": (b"h,v\na,1\na\n", "too few fields"),
        "too many": (b"h,v\na,1\na,2,3\na,1\na,1\n", "too many fields"),
        "an open quote": (b'h,v\na,"1\na,2\n', "quote"),
        "no header": (b"a,1\na,2\n", "names no column of the job"),
        "a title": (b"# export\nh,v\na,1\na,2\n", "names no column of the job"),
        "sep=": (b"sep=;\nh;v\na;1\n", "sep="),
        "nothing": (b"", "first line"),
        "another delimiter": (b"h;v\na;1\n", "source.delimiter"),
        "names twice": (b"h,v,v\na,1,2\n", "each once"),
    }
    for name, (content, said) in broken.items():
        yield Case(f"csv {name}", raw(content), {"path": "in.csv"}, said=said)
    yield Case(
        "csv cut gzip", raw(gzip.compress(b"h,v\n" + b"a,1\n" * 1000)[:-9], "in.csv.gz"), {"path": "in.csv.gz"}, said="cannot be read"
    )

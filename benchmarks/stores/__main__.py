"""The cost of s3fs and obstore for the work of a run in a bucket.

Each runs in a process of its own over the S3 server of the tests.

``python -m benchmarks.stores`` (pip install obstore for the second column). The server is written in Python and takes most of the wall time
of small objects; what a library costs is the CPU time of its process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.servers import s3

SMALL, TIMES, LARGE = 4_000, 200, 256_000_000
KINDS = ("s3fs", "obstore")


def main() -> None:
    """Measure each library and print a table."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    with s3() as environment:
        for kind in KINDS:
            if find_spec(kind) is None:
                print(f"{kind} is not installed")
                continue
            command = [sys.executable, "-m", "benchmarks.stores", kind]
            # boto's way to name an end point without TLS is obstore's too, but for this.
            done = subprocess.run(command, env=os.environ | environment | {"AWS_ALLOW_HTTP": "true"}, stdout=subprocess.PIPE, check=True)
            found[kind] = json.loads(done.stdout)
    print(f"{'':<34}" + "".join(f"{kind:>12} CPU{'wall':>9}" for kind in found))
    for what in next(iter(found.values())):
        print(f"{what:<34}" + "".join(f"{found[kind][what][0]:>16,.2f}{found[kind][what][1]:>9,.2f}" for kind in found))


def measured(work: Callable[[], object], times: int) -> tuple[float, float]:
    """Return CPU and wall time of a call, in ms."""
    before, begun = cpu(), time.perf_counter()
    for _ in range(times):
        work()
    return (cpu() - before) * 1000 / times, (time.perf_counter() - begun) * 1000 / times


def cpu() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(kind: str, folder: Path) -> dict[str, tuple[float, float]]:
    """Measure one library, its import included."""
    large, back = folder / "large", folder / "back"
    large.write_bytes(os.urandom(LARGE))
    numbers = iter(range(1_000_000))
    before, begun = cpu(), time.perf_counter()
    works = (of_s3fs if kind == "s3fs" else of_obstore)(large, back, numbers.__next__)
    found = {"import and first answer, ms": ((cpu() - before) * 1000, (time.perf_counter() - begun) * 1000)}
    for what, work in works.items():
        found[f"{what}, ms"] = measured(work, 1 if "256 MB" in what else TIMES)
    assert back.read_bytes() == large.read_bytes()
    return found | {"peak memory, MB": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, 0.0)}


def of_s3fs(large: Path, back: Path, number: Callable[[], int]) -> dict[str, Callable[[], object]]:
    """What work in a bucket does, by s3fs."""
    import fsspec

    system, content = fsspec.filesystem("s3", use_listings_cache=False), os.urandom(SMALL)
    system.mkdir("s3fs")
    system.pipe_file("s3fs/lease", content)
    return {
        "look at an object": lambda: system.info("s3fs/lease"),
        "read 4 kB": lambda: system.cat_file("s3fs/lease"),
        "put 4 kB if absent": lambda: system.pipe_file(f"s3fs/{number()}", content, mode="create"),
        "put 4 kB if unchanged": lambda: system.pipe_file("s3fs/lease", content, IfMatch=system.info("s3fs/lease")["ETag"]),
        "put 256 MB if absent": lambda: system.put_file(str(large), "s3fs/large", mode="create"),
        "get 256 MB": lambda: system.get_file("s3fs/large", str(back)),
    }


def of_obstore(large: Path, back: Path, number: Callable[[], int]) -> dict[str, Callable[[], object]]:
    """What work in a bucket does, by obstore; buckets are made with other tools."""
    import boto3  # type: ignore[import-untyped]
    import obstore  # type: ignore[import-not-found]
    from obstore.store import S3Store  # type: ignore[import-not-found]

    boto3.client("s3").create_bucket(Bucket="obstore")
    store, content = S3Store("obstore"), os.urandom(SMALL)
    obstore.put(store, "lease", content)

    def get() -> None:
        with back.open("wb") as file:
            for block in obstore.get(store, "large"):
                file.write(block)

    return {
        "look at an object": lambda: obstore.head(store, "lease"),
        "read 4 kB": lambda: obstore.get(store, "lease").bytes(),
        "put 4 kB if absent": lambda: obstore.put(store, f"{number()}", content, mode="create"),
        "put 4 kB if unchanged": lambda: obstore.put(store, "lease", content, mode={"e_tag": obstore.head(store, "lease")["e_tag"]}),
        # Its uploads in parts know no condition.
        "put 256 MB if absent": lambda: obstore.put(store, "large", large, mode="create", use_multipart=False),
        "get 256 MB": get,
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with TemporaryDirectory() as temporary:
            sys.stdout.write(json.dumps(measure(sys.argv[1], Path(temporary))))
    else:
        main()

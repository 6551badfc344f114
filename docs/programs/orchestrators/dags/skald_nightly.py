import json
import os
import subprocess
from datetime import datetime, timedelta

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException

SKALD, JOB = os.environ.get("SKALD", "/opt/skald/bin/skald"), os.environ.get("SKALD_JOB", "/srv/jobs/medical.yaml")


@dag(schedule="0 3 * * *", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1)
def skald_nightly():
    @task(retries=3, retry_delay=timedelta(minutes=10))
    def release() -> dict:
        done = subprocess.run([SKALD, "run", JOB, "--json", "--direct"], capture_output=True, text=True)
        print(done.stderr)
        if done.returncode in {2, 3, 4}:
            raise AirflowFailException(f"exit code {done.returncode}")
        done.check_returncode()
        manifest = json.loads(done.stdout)
        return {key: manifest[key] for key in ("release", "records", "released", "suppressed", "min_class", "optimal")}

    @task
    def tell(made: dict) -> None:
        print(f"{made['release']}: {made['released']} of {made['records']} records, the smallest class has {made['min_class']}")

    tell(release())


skald_nightly()

import json
import os
import subprocess

from dagster import AssetExecutionContext, Backoff, Failure, MaterializeResult, RetryPolicy, asset

SKALD, JOB = os.environ.get("SKALD", "/opt/skald/bin/skald"), os.environ.get("SKALD_JOB", "/srv/jobs/medical.yaml")


@asset(retry_policy=RetryPolicy(max_retries=3, delay=1, backoff=Backoff.EXPONENTIAL))
def anonymised_patients(context: AssetExecutionContext) -> MaterializeResult:
    """Patients in classes of k or more, verified."""
    done = subprocess.run([SKALD, "run", JOB, "--json", "--direct"], capture_output=True, text=True)
    context.log.info(done.stderr)
    if done.returncode in {2, 3, 4}:
        raise Failure(f"exit code {done.returncode}: {done.stderr.strip()}", allow_retries=False)
    done.check_returncode()
    manifest = json.loads(done.stdout)
    told = ("release", "records", "released", "suppressed", "classes", "min_class", "optimal")
    return MaterializeResult(metadata={key: manifest[key] for key in told} | {"gcp": manifest["loss"]["gcp"]})

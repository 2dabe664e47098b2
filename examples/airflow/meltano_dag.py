"""A Meltano pipeline in Airflow, with its state in ClickHouse.

MELTANO_STATE_BACKEND_URI and MELTANO_STATE_BACKEND_CLICKHOUSE_PASSWORD belong
into the worker's environment or a secrets backend, not into the DAG.
"""

import datetime as dt

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

STATE_ID = "prod:tap-github-to-target-postgres"

with DAG(
    dag_id="github_to_postgres",
    schedule=dt.timedelta(hours=1),
    start_date=dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc),
    catchup=False,
    max_active_runs=1,
) as dag:
    run = BashOperator(
        task_id="run",
        cwd="/opt/meltano/project",
        # The whole-run lock also excludes whoever runs the pipeline by hand.
        # Its exit code 75 (not obtained) marks the task as skipped.
        bash_command=(
            f"chstate lock run {STATE_ID} --wait 30s -- meltano --environment=prod run tap-github target-postgres"
        ),
        skip_on_exit_code=75,
    )
    # Late bookmarks fail this task, and with it whatever alerts on failed tasks.
    check = BashOperator(
        task_id="check",
        cwd="/opt/meltano/project",
        bash_command=f"chstate check --max-age 26h --pattern '{STATE_ID}'",
        trigger_rule="all_done",
    )
    run >> check

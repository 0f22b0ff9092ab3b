"""The same jobs on the workers of an existing dask cluster.

    python -m course_build.run --dask tcp://scheduler:8786

The bytes of each notebook go out; the bytes of its executed copy and what `Outcome` holds come
back and are written here. Each worker process keeps one crew, whose preloaded processes start once
and end with the run or the worker. dask decides where and when a notebook runs; one whose worker
dies runs again elsewhere, and after `distributed.scheduler.allowed-failures` tries it is broken.

distributed's own protocol carries pickles between the machines of one cluster: join only clusters
that you trust. No pickle is read from a notebook or from its outputs. The workers need this
repository on their path, and its requirements.
"""

import contextlib
import importlib
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course_build.run.notebook_file import read_file
from course_build.run.one import Crew
from course_build.run.outcome import Failure, Job, Limits, Outcome, Plan
from course_build.run.pool import Interrupted
from course_build.run.writing import write_whole

CREW = "course-crew"  # the name of the workers' plugin


class ClusterError(Exception):
    """The cluster cannot be used; the message says why."""


class CrewOfWorker:
    """A worker's plugin: holds the crew that runs the notebooks of one run there."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan

    def setup(self, worker: Any) -> None:
        """Start the preloaded processes; dask calls this when the worker joins."""
        plan = Plan(**self.plan | {"limits": Limits(**self.plan["limits"])})
        self.stop = threading.Event()
        self.crew = Crew(plan).__enter__()

    def teardown(self, worker: Any) -> None:
        """End all that runs; dask calls this when the run or the worker ends."""
        self.stop.set()
        self.crew.__exit__(None, None, None)


def run_here(name: str, edition: str, language: str, content: bytes) -> tuple[dict, bytes | None]:
    """Run one notebook on a worker; return what `Outcome` holds and the executed copy's bytes."""
    held = importlib.import_module("distributed").get_worker().plugins[CREW]
    with tempfile.TemporaryDirectory(prefix="course-") as folder:
        notebook = Path(folder) / language / f"{name}.ipynb"
        write_whole(notebook, content)
        executed = Path(folder) / "executed" / f"{name}.ipynb"
        outcome = held.crew.run(Job(notebook, edition, language, executed), held.stop)
        copy = executed.read_bytes() if executed.exists() else None
    told = asdict(outcome)
    del told["job"]
    return told, copy


@contextlib.contextmanager
def _connected(address: str, plan: Plan) -> Iterator[Any]:
    """Give a client of the cluster whose workers hold a crew; ClusterError in a sentence."""
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise ClusterError("--dask needs distributed: pip install distributed") from None
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise ClusterError(f"no dask scheduler answers at {address}: {error}") from None
    plugin = type("Plugin", (CrewOfWorker, distributed.WorkerPlugin), {})(asdict(plan))
    with client:
        client.register_plugin(plugin, name=CREW)
        try:
            yield client
        finally:
            client.unregister_worker_plugin(CREW)


def run_on_dask(
    address: str,
    jobs: list[Job],
    plan: Plan | None = None,
    tell: Callable[[Outcome], None] = lambda _: None,
    begin: Callable[[Job], None] = lambda _: None,
) -> list[Outcome]:
    """Run notebooks on the cluster at an address, as `run_jobs` runs them on this machine.

    `begin` hears of nothing: the cluster does not say when a notebook starts. Ctrl-C ends what
    runs and raises Interrupted. Raises ClusterError when there is no such cluster.
    """
    plan = plan or Plan()
    outcomes: dict[Job, Outcome] = {}
    limit = plan.total_limit
    with _connected(address, plan) as client:
        futures = {}
        try:
            for place, job in enumerate(jobs):
                try:
                    sent = (job.name, job.edition, job.language, read_file(job.notebook))
                except OSError as error:
                    reason = f"the file cannot be read: {error.strerror or error}"
                    outcomes[job] = Outcome(job, "failed", 0.0, failure=Failure(reason))
                    tell(outcomes[job])
                else:
                    futures[client.submit(run_here, *sent, pure=False, priority=-place)] = job
            as_completed = importlib.import_module("distributed").as_completed
            for future in as_completed(list(futures), timeout=limit):
                outcomes[futures[future]] = _receive(futures[future], future)
                tell(outcomes[futures[future]])
        except TimeoutError:
            client.cancel(list(futures))
        except KeyboardInterrupt as cause:
            client.cancel(list(futures))
            raise Interrupted(_in_order(jobs, outcomes), cause) from None
    return _in_order(jobs, outcomes)


def _in_order(jobs: list[Job], outcomes: dict[Job, Outcome]) -> list[Outcome]:
    early = Failure("the run ended before this notebook had ended on the cluster")
    return [outcomes.get(job, Outcome(job, "not run", 0.0, failure=early)) for job in jobs]


def _receive(job: Job, future: Any) -> Outcome:
    """Put the executed copy in place and return the outcome; broken when the cluster lost it."""
    if future.status != "finished":
        error = future.exception() if future.status == "error" else future.status
        reason = f"the cluster lost this notebook: {type(error).__name__}: {error}"
        return Outcome(job, "broken", 0.0, failure=Failure(reason))
    told, copy = future.result()
    failure = told.pop("failure")
    try:
        job.executed.unlink(missing_ok=True)
        if copy is not None:
            write_whole(job.executed, copy)
    except OSError as error:
        return Outcome(job, "broken", 0.0, failure=Failure(str(error)))
    return Outcome(job, **told, failure=Failure(**failure) if failure else None)

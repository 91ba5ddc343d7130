"""A batch job: plan the input, rewrite what is missing, check that no row was lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from teo.cores import available_cores
from teo.decision import choose_threshold
from teo.errors import InputError, TeoError
from teo.loading import Model, is_exported, locate, open_model
from teo.pipelines import PIPELINES, choose_pipeline, find_variant, require_one_text
from teo.scale.engines import ray_cluster, run_local, run_ray
from teo.scale.guards import hold_lock, refuse_overlap
from teo.scale.inputs import Plan, plan_input
from teo.scale.manifest import FORMAT_VERSION, State, describe_plan
from teo.scale.output import Output
from teo.scale.parts import Done, Part
from teo.scale.rows import require_parquet_columns
from teo.scale.stores import open_store
from teo.scale.worker import BatchTask, Report, describe_failure
from teo.version import __version__

Engine = Literal["local", "ray"]


@dataclass(frozen=True, slots=True)
class Job:
    """The settings of a batch job; `task.output` is what the user named, a folder or a file."""

    task: BatchTask
    engine: Engine = "local"
    processes: int | None = None
    """Number of processes; None: one per core, one in all on a GPU, or all that fit on a Ray cluster."""
    address: str | None = None
    """A Ray cluster to use; None: one is started here."""
    part_rows: int | None = None
    """Rows per part: at most what a killed job repeats, and the window in which rows are sorted. None: as many as the
    number of rows asks for."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The counts of all rows, including those of earlier runs of the job."""

    rows: int = 0
    errors: int = 0
    changed: int = 0
    repeated: int = 0
    fault: str = ""
    """The first bad row and what is wrong with it."""

    @classmethod
    def of(cls, done: Sequence[Done]) -> Totals:
        """Return the sums over parts."""
        sums = {name: sum(getattr(part, name) for part in done) for name in ("rows", "errors", "changed", "repeated")}
        fault = next((part.fault for part in sorted(done, key=lambda part: part.number) if part.fault), "")
        return cls(**sums, fault=fault)


@dataclass(slots=True)
class JobProgress:
    """The progress of a job; rows of earlier runs are counted apart, since they took no time in this one."""

    rows: int
    processes: int = 1
    before: int = 0
    done: int = 0
    errors: int = 0
    busy: float = 0.0
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None

    def add(self, done: Done, seconds: float) -> None:
        """Count a part and the seconds that it took its process."""
        self.done += done.rows
        self.errors += done.errors
        self.busy += seconds

    @property
    def seconds(self) -> float:
        """Seconds that the rewriting took, until now or until its end."""
        return max((self.ended or time.monotonic()) - self.started, 1e-9)

    @property
    def rate(self) -> float:
        """Rows per second in this run."""
        return self.done / self.seconds

    @property
    def left(self) -> float | None:
        """Seconds left at this rate; None if nothing is done yet."""
        return (self.rows - self.before - self.done) / self.rate if self.done else None

    @property
    def idle(self) -> float:
        """The share of the processes' time in which they had no part to work on, loading among it."""
        return max(0.0, 1.0 - self.busy / (self.processes * self.seconds))


class StoppedError(TeoError):
    """A job that stopped early. It can be resumed, unless the user's mistake (status 2) would stop it again."""

    def __init__(self, reason: str, done: int, parts: int, status: int) -> None:
        resume = f"; {done} of {parts} parts are done: to resume, run the same command again"
        super().__init__(reason if status == InputError.exit_code else reason + resume)
        self.exit_code = status


def run_job(job: Job, listen: Callable[[JobProgress], None] = lambda progress: None) -> tuple[Totals, JobProgress]:
    """Return the totals of a finished job and the progress of this run; parts of earlier runs are not repeated.

    `listen` is called when the rewriting begins and after each part.
    """
    model = open_task_model(job.task)
    require_options(job.task, model)
    plan = plan_input(job.task.input, job.part_rows, 2 * job.task.model.batch_size)
    output = Output.of(job.task.output, plan)
    refuse_overlap(job.task.input, output, plan)
    task = replace(
        job.task, output=output.folder, format=plan.format, model=replace(job.task.model, runtime=model.runtime)
    )
    if plan.format == "parquet":
        require_parquet_columns(open_store(job.task.input)[0], plan.parts, job.task.columns)
    store, path = open_store(output.folder)
    with hold_lock(store, path):
        return _run(job, task, make_manifest(job, model, plan), plan, output, listen)


def _run(
    job: Job,
    task: BatchTask,
    manifest: Mapping[str, Any],
    plan: Plan,
    output: Output,
    listen: Callable[[JobProgress], None],
) -> tuple[Totals, JobProgress]:
    state = State(*open_store(output.folder), plan.format)
    output.require_free(state)
    end = state.begin(manifest)
    if end is not None and output.file:
        output.require_there(end.get("joined"))
        return Totals(**end["totals"]), JobProgress(plan.rows, before=plan.rows)
    done = state.done(plan.parts)
    if end is not None and len(done) == len(plan.parts):
        return Totals(**end["totals"]), JobProgress(plan.rows, before=plan.rows)
    progress = JobProgress(plan.rows, before=Totals.of(list(done.values())).rows)
    missing = [part for part in plan.parts if part.number not in done]
    try:
        with _engine(job, task, missing) as (processes, reports):
            progress.processes, progress.started = processes, time.monotonic()
            listen(progress)
            for report in reports:
                if report.done is None:
                    raise StoppedError(report.failure, len(done), len(plan.parts), report.status)
                done[report.number] = report.done
                progress.add(report.done, report.seconds)
                listen(progress)
            progress.ended = time.monotonic()
    except TeoError as error:
        if not done and error.exit_code == InputError.exit_code:
            state.abandon()
        raise
    state.check(missing, done)
    if missing:
        _require_unchanged(job, plan)
    totals = Totals.of([done[part.number] for part in plan.parts])
    if totals.rows != plan.rows:
        raise TeoError(f"{output.folder}: expected {plan.rows} rows, found {totals.rows}; this is a defect of teo")
    try:
        joined = output.join([state.path(part) for part in plan.parts])
        state.finish(manifest, {"totals": asdict(totals), **joined})
    except (OSError, InputError) as error:
        message, status = describe_failure(error)
        raise StoppedError(message, len(done), len(plan.parts), status) from error
    state.clean_up(plan.parts if output.file else ())
    return totals, progress


def _require_unchanged(job: Job, plan: Plan) -> None:
    """Raise if the input is not what was planned any more: nobody knows which of it the parts were made of."""
    if describe_plan(plan_input(job.task.input, job.part_rows, 2 * job.task.model.batch_size)) != describe_plan(plan):
        raise InputError(f"{job.task.input}: expected files that stay as they are, found them changed; start anew")


@contextmanager
def _engine(job: Job, task: BatchTask, parts: Sequence[Part]) -> Iterator[tuple[int, Iterable[Report]]]:
    """Give the number of processes and the reports of the parts as they come."""
    if not parts:
        yield 1, ()
    elif job.engine == "ray":
        with ray_cluster(task, job.processes, job.address) as actors:
            yield actors, run_ray(task, parts, actors)
    else:
        own = 1 if task.model.device != "cpu" else max(1, available_cores() // task.model.threads)
        processes = min(job.processes or own, len(parts))
        with closing(run_local(task, parts, processes)) as reports:
            yield processes, reports


def open_task_model(task: BatchTask) -> Model:
    """Return the model of a task, its weights not loaded yet; a GPU needs one that was not exported."""
    choice = task.model
    try:
        return open_model(choice.model, runtime=choice.runtime, device=choice.device, bf16=choice.bf16)
    except InputError as error:
        on_gpu = choice.device != "cpu" or choice.bf16
        if not on_gpu or not is_exported(locate(choice.model)):
            raise
        raise InputError(
            f"{error}; a GPU runs the torch weights of a trained folder: give the folder that training wrote with "
            "--model (the embedded model has none)"
        ) from error


def require_options(task: BatchTask, model: Model) -> None:
    """Raise for options that every call of the rewriter would refuse, before anything is written."""
    choose_threshold(task.min_confidence, task.prefer)
    pipeline = choose_pipeline(task.model.variant or model.folder.variant, model.folder.roles, str(model.path))
    if task.n_best > 1:
        require_one_text(pipeline)


def make_manifest(job: Job, model: Model, plan: Plan) -> dict[str, Any]:
    """Return what decides the output of a job: its model, its settings, its input; not how it is run."""
    task, choice = job.task, job.task.model
    variant = find_variant(choice.variant or model.folder.variant, PIPELINES)
    return {
        "manifest": FORMAT_VERSION,
        "teo": __version__,
        "model": {
            "name": model.name,
            "fingerprint": model.fingerprint(variant.roles(model.folder.roles)),
            "variant": variant.name,
            "runtime": model.runtime,
            "device": choice.device,
            "precision": model.precision,
        },
        "settings": {
            **task.options,
            "columns": {name: getattr(task.columns, name) for name in ("history", "utterance", "messages", "id")},
            "keep": list(choice.keep),
            "batch_size": choice.batch_size,
            "part_rows": plan.part_rows,
        },
        "input": describe_plan(plan),
    }

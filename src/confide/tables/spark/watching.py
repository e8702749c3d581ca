"""How far a Spark job is: its tasks that are done, of those that are known."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from confide.tables.spark.connect import is_connect

_GROUP = "spark.jobGroup.id"
_SECONDS = 0.5


@contextmanager
def watched(session: Any, progress: Any) -> Iterator[None]:
    """Tell `progress.share(done, total)`, if there is such a method, twice a second while jobs of the block run.

    Spark learns of later stages as it goes, so the total can grow; the share that is told never falls.

    Parameters
    ----------
    session
        A `pyspark.sql.SparkSession`.
    progress
        A `Progress`.
    """
    tell = getattr(progress, "share", None)
    if tell is None:
        yield
        return
    if is_connect(session):
        with _told_by_server(session, tell):
            yield
        return
    context, group, done = session.sparkContext, f"confide-{uuid4().hex}", threading.Event()
    before = context.getLocalProperty(_GROUP)
    context.setLocalProperty(_GROUP, group)

    def watch() -> None:
        reached, of = 0, 1
        while not done.wait(_SECONDS):
            try:
                now, total = tasks(context.statusTracker(), group)
            except Exception:
                return  # what went wrong is the job's to say
            if total and now * of >= reached * total:
                reached, of = now, total
                tell(now, total)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        context.setLocalProperty(_GROUP, before)


@contextmanager
def _told_by_server(session: Any, tell: Any) -> Iterator[None]:
    """Over Spark Connect the server tells; of an older one nothing is heard."""

    def heard(stages: Any, **_: Any) -> None:
        known = list(stages or ())
        if total := sum(stage.num_tasks for stage in known):
            tell(sum(stage.num_completed_tasks for stage in known), total)

    if not hasattr(session, "registerProgressHandler"):
        yield
        return
    session.registerProgressHandler(heard)
    try:
        yield
    finally:
        session.removeProgressHandler(heard)


def tasks(tracker: Any, group: str) -> tuple[int, int]:
    """Tasks that are done, and all that are known, of the jobs of a group.

    Parameters
    ----------
    tracker
        A `pyspark.StatusTracker`.
    group
        The jobs' group.
    """
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    known = [info for stage in stages if (info := tracker.getStageInfo(stage)) is not None]
    return sum(info.numCompletedTasks for info in known), sum(info.numTasks for info in known)

"""Federated calibration over NVIDIA FLARE: `SiloExecutor` in a site, `PlanController` at the server, `write_job`.

Needs `pip install confide[nvflare]` at the server and in every site. The job contains a signed plan and nothing else.
The site's own `local/confide.json` names the folder of scores, keys, policy and ledger. If something fails in a site,
only a code of `confide.federated.refusals` is sent. FLARE sends its own log files to the server, so the reasons are
written to `local/confide.log`, which it does not send.
"""

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.errors import ConfideError, InputError
from confide.federated.envelope import parse
from confide.federated.keys import SiloKeys
from confide.federated.remote import Failure, Reply, Request, Round, both_rounds, released, serve
from confide.federated.remote import SiloSetup as SiloSetup
from confide.federated.several_plans import read_plan
from confide.support import needs_extra, positive_integer, read_text

if TYPE_CHECKING:
    from nvflare.apis.controller_spec import ClientTask
    from nvflare.apis.fl_context import FLContext
    from nvflare.apis.shareable import Shareable
    from nvflare.apis.signal import Signal

try:
    from nvflare.apis.executor import Executor
    from nvflare.apis.impl.controller import Controller
except ModuleNotFoundError:  # the classes can be inspected; making an instance raises an error
    Executor = Controller = object

TASK = "confide"
OPEN = "confide_open"
SITE, LOG, PLAN = "confide.json", "confide.log", "plan.json"
"""Names of the site's configuration and of its log, both in its folder `local`, and of the plan in the job."""

__all__ = [
    "OPEN", "TASK", "ControllerCourier", "PlanController", "SiloExecutor", "coordinator_keys", "silo_folder",
    "site_log", "write_job",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


def write_job(
    folder: str | Path, plan: str, *, out: str = "released.json", timeout: int = 600, clients: int = 1
) -> Path:
    """Write a job with a signed plan, for `nvflare job submit -j` or `nvflare simulator`.

    Parameters
    ----------
    folder
        A new folder, whose name becomes the job's name.
    plan
        The signed plan, or several plans under one signature.
    out
        Name of the calibration's file in the server's run folder and in the job's result.
    timeout
        Seconds to wait for the sites.
    clients
        Least number of sites that FLARE needs to start the job.

    Returns
    -------
    Path
        The folder.
    """
    read_plan(plan)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", out):
        raise InputError("out", "must be the name of a file, not a path", got=repr(out))
    folder = Path(folder)
    config = folder / "app" / "config"
    config.mkdir(parents=True)
    controller = {"out": out, "timeout": positive_integer("timeout", timeout)}
    contents: dict[Path, dict[str, Any]] = {
        folder / "meta.json": {
            "name": folder.name,
            "resource_spec": {},
            "min_clients": positive_integer("clients", clients),
            "deploy_map": {"app": ["@ALL"]},
        },
        config / "config_fed_server.json": {
            "format_version": 2,
            "workflows": [{"id": TASK, "path": f"{__name__}.PlanController", "args": controller}],
        },
        config / "config_fed_client.json": {
            "format_version": 2,
            "executors": [{"tasks": [TASK, OPEN], "executor": {"path": f"{__name__}.SiloExecutor", "args": {}}}],
        },
    }
    for path, content in contents.items():
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (config / PLAN).write_text(plan, encoding="utf-8")
    return folder


def silo_folder(local: str | Path, site: str) -> Path:
    """The folder of a site's scores, keys, policy and ledger, which no job can choose.

    Parameters
    ----------
    local
        The site's own FLARE folder `local`, with `{"folder": "/its/folder"}` in its `confide.json`. In a simulation all
        sites have the same file, and `{site}` in it stands for the name of each.
    site
        The site's name.

    Raises
    ------
    InputError
        If the file does not exist or does not name a folder.
    """
    if (named := _named(local, "folder")) is None:
        raise InputError("folder", f"local/{SITE} names no folder", remedy='Write {"folder": "/its/folder"} to it')
    return Path(named.replace("{site}", site))


def coordinator_keys(local: str | Path) -> Path | None:
    """The file of the coordinator's keys, if the server's own `local/confide.json` has `{"keys": "/its/keys.json"}`.

    The keys sign the release and, for a secure sum with dropouts, the list of answers. Other plans need no keys at the
    server.
    """
    named = _named(local, "keys") if (Path(local) / SITE).exists() else None
    return None if named is None else Path(named)


def _named(local: str | Path, what: str) -> str | None:
    named = parse(read_text(Path(local) / SITE), SITE).get(what)
    return named if isinstance(named, str) else None


class SiloExecutor(Executor):  # type: ignore[misc]
    """The executor that answers plans in a site. Override `setup` if scores do not come from a file."""

    def __init__(self) -> None:
        _needed()
        super().__init__()

    def setup(self, context: "FLContext") -> SiloSetup:
        """The site's setup, from the folder that its own `local/confide.json` names."""
        return SiloSetup.load(silo_folder(_local(context), context.get_identity_name()))

    def execute(
        self, task_name: str, shareable: "Shareable", fl_ctx: "FLContext", abort_signal: "Signal"
    ) -> "Shareable":
        """FLARE's entry point: the answer to the plan, or a code."""
        from nvflare.apis.fl_constant import ReturnCode
        from nvflare.apis.shareable import Shareable, make_reply

        if task_name not in (TASK, OPEN):
            return make_reply(ReturnCode.TASK_UNKNOWN)
        with site_log(_local(fl_ctx)) as log:
            return Shareable(dict(serve(shareable, lambda: self.setup(fl_ctx), log)))


class PlanController(Controller):  # type: ignore[misc]
    """The controller that sends the plan to every site once and aggregates the answers; `write_job` makes its job.

    Parameters
    ----------
    out
        Name of the calibration's file in the server's run folder.
    timeout
        Seconds to wait for the sites.
    """

    def __init__(self, out: str = "released.json", timeout: int = 600) -> None:
        _needed()
        super().__init__()
        self.out, self.timeout = out, timeout

    def start_controller(self, fl_ctx: "FLContext") -> None:
        """No preparation required."""

    def stop_controller(self, fl_ctx: "FLContext") -> None:
        """No cleanup required."""

    def process_result_of_unknown_task(self, *_: Any) -> None:
        """Drop late or unknown replies."""

    def control_flow(self, abort_signal: "Signal", fl_ctx: "FLContext") -> None:
        """FLARE's entry point: one round; the calibration in the run folder, or an error with the missing silos."""
        workspace, job = fl_ctx.get_workspace(), fl_ctx.get_job_id()
        plan = read_text(Path(workspace.get_app_config_dir(job)) / PLAN)
        try:
            asked = self.ask(plan, fl_ctx, abort_signal)
            found = released(plan, asked, self.keys(fl_ctx))
        except _AbortedError:
            return
        except ConfideError as error:  # missing silos or keys
            self.system_panic(str(error), fl_ctx)
            return
        path = Path(workspace.get_run_dir(job)) / self.out
        path.write_text(found.to_json(), encoding="utf-8")
        self.log_info(fl_ctx, f"{found}\n{asked}\nreleased: {path}")

    def keys(self, fl_ctx: "FLContext") -> SiloKeys | None:
        """The coordinator's keys, if the server's own `local/confide.json` names their file."""
        path = coordinator_keys(_local(fl_ctx))
        return None if path is None else SiloKeys.load(path)

    def ask(self, plan: str, fl_ctx: "FLContext", abort_signal: "Signal") -> Round:
        """Send a signed plan to all sites once and wait for their answers, and for their parts of a secure sum."""
        sites = [client.name for client in fl_ctx.get_engine().get_clients()]
        path = coordinator_keys(_local(fl_ctx))
        keep = None if path is None else path.with_name(f"{read_plan(plan)[0].session}-list.json")
        return both_rounds(ControllerCourier(self, fl_ctx, abort_signal), sites, plan, self.keys(fl_ctx), keep)


class _AbortedError(Exception):
    """FLARE aborts the job: no further request is sent, and no list of the present answers is kept."""


@dataclass(frozen=True)
class ControllerCourier:
    """A courier over tasks of a FLARE controller, for `confide.federated.remote.run`. Nodes are sites, by their names.

    Parameters
    ----------
    controller
        The controller, whose `timeout` applies to every task.
    context, abort_signal
        FLARE's arguments of its `control_flow`.
    """

    controller: PlanController
    context: "FLContext"
    abort_signal: "Signal"

    def ask(self, requests: Mapping[str, Request]) -> list[tuple[str, Reply | Failure]]:
        """Send every site its task, and wait until FLARE has completed or ended all tasks."""
        from nvflare.apis.controller_spec import Task
        from nvflare.apis.fl_constant import ReturnCode
        from nvflare.apis.shareable import Shareable

        found: list[tuple[str, Reply | Failure]] = []

        def received(client_task: "ClientTask", fl_ctx: "FLContext") -> None:
            result, reply = client_task.result, Failure("no reply")
            if isinstance(result, Shareable):
                code = result.get_return_code()
                reply = result if code == ReturnCode.OK else Failure(str(code))
            found.append((client_task.client.name, reply))
            client_task.result = None

        tasks = []
        for site, request in requests.items():
            name, timeout = OPEN if "openings" in request else TASK, self.controller.timeout
            task = Task(name, Shareable(dict(request)), timeout=timeout, result_received_cb=received)
            self.controller.broadcast(task, self.context, [site], min_responses=1)
            tasks.append(task)
        while not self.abort_signal.triggered:
            if all(task.completion_status is not None for task in tasks):
                return list(found)  # later replies are not used
            time.sleep(0.2)
        raise _AbortedError


def _needed() -> None:
    with needs_extra("confide.federated.nvflare", "nvflare"):
        import nvflare  # noqa: F401


def _local(context: "FLContext") -> str:
    return str(context.get_workspace().get_site_config_dir())


@contextmanager
def site_log(local: str | Path) -> Iterator[logging.Logger]:
    """A logger that writes to `confide.log` in the site's folder `local` and to none of FLARE's handlers."""
    handler = logging.FileHandler(Path(local) / LOG, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.Logger("confide.site")  # made without `getLogger`, it has no parent
    log.addHandler(handler)
    try:
        yield log
    finally:
        handler.close()

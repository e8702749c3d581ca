"""Calibrate over NVIDIA FLARE: an executor that answers a signed plan, and a controller that makes the release.

    python nvflare_round.py plan.json job && nvflare job submit -j job

Needs `pip install nvflare 'confide[standard]'` and this file where Python finds it, at the server and in every site.
Each site allows the class in its own `local/resources.json`, {"class_allow_list": ["nvflare.", "nvflare_round."]}, and
names its folder, as docs/howto/flower.md describes it, in `local/confide.json`: {"folder": "/srv/confide"}.
"""

import json
import logging
import sys
from functools import partial
from pathlib import Path

from nvflare.apis.controller_spec import Task
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable

from confide.federated.remote import Failure, NotReleasedError, SiloSetup, run, serve


class SiloExecutor(Executor):
    """In a site: one message, or a code. Reasons stay in `local/confide.log`, which FLARE does not send."""

    def execute(self, task_name, shareable, fl_ctx, abort_signal):
        """FLARE's entry point."""
        local = Path(fl_ctx.get_workspace().get_site_config_dir())
        log = logging.Logger("site")  # it has no parent, so that FLARE's handlers get nothing
        log.addHandler(logging.FileHandler(local / "confide.log", delay=True))
        folder = json.loads((local / "confide.json").read_text())["folder"].format(site=fl_ctx.get_identity_name())
        return Shareable(serve(shareable, partial(SiloSetup.load, folder), log))


class PlanController(Controller):
    """At the server: sends the plan to every site, and writes `released.json` to the job's folder."""

    def __init__(self, plan, timeout=600):
        super().__init__()
        self.plan, self.timeout = plan, timeout

    def control_flow(self, abort_signal, fl_ctx):
        """FLARE's entry point."""
        self.context, self.aborted = fl_ctx, abort_signal
        sites = [client.name for client in fl_ctx.get_engine().get_clients()]
        try:
            released, replies = run(self.ask, sites, self.plan)
        except NotReleasedError as missing:
            self.system_panic(str(missing), fl_ctx)
            return
        released.save(Path(fl_ctx.get_workspace().get_run_dir(fl_ctx.get_job_id())) / "released.json")
        self.log_info(fl_ctx, str(replies))

    def ask(self, requests):
        """The courier of `confide.federated.remote.run`: one task for all sites, until all reply or time is over."""
        replies, request = [], next(iter(requests.values()))  # every site gets the same signed plan

        def received(client_task, fl_ctx):
            code = client_task.result.get_return_code()
            replies.append((client_task.client.name, client_task.result if code == ReturnCode.OK else Failure(code)))

        task = Task("confide", Shareable(dict(request)), timeout=self.timeout, result_received_cb=received)
        self.broadcast_and_wait(task, self.context, min_responses=len(requests), abort_signal=self.aborted)
        return replies

    start_controller = stop_controller = process_result_of_unknown_task = lambda *_: None


def write_job(plan, folder):
    """Write the folder of a job: the plan as an argument of the controller, and two class names, but no code."""
    controller = {"id": "confide", "path": "nvflare_round.PlanController", "args": {"plan": plan}}
    executor = {"tasks": ["confide"], "executor": {"path": "nvflare_round.SiloExecutor", "args": {}}}
    config = folder / "app" / "config"
    files = {
        folder / "meta.json": {"name": folder.name, "resource_spec": {}, "deploy_map": {"app": ["@ALL"]}},
        config / "config_fed_server.json": {"format_version": 2, "workflows": [controller]},
        config / "config_fed_client.json": {"format_version": 2, "executors": [executor]},
    }
    config.mkdir(parents=True)
    for path, content in files.items():
        path.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    write_job(Path(sys.argv[1]).read_text(), Path(sys.argv[2]))

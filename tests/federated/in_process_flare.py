"""Stand-ins for NVIDIA FLARE's controller, over sites in this process.

`test_nvflare.py` runs the same on FLARE's own simulator, where FLARE is installed.
"""

import sys
from types import ModuleType, SimpleNamespace

from confide.federated import nvflare


class Shareable(dict):
    code = "OK"

    def get_return_code(self):
        return self.code


class Task:
    completion_status = None

    def __init__(self, name, data, timeout, result_received_cb):
        self.name, self.data, self.timeout, self.result_received_cb = name, data, timeout, result_received_cb


def stand_in(monkeypatch):
    """Replace the modules of FLARE that `confide.federated.nvflare` imports for a request."""
    contents = {
        "nvflare": {},
        "nvflare.apis": {},
        "nvflare.apis.controller_spec": {"Task": Task},
        "nvflare.apis.fl_constant": {"ReturnCode": SimpleNamespace(OK="OK")},
        "nvflare.apis.shareable": {"Shareable": Shareable},
    }
    for name, content in contents.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)


class InProcessController(nvflare.PlanController):
    """A controller whose sites are functions of a request.

    A site that returns None does not answer; a text is a return code of FLARE. The folder `local` also contains jobs
    and their releases.
    """

    def __init__(self, sites, local, abort_at=None):
        self.out, self.timeout, self.sites, self.local = "released.json", 5, sites, local
        self.said, self.abort_at, self.abort_signal = [], abort_at, SimpleNamespace(triggered=False)
        self.context = SimpleNamespace(
            get_workspace=lambda: SimpleNamespace(
                get_site_config_dir=lambda: local, get_app_config_dir=lambda job: local, get_run_dir=lambda job: local
            ),
            get_engine=lambda: SimpleNamespace(get_clients=lambda: [SimpleNamespace(name=site) for site in sites]),
            get_job_id=lambda: "job",
        )

    def broadcast(self, task, context, targets, min_responses):
        (site,) = targets
        found = self.sites[site](dict(task.data))
        if self.abort_at == task.name:
            self.abort_signal.triggered = True
        elif found is not None:
            result = Shareable(found if isinstance(found, dict) else {})
            result.code = "OK" if isinstance(found, dict) else found
            task.result_received_cb(SimpleNamespace(client=SimpleNamespace(name=site), result=result), context)
        task.completion_status = "timeout" if found is None else "done"

    def run(self, plan):
        """Run the job with this plan from start to end."""
        (self.local / nvflare.PLAN).write_text(plan)
        self.control_flow(self.abort_signal, self.context)

    def system_panic(self, text, context):
        self.said.append(text)

    def log_info(self, context, text):
        self.said.append(text)

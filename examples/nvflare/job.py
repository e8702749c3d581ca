"""Export a job of NVIDIA FLARE with a signed plan: `python job.py --plan plan.json --export-dir calibrate`."""

import argparse
from pathlib import Path

from confide.federated.nvflare import write_job


def main() -> None:
    """Write the folder of the job, for `nvflare job submit -j`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="the signed plan of `confide federated plan --out`")
    parser.add_argument("--export", action="store_true", help="accepted, because FLARE's job scripts have it")
    parser.add_argument("--export-dir", type=Path, required=True, help="a new folder for the job")
    parser.add_argument("--clients", type=int, default=1, help="least number of sites to start with")
    parser.add_argument("--timeout", type=int, default=600, help="seconds to wait for the sites")
    given = parser.parse_args()
    plan = given.plan.read_text(encoding="utf-8")
    print(f"job: {write_job(given.export_dir, plan, timeout=given.timeout, clients=given.clients)}")


if __name__ == "__main__":
    main()

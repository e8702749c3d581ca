"""A new release: paid for, made, written and printed."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from confide.cli.charging import Accounting, Receipt
from confide.cli.output import left_out_text, print_result
from confide.cli.values import Source
from confide.cli.written import PrintedOutput
from confide.core import Plan, Request, plan_of, records_needed, remarks
from confide.mechanisms import Slopes
from confide.support import FileKind
from confide.tables import CountsFiles, TableRequest


def make_release(
    request: TableRequest, source: Source, budget: Accounting, partition: str | None, output: PrintedOutput
) -> None:
    """Make, write and print a release."""
    public = request.request.public_n
    output.check(FileKind.RELEASE, *source.files, *budget.files)
    with budget.charging() as receipt:
        # Check the ledger's limit before the table is opened, if the charge is known.
        request = replace(request, payer=budget.payer(source.file, partition, divided=request.is_divided))
        if request.payer.has_ledger and not request.is_divided and (request.n is not None or not public):
            request.check_limit()

        # The number of records left out is secret with that of the others, and unknown if only counts are read.
        with output.new(FileKind.RELEASE) as path, source.open("counting") as (table, progress):
            released = request.release(table, progress)
            is_public = public and request.columns.skip_incomplete and not isinstance(table, CountsFiles)
            left_out = {"left_out": table.left_out()} if is_public else {}
            path.write_text(released.to_json(), encoding="utf-8")
    print_release(released, request.request, receipt, left_out, output)


def expected_plan(released: Any) -> Plan | None:
    """The plan with the expected cost of one threshold; None where it is not informative."""
    is_single = released.by is None and released.loss is None
    is_informative = is_single and isinstance(released.mechanism, Slopes) and not remarks(released)
    return plan_of(released) if is_informative else None


def print_release(
    released: Any, request: Request | None, receipt: Receipt, left_out: Mapping[str, int], output: PrintedOutput
) -> None:
    """Print a release, its expected cost, warnings, and the charge; None is a request of published counts.

    The cost of published counts was paid elsewhere.
    """
    # Its expected cost.
    plan = None if request is None else expected_plan(released)
    captured = receipt.captured
    captured.warn()
    expected = cost = None
    if plan is not None:
        expected = {"records": plan.n, "coverage": plan.expected_coverage, "excess": plan.expected_excess}
        expected["records_needed"] = plan.records_needed
        source = ", a public guess: the true number is secret"
        if released.size is not None:
            source = ", which the noisy number suggests"
        cost = (
            f"cost of privacy: {100 * plan.expected_coverage:.4g} % expected coverage instead of "
            f"{100 * float(1 - released.alpha):.4g} %\n"
            f"      (on {plan.typical_scores}, with {plan.n} records{'' if released.n is not None else source})"
        )

    def document() -> dict[str, Any]:
        needed = records_needed(released)
        written = {"out": str(output.out), "calibration": json.loads(released.to_json()), "expected": expected}
        written |= {"records_needed": needed, **captured.fields()}
        return {**written, **({} if request is None else receipt.fields()), **left_out}

    # What was charged, or that no ledger was named.
    paid = request is not None and (receipt.ledger is not None or not math.isinf(released.privacy.epsilon))
    print_result(
        document,
        *captured.earlier,
        str(released),
        left_out_text(left_out),
        cost,
        receipt.text() if paid else None,
        output.saved(),
        as_json=output.as_json,
    )

"""`confide verify`: a release's claims, signature and conditions; `confide sign`: the signature of one machine."""

from collections.abc import Sequence
from dataclasses import fields

from confide.cli.commands import Sign, Verify
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.federated.coordinator import read_silo
from confide.cli.output import print_result, print_warning
from confide.core import load_release
from confide.errors import InputError
from confide.evaluation import Evaluation
from confide.federated import Conditions, FederatedRelease, SiloKeys, read_signed, sign, verify_signer
from confide.federated import verify as verify_federated
from confide.support import FileKind, read_as, read_text
from confide.watching import CorrectedRelease, Watch


def verify(options: Verify) -> int:
    """Check a release."""
    # Its conditions, on claims that are computed again while reading.
    released, key = read_as(options.path, read_signed)
    signer = None if options.signer is None else read_silo(options.signer)
    conditions = Conditions(**{field.name: getattr(options, field.name) for field in fields(Conditions)})
    checked = conditions.check(released, key)

    # Its signature, and the answers of a federation.
    drawn = "noisy counts" if isinstance(released, Watch | Evaluation | CorrectedRelease) else "thresholds"
    if isinstance(released, FederatedRelease):
        signature = verify_federated(released, signer, [read_text(answer) for answer in options.answers])
    elif options.answers:
        raise InputError("answers", f"must be left out: {str(options.path)!r} is not a federated calibration")
    else:
        signature = verify_signer(key, signer, drawn)

    # No file shows the noise.
    head = f"claims: recomputed, and they hold\n{released}"
    unshown = f"not shown: that the {drawn} were drawn with noise; this rests on those who ran the calibration"
    statements = [head, *signature.statements, unshown, *checked.statements]
    return _report(statements, [*checked.failures, *signature.failures], as_json=options.as_json)


def _report(statements: Sequence[str], failures: Sequence[str], *, as_json: bool) -> int:
    lines = [line for text in statements for line in text.splitlines()]
    print_result(lambda: {"holds": not failures, "found": lines, "wrong": failures}, *statements, as_json=as_json)
    for line in failures:
        print_warning(line)
    return CLAIM_FAILED if failures else DONE


def sign_release(options: Sign) -> None:
    """Sign a release of one machine."""
    options.output.check(FileKind.SIGNED, options.path, options.keys)
    options.output.save(sign(load_release(options.path), SiloKeys.load(options.keys)), "signed")

"""What the methods would give, as lines for people."""

from collections.abc import Sequence

from confide.federated import Alternative, Silo


def comparison_lines(found: Sequence[Alternative], silos: Sequence[Silo]) -> list[str]:
    """A line for every alternative, the recommended one marked, and what the columns mean."""
    lines = [
        "expected coverage if scores lie evenly over the candidates, and in a bell; no promise, but what to expect:"
    ]
    for one in found:
        lines.append(f"{'->' if one.recommended else '  '} {_named(one)}: {_expected(one)}")
    if any(silo.size is None for silo in silos):
        lines.append(
            "sizes are secret, which private-qq alone allows; with public sizes (confide federated public --size) "
            "secure-sum can be asked for, whose promise holds however unlike the silos are"
        )
    best = next((one for one in found if one.recommended), None)
    if best is not None and best.plan is not None and best.left_out:
        names = {silo.name for silo in best.plan.silos}
        lines.append(f"left out: {', '.join(silo.name for silo in silos if silo.name not in names)}")
    return lines


def _named(one: Alternative) -> str:
    if not one.left_out:
        return f"{one.method}, all {one.silos} silos"
    return f"{one.method}, the {one.silos} largest silos, without {one.left_out:.0%} of the records"


def _expected(one: Alternative) -> str:
    if one.plan is None:
        return f"none: {one.refused}"
    told = [f"{one.expected:.4f}, {one.expected_bell:.4f}"]
    if one.infinite >= 0.0005:
        told.append(f"+inf in {one.infinite:.1%}")
    told.append(one.plan.assumed)
    if one.on_pilot is not None:
        told += [f"{name} {words}" for name, words in one.on_pilot.in_words]
    return "; ".join(told)

"""From outputs of a classifier to probabilities; logits and probabilities must not be mistaken for one another."""

import torch
from torch import Tensor

from confide.array_api import rows_unlike_one
from confide.errors import InputError, InputTypeError

# The number of rows of a batch that are checked
_CHECKED_ROWS = 1000

# The largest change of a sum of probabilities by rounding to bfloat16
_ROUNDING = 0.005


def probabilities(outputs: Tensor, *, logits: bool) -> Tensor:
    """Softmax over the last dimension, in float32 for half precision; probabilities pass unchanged.

    Examples
    --------
    >>> probabilities(torch.tensor([[0.75, 0.25]]), logits=True)
    Traceback (most recent call last):
        ...
    confide.errors.InputError: outputs: must be logits; got rows that are non-negative and sum to 1, as ...
    """
    if not isinstance(outputs, torch.Tensor) or outputs.ndim != 2:
        raise InputTypeError("outputs", "must be a tensor of shape (n, classes)")
    outputs = outputs.detach()
    if not logits:
        _refuse_rows_unlike_one(outputs)
        return outputs
    if len(outputs) and look_like_probabilities(outputs):
        got = "rows that are non-negative and sum to 1, as probabilities do"
        remedy = "Pass logits=False; if they are logits nevertheless, pass their softmax"
        raise InputError("outputs", "must be logits", got=got, remedy=remedy)
    return softmax(single_precision(outputs))


def single_precision(outputs: Tensor) -> Tensor:
    """Half precision as float32; other types unchanged."""
    return outputs.float() if outputs.dtype in (torch.float16, torch.bfloat16) else outputs


def softmax(logits: Tensor) -> Tensor:
    """Softmax over the classes; rounding can raise a probability above 1 by one float, which becomes 1."""
    return torch.softmax(logits, dim=1).clamp_(max=1.0)


def look_like_probabilities(rows: Tensor) -> bool:
    """Whether all of the first rows are non-negative and sum to 1, within the precision of softmax in any dtype."""
    first = rows[:_CHECKED_ROWS].detach().float()
    return bool(((first >= 0).all(dim=1) & ((first.sum(dim=1) - 1).abs() < _ROUNDING)).all())


def _refuse_rows_unlike_one(rows: Tensor) -> None:
    # Only the first rows and large deviations, as of logits: small ones are checked where scores or sets are computed
    wrong = rows_unlike_one(rows)
    wrong |= (rows[: len(wrong)] < 0).any(dim=1)
    if bool(wrong.any()):
        first = f"the first at row {int(wrong.int().argmax())}"
        got = f"{int(wrong.sum())} of the first {len(wrong)} rows that do not, {first}"
        must = "must be probabilities that sum to 1 with logits=False"
        raise InputError("outputs", must, got=got, remedy="Pass logits=True for logits, or apply softmax")

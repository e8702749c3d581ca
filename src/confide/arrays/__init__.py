"""What people hand in (numpy, torch, pandas, polars, Arrow) comes in; checked numpy arrays go out, read in blocks.

checked.py   the door: numbers, vectors, probabilities, labels and groups as arrays
softmax.py   logits to probabilities
uniforms.py  the random numbers that belong to records
blocks.py    rows in blocks that fit in cache, on a few threads
frames.py    the names of a data frame's columns, and frame_rows.py those of its rows
images.py    where each class is true in an image
frames_in.py  data frames of any kind, as numpy reads them; frames_out.py: columns as a data frame of any kind
row_sums.py  rows of probabilities that do not sum to one
loops.py     loops for which numpy needs several passes
compiled.py  the same as machine code, where Numba is installed
"""

from confide.arrays import loops
from confide.arrays.blocks import ELEMENTS, in_blocks
from confide.arrays.checked import (
    Sound,
    as_array,
    as_float_rows,
    as_host_array,
    as_labels,
    as_numeric,
    as_positions,
    as_probabilities,
    as_vector,
    class_names,
    finite,
    refuse_outside_unit,
    unit_check,
)
from confide.arrays.compiled import FLOATS, machine_code, worth_compiling
from confide.arrays.frame_rows import refuse_other_rows, row_index
from confide.arrays.frames import as_truth, class_columns, column_names, in_order
from confide.arrays.frames_out import frame_of
from confide.arrays.images import as_truth_image, class_areas, image_by_image
from confide.arrays.row_sums import (
    ROUNDED,
    SUM_REMEDY,
    SUM_TO_ONE,
    far_from_one,
    other_sums,
    refuse_other_sums,
    rows_looked_at,
    sums_of_rounded,
)
from confide.arrays.softmax import look_like_probabilities, softmax
from confide.arrays.uniforms import ExperimentalUniforms, Uniforms, as_uniforms, fresh_uniforms, refuse_generator

__all__ = [
    "ELEMENTS", "FLOATS", "ROUNDED", "SUM_REMEDY", "SUM_TO_ONE", "ExperimentalUniforms", "Sound", "Uniforms",
    "as_array", "as_float_rows", "as_host_array", "as_labels", "as_numeric", "as_positions", "as_probabilities",
    "as_truth", "as_truth_image", "as_uniforms", "as_vector", "class_areas", "class_columns", "class_names",
    "column_names", "far_from_one", "finite", "frame_of", "fresh_uniforms", "image_by_image", "in_blocks", "in_order",
    "look_like_probabilities", "loops", "machine_code", "other_sums", "refuse_generator", "refuse_other_rows",
    "refuse_other_sums", "refuse_outside_unit", "row_index", "rows_looked_at", "softmax", "sums_of_rounded",
    "unit_check", "worth_compiling",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)

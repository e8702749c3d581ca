"""Arrays of users (numpy, torch, pandas, polars, Arrow) to checked numpy arrays, read in blocks.

checked.py        the entry point: numbers, vectors, probabilities, labels and groups as arrays, and data frames of
                  any kind as numpy reads them; the random numbers of records
frames.py         the names of a data frame's columns and rows; columns as a data frame of any kind
probabilities.py  rows of probabilities that do not sum to one; logits to probabilities; classes of pixels
group_columns.py  groups that overlap: columns of which each gives a record one group
blocks.py         rows in blocks that fit in cache, on a few threads
loops.py          loops that would take numpy several passes
compiled.py       these loops as machine code, if Numba is installed
"""

from confide.arrays import loops
from confide.arrays.blocks import ELEMENTS, in_blocks
from confide.arrays.checked import (
    AllValid,
    ExperimentalUniforms,
    Uniforms,
    as_array,
    as_float_rows,
    as_host_array,
    as_labels,
    as_numeric,
    as_positions,
    as_probabilities,
    as_uniforms,
    as_vector,
    class_names,
    finite,
    fresh_uniforms,
    is_missing,
    one_per_record,
    refuse_outside_unit,
    unit_check,
    warn_of_unknown_labels,
)
from confide.arrays.compiled import machine_code, worth_compiling
from confide.arrays.frames import (
    as_true_labels,
    class_columns,
    column_names,
    columns_by_name,
    frame_of,
    in_order,
    refuse_other_rows,
    row_index,
)
from confide.arrays.group_columns import GroupColumns, Groups, group_name
from confide.arrays.probabilities import (
    SUM_REMEDY,
    SUM_TO_ONE,
    as_label_image,
    checked_rows,
    class_areas,
    far_from_one,
    far_sums,
    image_by_image,
    look_like_probabilities,
    other_sums,
    refuse_other_sums,
    softmax,
)

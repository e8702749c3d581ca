"""Arrays of users (numpy, torch, pandas, polars, Arrow) to checked numpy arrays, read in blocks.

checked.py        the entry point: numbers, vectors and probabilities as arrays, and data frames of any kind as numpy
                  reads them
uniforms.py       the random numbers of records
labels.py         true labels of records, and names of classes
images.py         true classes of the pixels of images
frames.py         the names of a data frame's columns and rows; columns as a data frame of any kind
row_sums.py       rows of probabilities whose sums are not one
probabilities.py  softmax, logits that look like probabilities, temperatures
group_columns.py  groups that overlap: columns of which each gives a record one group
blocks.py         rows in blocks that fit in cache, on a few threads; the first of several batches
loops.py          loops that would take numpy several passes, as machine code if Numba is installed
"""

from confide.arrays import loops
from confide.arrays.blocks import ELEMENTS, all_valid, first_and_all, in_blocks
from confide.arrays.checked import (
    as_array,
    as_float_rows,
    as_host_array,
    as_numeric,
    as_probabilities,
    as_vector,
    finite,
    one_per_record,
    refuse_outside_unit,
    unit_check,
)
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
from confide.arrays.images import as_label_image, class_areas, image_by_image
from confide.arrays.labels import as_labels, as_positions, class_names, is_missing, warn_of_unknown_labels
from confide.arrays.loops import machine_code, worth_compiling
from confide.arrays.probabilities import look_like_probabilities, softmax, tempered
from confide.arrays.row_sums import (
    SUM_REMEDY,
    SUM_TO_ONE,
    checked_rows,
    far_from_one,
    far_sums,
    other_sums,
    refuse_other_sums,
)
from confide.arrays.uniforms import ExperimentalUniforms, Uniforms, as_uniforms, fresh_uniforms

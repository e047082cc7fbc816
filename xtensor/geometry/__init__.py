"""The arithmetic of strided tensors: sizes, strides and offsets in, sizes, strides and offsets out.

Every function is pure; results, exception classes and wordings are PyTorch's, down to the strides of dimensions of
size 0 and 1. Strides and offsets count elements of the tensor's dtype. A view function takes any `(sizes, strides,
offset)` triple of tuples and ints, and returns a `Geometry`.
"""

from .layout import (
    Geometry,
    GeometryLike,
    Ints,
    MemoryFormat,
    channels_last_order,
    channels_last_strides,
    check_numel,
    contiguous_strides,
    format_strides,
    is_contiguous,
    is_non_overlapping_and_dense,
    iterator_strides,
    numel,
    preserve_strides,
)
from .memory import (
    INPUT_OVERLAP,
    Overlap,
    OverlapStatus,
    assert_no_internal_overlap,
    assert_no_overlap,
    assert_no_partial_overlap,
    check_in_storage,
    has_internal_overlap,
    overlap_status,
    storage_extent,
    storage_nbytes,
)
from .splits import chunk, dsplit, hsplit, split, split_with_sizes, tensor_split, unbind, vsplit
from .views import (
    as_strided,
    broadcast_shapes,
    diagonal,
    expand,
    flatten,
    flatten_sizes,
    infer_size,
    movedim,
    narrow,
    permute,
    reshape,
    select,
    slice,
    squeeze,
    t,
    transpose,
    unflatten,
    unfold,
    unsqueeze,
    view,
    view_as_complex,
    view_as_real,
    view_dtype,
    view_strides,
)

"""What kernels use that numba does not have: definitions of `lanes` and `arrays`.

Lanes are vectors of 4, 8 or 16 float32 that live in registers.
Numba keeps a small array in memory, so a loop that adds into it stores and loads at every step.
A value of the types below is an LLVM ``<n x float>``: one register with AVX-512, two with AVX2,
four with NEON, chosen by LLVM for the machine at hand. The labels of one cluster sit side by side
in such a vector, and one feature of a document then serves all of them at once. Vectors of one width
can be added, subtracted, multiplied and divided, and have a `max` and `min`, lane by lane.
"""

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable
from numba.np.arrayobj import populate_array

ALIGNMENT = 64  # bytes: a line of the processor's cache


class LanesType(types.Type):  # type: ignore[misc]
    """Numba type of a vector of `width` float32."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"Lanes{width}")


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    """The value of a `LanesType` in LLVM: a vector of floats."""

    def __init__(self, dmm, fe_type):  # type: ignore[no-untyped-def]
        super().__init__(dmm, fe_type, ir.VectorType(ir.FloatType(), fe_type.width))


def _width_of(like):  # type: ignore[no-untyped-def]
    """Number of lanes asked for: by a literal, or by the length of a tuple."""
    return like.count if isinstance(like, types.UniTuple) else like.literal_value


def _address(context, builder, array_type, array, row):  # type: ignore[no-untyped-def]
    """Address of ``array[row, 0]`` of a C-contiguous two-dimensional float32 array."""
    view = context.make_array(array_type)(context, builder, array)
    stride = cgutils.unpack_tuple(builder, view.strides)[0]
    base = builder.ptrtoint(view.data, stride.type)
    return builder.add(base, builder.mul(row, stride))


def _vector_pointer(builder, address, width):  # type: ignore[no-untyped-def]
    return builder.inttoptr(address, ir.VectorType(ir.FloatType(), width).as_pointer())


@intrinsic(prefer_literal=True)
def lanes_at(typingctx, array, row, like):  # type: ignore[no-untyped-def]
    """The first floats of ``array[row]``, as many as `like` says (see `_width_of`)."""
    lanes = LanesType(_width_of(like))

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        address = _address(context, builder, signature.args[0], args[0], args[1])
        loaded = builder.load(_vector_pointer(builder, address, lanes.width))
        loaded.align = 4
        return loaded

    return lanes(array, types.intp, like), emit


@intrinsic
def float_of(typingctx, bits):  # type: ignore[no-untyped-def]
    """The float32 that has these bits."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.uint32), emit


@intrinsic(prefer_literal=True)
def lanes_of_words(typingctx, words, at, value_words, like):  # type: ignore[no-untyped-def]
    """As many floats as `like` says from ``words[at]`` on, of one or two 16-bit words each."""
    lanes, halves = LanesType(_width_of(like)), value_words.literal_value == 1

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        width = lanes.width
        floats = ir.VectorType(ir.FloatType(), width)
        view = context.make_array(signature.args[0])(context, builder, args[0])
        address = builder.gep(view.data, [args[1]])
        stored = ir.VectorType(ir.IntType(16), width) if halves else floats
        loaded = builder.load(builder.bitcast(address, stored.as_pointer()))
        loaded.align = 2
        if not halves:
            return loaded
        wide = ir.VectorType(ir.IntType(32), width)
        shift = ir.Constant(wide, [16] * width)
        return builder.bitcast(builder.shl(builder.zext(loaded, wide), shift), floats)

    return lanes(words, types.uint64, value_words, like), emit


@intrinsic
def store(typingctx, array, row, vector):  # type: ignore[no-untyped-def]
    """Write `vector` to the first floats of ``array[row]``."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        address = _address(context, builder, signature.args[0], args[0], args[1])
        pointer = _vector_pointer(builder, address, signature.args[2].width)
        builder.store(args[2], pointer).align = 4
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), emit


def _splat(builder, scalar, width):  # type: ignore[no-untyped-def]
    vector_type = ir.VectorType(ir.FloatType(), width)
    first = builder.insert_element(
        ir.Constant(vector_type, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0)
    )
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
    return builder.shuffle_vector(first, ir.Constant(vector_type, ir.Undefined), zeros)


@intrinsic(prefer_literal=True)
def splat(typingctx, scalar, like):  # type: ignore[no-untyped-def]
    """The float32 `scalar` in as many lanes as `like` says."""
    lanes = LanesType(_width_of(like))

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return _splat(builder, args[0], lanes.width)

    return lanes(types.float32, like), emit


@intrinsic
def fma(typingctx, a, scalar, c):  # type: ignore[no-untyped-def]
    """``a * scalar + c``, rounded once where the machine can."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        width = signature.args[0].width
        vector_type = ir.VectorType(ir.FloatType(), width)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector_type, [vector_type] * 3),
            f"llvm.fmuladd.v{width}f32",
        )
        return builder.call(function, [args[0], _splat(builder, args[1], width), args[2]])

    return a(a, types.float32, a), emit


@intrinsic
def largest_lane(typingctx, a):  # type: ignore[no-untyped-def]
    """The largest float of a vector."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        width = signature.args[0].width
        kind = ir.FunctionType(ir.FloatType(), [ir.VectorType(ir.FloatType(), width)])
        name = f"llvm.vector.reduce.fmax.v{width}f32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)

    return types.float32(a), emit


def _define(operation, emit):  # type: ignore[no-untyped-def]
    """Let kernels apply an operation of Python to two vectors of one width."""

    @type_callable(operation)  # type: ignore[misc]
    def type_of_operation(context):  # type: ignore[no-untyped-def]
        return lambda a, b: a if isinstance(a, LanesType) and a == b else None

    @lower_builtin(operation, LanesType, LanesType)  # type: ignore[misc]
    def lower(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return emit(builder, *args)


_define(operator.add, lambda builder, a, b: builder.fadd(a, b))
_define(operator.sub, lambda builder, a, b: builder.fsub(a, b))
_define(operator.mul, lambda builder, a, b: builder.fmul(a, b))
_define(operator.truediv, lambda builder, a, b: builder.fdiv(a, b))
_define(max, lambda builder, a, b: builder.select(builder.fcmp_ordered(">", b, a), b, a))
_define(min, lambda builder, a, b: builder.select(builder.fcmp_ordered("<", b, a), b, a))


@intrinsic
def prefetch(typingctx, array, row):  # type: ignore[no-untyped-def]
    """Ask for the cache line at ``array[row]`` ahead of its use."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        address = _address(context, builder, signature.args[0], args[0], args[1])
        pointer = builder.inttoptr(address, cgutils.voidptr_t)
        integer = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, integer, integer, integer]),
            "llvm.prefetch.p0",
        )
        builder.call(function, [pointer, integer(0), integer(3), integer(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), emit


def _array_type(shape, dtype):  # type: ignore[no-untyped-def]
    """Type of a new array, whose shape is a number or a tuple of them."""
    return types.Array(dtype.dtype, getattr(shape, "count", 1), "C")


def _new_array(context, builder, array_type, shape_type, shape):  # type: ignore[no-untyped-def]
    """A new array with undefined content."""
    is_tuple = isinstance(shape_type, types.BaseTuple)
    values = cgutils.unpack_tuple(builder, shape) if is_tuple else [shape]
    kinds = list(shape_type) if is_tuple else [shape_type]
    pairs = zip(values, kinds, strict=True)
    sizes = [context.cast(builder, value, kind, types.intp) for value, kind in pairs]
    array = context.make_array(array_type)(context, builder)
    pointer = context.get_data_type(array_type.dtype).as_pointer()
    item = context.get_constant(types.intp, context.get_abi_sizeof(pointer.pointee))
    strides, length = [], item
    for size in reversed(sizes):
        strides.insert(0, length)
        length = builder.mul(length, size)
    align = context.get_constant(types.uint32, ALIGNMENT)
    memory = context.nrt.meminfo_alloc_aligned(builder, length, align)
    data = builder.bitcast(context.nrt.meminfo_data(builder, memory), pointer)
    populate_array(array, data, sizes, strides, item, memory)
    return array


@intrinsic
def empty(typingctx, shape, dtype):  # type: ignore[no-untyped-def]
    """A new array with undefined content."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind, shape_type = signature.return_type, signature.args[0]
        return _new_array(context, builder, kind, shape_type, args[0])._getvalue()

    return _array_type(shape, dtype)(shape, dtype), emit


@intrinsic
def full(typingctx, shape, value, dtype):  # type: ignore[no-untyped-def]
    """A new array with `value` in all places."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind, shape_type = signature.return_type, signature.args[0]
        array = _new_array(context, builder, kind, shape_type, args[0])
        filler = context.cast(builder, args[1], signature.args[1], kind.dtype)
        with cgutils.for_range(builder, array.nitems) as loop:
            context.pack_value(builder, kind.dtype, filler, builder.gep(array.data, [loop.index]))
        return array._getvalue()

    return _array_type(shape, dtype)(shape, value, dtype), emit

"""The second half of the door to numba: arguments that are taken apart once.

numba takes an argument made of arrays apart at every call: for an engine, all its arrays are
looked at, which costs more than most kernels do once the caches have gone cold. A `Bound` value
has been taken apart once; compiled code then gets the address of its native form.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.datamodel import default_manager
from numba.core.datamodel.models import TupleModel
from numba.extending import NativeValue, intrinsic, unbox

__all__ = ["Bound", "BoundType"]


class BoundType(types.NamedTuple):  # type: ignore[misc]
    """numba's type of a NamedTuple that comes as the address of its native form."""


default_manager.register(BoundType, TupleModel)


@unbox(BoundType)  # type: ignore[untyped-decorator]
def _load(typ: Any, address: Any, c: Any) -> Any:
    pointer = c.pyapi.long_as_voidptr(address)
    return NativeValue(c.builder.load(c.builder.bitcast(pointer, c.context.get_value_type(typ).as_pointer())))


@intrinsic  # type: ignore[untyped-decorator]
def _store(typing: Any, value: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        native = context.get_value_type(signature.args[0])
        builder.store(args[0], builder.inttoptr(args[1], native.as_pointer()))
        return context.get_dummy_value()

    return types.void(value, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def _size(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.get_constant(types.intp, context.get_abi_sizeof(context.get_value_type(signature.args[0])))

    return types.intp(value), generate


@numba.njit(_nrt=False)  # type: ignore[untyped-decorator]
def _write(value: Any, address: int) -> int:
    """Store ``value`` at ``address`` unless that is 0; bytes that it takes."""
    if address != 0:
        _store(value, address)
    return int(_size(value))


class Bound:
    """A NamedTuple of arrays and numbers in native form, for as long as this object lives.

    Its arrays stay shared; its numbers are as they were.
    """

    def __init__(self, value: Any) -> None:
        plain = numba.typeof(value)
        self.type = BoundType(plain.types, plain.instance_class)
        self._value = value  # its arrays must live
        self._memory = np.zeros(_write(value, 0), dtype=np.uint8)
        self.address = self._memory.ctypes.data
        """What compiled code takes in its place."""
        _write(value, self.address)

    def rewrite(self, value: Any) -> None:
        """Hold ``value`` from now on, a tuple of the very same types: other numbers or arrays, nothing compiled
        anew. Not while compiled code runs on it."""
        if BoundType(numba.typeof(value).types, type(value)) != self.type:
            raise TypeError("a bound tuple keeps its types")
        self._value = value
        _write(value, self.address)

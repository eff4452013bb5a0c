"""Compressors and topologies alone."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Optional

from ._arrays import floats
from ._handle import Handle, layout_handle
from ._library import call, call_for_json, encoded, setting_texts
from ._types import Array, Layout

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


class Compressor(Handle):
    """A compressor by its specification, e.g. "quant:8" or "topk:0.01"."""

    def __init__(self, spec: str, *, layout: Optional[Layout] = None) -> None:
        with layout_handle(layout) as tensors:
            super().__init__("compressor", "compressor_create", encoded("spec", spec), tensors)

    def max_bytes(self, count: int) -> int:
        """The length of the longest encoding of `count` floats."""
        size = ctypes.c_size_t()
        with self._held() as handle:
            call("compressor_max_bytes", handle, count, ctypes.byref(size))
        return size.value

    def encode(self, array: Array, *, seed: int = 0, round: int = 0) -> bytes:
        """The encoding, as bytes, which depend on the array, seed and round alone."""
        address, length = floats(array, "array")
        capacity = self.max_bytes(length)
        buffer = ctypes.create_string_buffer(max(capacity, 1))
        size = ctypes.c_size_t()
        with self._held() as handle:
            call(
                "compressor_encode",
                handle,
                address,
                length,
                seed,
                round,
                buffer,
                capacity,
                ctypes.byref(size),
            )
        return bytes(memoryview(buffer)[: size.value])

    def decode_add(self, encoding: bytes, array: Array, *, scale: float = 1.0) -> None:
        """array += scale * C, in place; what is malformed is refused and changes nothing."""
        address, length = floats(array, "array", writable=True)
        encoding = bytes(encoding)
        with self._held() as handle:
            call(
                "compressor_decode_add", handle, encoding, len(encoding), scale, address, length
            )

    def decode(self, encoding: bytes, count: int) -> NDArray[float32]:
        """C as a NumPy array of `count` floats."""
        import numpy

        array = numpy.zeros(count, dtype=numpy.float32)
        self.decode_add(encoding, array)
        return array

    def describe(self, count: int) -> dict[str, Any]:
        """For vectors of `count` floats: the whole specification, max_bytes and the contract."""
        with self._held() as handle:
            return call_for_json("compressor_describe", handle, count)


class Topology(Handle):
    """A graph with its mixing weights, e.g. Topology("torus:2x4") or Topology("ring", nodes=8)."""

    SHARED = True

    def __init__(
        self,
        spec: str,
        nodes: Optional[int] = None,
        *,
        weighting: Optional[str] = None,
        lazy: bool = False,
        seed: int = 0,
    ) -> None:
        settings = {
            "topology": spec,
            "nodes": nodes,
            "weighting": weighting,
            "lazy": lazy,
            "seed": seed,
        }
        super().__init__("topology", "topology_create", setting_texts(settings))
        nodes_here = ctypes.c_size_t()
        period = ctypes.c_uint64()
        with self._held() as handle:
            call("topology_size", handle, ctypes.byref(nodes_here), ctypes.byref(period))
        self.nodes: int = nodes_here.value
        self.period: int = period.value  #: rounds after which the graph repeats

    def weights(self, round: int = 0) -> NDArray[float32]:
        """W of one round, a NumPy array: node i takes what node j says with weight W[i, j]."""
        import numpy

        matrix = numpy.empty((self.nodes, self.nodes), dtype=numpy.float32)
        with self._held() as handle:
            call("topology_weights", handle, round, matrix.ctypes.data, matrix.size)
        return matrix

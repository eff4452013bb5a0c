"""Arrays of others as addresses: no copies, and no dependency on NumPy or PyTorch."""

import sys

_FLOAT32 = "<f4" if sys.byteorder == "little" else ">f4"


def _of_torch(tensor, what):
    if tensor.device.type != "cpu":
        raise TypeError(f"{what}: the tensor is on {tensor.device}; sotto takes tensors on the CPU")
    if str(tensor.dtype) != "torch.float32":
        raise TypeError(f"{what}: the tensor holds {tensor.dtype}; torch.float32 is needed")
    if not tensor.is_contiguous():
        raise ValueError(f"{what}: the tensor is not contiguous; pass tensor.contiguous()")
    return tensor.data_ptr(), tensor.numel()


def floats(array, what="array", writable=False):
    """Address and length of a contiguous array of 32-bit floats, whatever its shape. Raises
    TypeError or ValueError that says what is wrong with it."""
    if hasattr(array, "data_ptr") and hasattr(array, "is_contiguous"):
        return _of_torch(array, what)
    interface = getattr(array, "__array_interface__", None)
    if interface is None:
        raise TypeError(
            f"{what}: a NumPy array or a PyTorch tensor of 32-bit floats is needed, and this is a "
            f"{type(array).__name__}"
        )
    if interface["typestr"] != _FLOAT32:
        raise TypeError(
            f"{what}: the array holds {getattr(array, 'dtype', interface['typestr'])}; float32 is "
            "needed"
        )
    if interface.get("strides") is not None:
        raise ValueError(f"{what}: the array is not contiguous; pass numpy.ascontiguousarray(array)")
    address, read_only = interface["data"]
    if writable and read_only:
        raise ValueError(f"{what}: the array is read-only")
    length = 1
    for size in interface["shape"]:
        length *= size
    return address, length

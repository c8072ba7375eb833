"""Elements of 4 and 2 bits, several to a byte, lowest bits first, as ONNX has them."""

import numpy as np

BITS = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}


def packed(data, dtype):
    """Pack the bytes of elements that have a byte each."""
    if dtype not in BITS:
        return data
    bits = BITS[dtype]
    items = np.frombuffer(data, np.uint8) & ((1 << bits) - 1)
    items = np.pad(items, (0, -len(items) % (8 // bits))).reshape(-1, 8 // bits)
    return np.bitwise_or.reduce(items << (np.arange(8 // bits) * bits), axis=1).astype(np.uint8).tobytes()


def unpacked(data, dtype, size):
    """Return the bytes of `size` elements that have a byte each."""
    if dtype not in BITS:
        return data
    bits = BITS[dtype]
    items = ((np.frombuffer(data, np.uint8)[:, None] >> (np.arange(8 // bits) * bits)) & ((1 << bits) - 1)).ravel()[
        :size
    ]
    if dtype.startswith("int"):
        items = np.where(items >> (bits - 1), items.astype(np.int16) - (1 << bits), items)
    return items.astype(np.uint8).tobytes()

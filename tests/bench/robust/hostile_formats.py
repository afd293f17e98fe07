"""Containers of ours taken apart and sealed again, so that a fault gets past their checksums."""

import ctypes
import ctypes.util
import json
import struct

MASK = (1 << 64) - 1
POOL, MODEL = b"PRNPOOL\n", b"PRNMODL\n"
ZSTD_MAGIC = 0xFD2FB528
ZSTD_BLOCK = 128 << 10


def combine(seed, value):
    x = (seed * 0x9E3779B97F4A7C15 + value + 0x632BE59BD9B4E019) & MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def hash_bytes(data, seed=0x51ED270B0F3A5C17):
    """As hash_bytes of ir/support/hash.h."""
    h = combine(seed, len(data))
    for at in range(0, len(data), 8):
        h = combine(h, int.from_bytes(data[at : at + 8], "big"))
    return h


def unzip(data, size):
    library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    room = ctypes.create_string_buffer(size)
    got = library.ZSTD_decompress(room, size, data, len(data))
    if got != size:
        raise ValueError("no frame of %d bytes" % size)
    return room.raw


def zstd_frame(parts, claimed=None):
    """A frame of uncompressed parts; a part (byte, count) becomes blocks of one repeated byte: count bytes from a few."""
    size = sum(part[1] if isinstance(part, tuple) else len(part) for part in parts)
    out = struct.pack("<IBQ", ZSTD_MAGIC, 0xE0, size if claimed is None else claimed)
    blocks = []
    for part in parts:
        repeated = isinstance(part, tuple)
        length = part[1] if repeated else len(part)
        for at in range(0, length, ZSTD_BLOCK):
            n = min(ZSTD_BLOCK, length - at)
            blocks.append((1, n, part[0]) if repeated else (0, n, part[at : at + n]))
    if not blocks:
        blocks = [(0, 0, b"")]
    for i, (kind, n, body) in enumerate(blocks):
        out += (n << 3 | kind << 1 | (i == len(blocks) - 1)).to_bytes(3, "little") + body
    return out


def open_pool(data):
    """(header as an object, columns)"""
    size = struct.unpack_from("<Q", data, 12)[0]
    raw = unzip(data[28:], size)
    length = struct.unpack_from("<Q", raw)[0]
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def seal_pool(header, columns, version=1, claimed=None):
    """`header`: an object or text; `columns`: bytes or parts of zstd_frame."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    parts = [struct.pack("<Q", len(text)) + text] + (columns if isinstance(columns, list) else [columns])
    size = sum(part[1] if isinstance(part, tuple) else len(part) for part in parts)
    if claimed is not None:
        size = claimed
    packed = zstd_frame(parts, size)
    return POOL + struct.pack("<IQQ", version, size, hash_bytes(packed, size)) + packed


def open_model(data):
    """(header as an object, tensors)"""
    length = struct.unpack_from("<Q", data, 12)[0]
    return json.loads(data[28 : 28 + length]), data[28 + length :]


def seal_model(header, tensors, version=1):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = text + tensors
    return MODEL + struct.pack("<IQQ", version, len(text), combine(len(text), hash_bytes(body))) + body


def npy(header, data=b"", version=1):
    text = header if isinstance(header, bytes) else header.encode()
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def npy_of(shape, data=b"", descr="<f4", order="False"):
    return npy("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n" % (descr, order, shape), data)

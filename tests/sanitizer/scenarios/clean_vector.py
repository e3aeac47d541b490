"""Patterns of vector cores that must be silent (sanitizer.md 6.5), with their values against numpy.

C08 (unit flag) runs on the simulated device itself, in test_clean_patterns.py. Not expressible in pyasc on the chips
that it compiles for: C09 (A5's mutexes), C16 (Triton), C20 (a framework's memory pool).
"""

from __future__ import annotations

from scenarios.model import Scenario

HEAD = """
@asc.jit{options}
def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, n: int):
    block = asc.get_block_idx()
    x_gm = gm(x + block * 256)
    z_gm = gm(z + block * 256)
    a = ub(0, 256)
    b = ub(1024, 256)
    c = ub(2048, 256)
"""
HOST = """
x = np.arange({cores} * 256, dtype=np.float32)
z = np.zeros({cores} * 256, np.float32)
kernel[{cores}](x, z, {n})
"""


def clean(name: str, body: str, after: str, cores: int = 4, n: int = 8, auto: bool = False, host: str = HOST) -> Scenario:
    """A kernel of 256 floats a core without the compiler's help."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    head = HEAD.replace("{options}", "" if auto else "(auto_sync=False)")
    return Scenario(name, head + lines + host.format(cores=cores, n=n) + after + "\n")


def whole(name: str, text: str) -> Scenario:
    """A text of its own."""
    return Scenario(name, text)


QUEUES = """
@asc.jit
def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress, tiles: int):
    start = asc.get_block_idx() * tiles * 64
    x_gm = gm(x + start)
    y_gm = gm(y + start)
    z_gm = gm(z + start)
    pipe = asc.TPipe()
    x_queue = asc.TQue(asc.TPosition.VECIN, {depth})
    y_queue = asc.TQue(asc.TPosition.VECIN, {depth})
    z_queue = asc.TQue(asc.TPosition.VECOUT, {depth})
    pipe.init_buffer(x_queue, {number}, 256)
    pipe.init_buffer(y_queue, {number}, 256)
    pipe.init_buffer(z_queue, {number}, 256)
    for i in range(tiles):
        x_local = x_queue.alloc_tensor(x.dtype)
        y_local = y_queue.alloc_tensor(y.dtype)
        asc.data_copy(x_local, x_gm[i * 64:], 64)
        asc.data_copy(y_local, y_gm[i * 64:], 64)
        x_queue.enque(x_local)
        y_queue.enque(y_local)
        x_ready = x_queue.deque(x.dtype)
        y_ready = y_queue.deque(y.dtype)
        z_local = z_queue.alloc_tensor(z.dtype)
        asc.add(z_local, x_ready, y_ready, 64)
        z_queue.enque(z_local)
        x_queue.free_tensor(x_ready)
        y_queue.free_tensor(y_ready)
        z_ready = z_queue.deque(z.dtype)
        asc.data_copy(z_gm[i * 64:], z_ready, 64)
        z_queue.free_tensor(z_ready)

x = np.arange(4 * 320, dtype=np.float32)
y = x[::-1].copy()
z = np.zeros_like(x)
kernel[4](x, y, z, 5)
assert (z == x + y).all()
"""

POOLS = """
@asc.jit
def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress):
    x_gm = gm(x)
    z_gm = gm(z)
    pipe = asc.TPipe()
    pool = asc.TBufPool(asc.TPosition.VECCALC, 4)
    one = asc.TBufPool(asc.TPosition.VECCALC, 4)
    two = asc.TBufPool(asc.TPosition.VECCALC, 4)
    pipe.init_buf_pool(pool, 8192)
    pool.init_buf_pool(one, 4096)
    pool.init_buf_pool(two, 4096, one)
    first = asc.TBuf(asc.TPosition.VECCALC)
    second = asc.TBuf(asc.TPosition.VECCALC)
    one.init_buffer(first, 1024)
    a = first.get(x.dtype)
    asc.data_copy(a, x_gm, 256)
    sync(MTE2_V, 0)
    asc.adds(a, a, 1.0, count=256)
    sync(V_MTE3, 0)
    asc.data_copy(z_gm, a, 256)
    barrier(ALL)
    two.init_buffer(second, 1024)
    b = second.get(x.dtype)
    asc.data_copy(b, x_gm, 256)
    sync(MTE2_V, 0)
    asc.muls(b, b, 2.0, count=256)
    sync(V_MTE3, 0)
    asc.data_copy(z_gm[256:], b, 256)

x = np.arange(256, dtype=np.float32)
z = np.zeros(512, np.float32)
kernel[1](x, z)
assert (z[:256] == x + 1).all() and (z[256:] == 2 * x).all()
"""

SOFT = """
@asc.jit
def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, space: asc.GlobalAddress):
    block = asc.get_block_idx()
    x_gm = gm(x + block * 64)
    z_gm = gm(z)
    space_gm = gm(space)
    a = ub(0, 64)
    b = ub(256, 64)
    slots = ub(1024, 64, asc.int32)
    for i in range(3):
        asc.data_copy(a, x_gm, 64)
        sync(MTE2_MTE3, 0)
        asc.data_copy(z_gm[i * 256 + block * 64:], a, 64)
        asc.sync_all(space_gm, slots)
        asc.data_copy(b, z_gm[i * 256 + (block + 1) % 4 * 64:], 64)
        sync(MTE2_MTE3, 0)
        asc.data_copy(z_gm[768 + i * 256 + block * 64:], b, 64)
        barrier(ALL)

x = np.arange(256, dtype=np.float32)
z = np.zeros(6 * 256, np.float32)
space = np.zeros(64, np.int32)
kernel[4](x, z, space)
assert (z.reshape(6, 4, 64)[:3] == x.reshape(4, 64)).all()
assert (z.reshape(6, 4, 64)[3:] == np.roll(x.reshape(4, 64), -1, 0)).all()
"""

CHAIN = """
@asc.jit
def kernel(z: asc.GlobalAddress, space: asc.GlobalAddress):
    block = asc.get_block_idx()
    z_gm = gm(z)
    space_gm = gm(space)
    a = ub(0, 64)
    words = ub(1024, 8, asc.int32)
    if block > 0:
        asc.ib_wait(space_gm, words, block - 1, 0)
        asc.data_copy(a, z_gm[(block - 1) * 64:], 64)
        sync(MTE2_V, 0)
        asc.adds(a, a, 1.0, count=64)
    else:
        asc.duplicate(a, 1.0, 64)
    sync(V_MTE3, 0)
    asc.data_copy(z_gm[block * 64:], a, 64)
    if block < 3:
        asc.ib_set(space_gm, words, block, 0)

z = np.zeros(256, np.float32)
space = np.zeros(64, np.int32)
kernel[4](z, space)
assert (z.reshape(4, 64) == np.arange(1, 5)[:, None]).all()
"""

TURNS = """
@asc.jit
def kernel(z: asc.GlobalAddress, space: asc.GlobalAddress):
    z_gm = gm(z)
    space_gm = gm(space)
    a = ub(0, 64)
    words = ub(1024, 64, asc.int32)
    asc.duplicate(words, 0, 64)
    sync(V_S, 0)
    words.set_value(24, 1)
    asc.wait_pre_block(space_gm, words)
    asc.data_copy(a, z_gm, 64)
    sync(MTE2_V, 0)
    asc.adds(a, a, 1.0, count=64)
    sync(V_MTE3, 0)
    asc.data_copy(z_gm, a, 64)
    asc.notify_next_block(space_gm, words)

z = np.zeros(64, np.float32)
space = np.zeros(64, np.int32)
kernel[3](z, space)
assert (z == 3).all()
"""

SOFTMAX = """
@asc.jit(auto_sync=False)
def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, rows: int):
    x_gm = gm(x + asc.get_block_idx() * rows * 64)
    z_gm = gm(z + asc.get_block_idx() * rows * 64)
    a = ub(0, 64)
    b = ub(256, 64)
    work = ub(512, 64)
    peak = ub(1024, 8)
    for row in range(rows):
        asc.data_copy(a, x_gm[row * 64:], 64)
        sync(MTE2_V, 0)
        asc.reduce_max(peak, a, work, count=64)
        sync(V_S, 0)
        top = peak.get_value(0)
        sync(S_V, 0)
        asc.adds(b, a, 0.0 - top, count=64)
        barrier(V)
        asc.exp(b, b, 64)
        barrier(V)
        asc.reduce_sum(peak, b, work, count=64)
        sync(V_S, 0)
        total = peak.get_value(0)
        sync(S_V, 0)
        asc.muls(b, b, 1.0 / total, count=64)
        sync(V_MTE3, 0)
        asc.data_copy(z_gm[row * 64:], b, 64)
        sync(MTE3_MTE2, 0)

x = np.random.default_rng(0).random((8, 64), dtype=np.float32)
z = np.zeros_like(x)
kernel[2](x, z, 4)
powers = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(z, powers / powers.sum(1, keepdims=True), rtol=1e-5)
"""

HALF_SUMS = """
@asc.jit(auto_sync=False)
def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress):
    x_gm = gm(x)
    z_gm = gm(z)
    a = ub(0, 512, asc.float16)
    b = ub(1024, 16, asc.float16)
    asc.data_copy(a, x_gm, 512)
    sync(MTE2_V, 0)
    for i in range(4):
        asc.whole_reduce_sum(b[i:], a[i * 128:], 128, 1, 1, 1, 8)
    sync(V_MTE3, 0)
    asc.data_copy_pad(z_gm, b, asc.DataCopyExtParams(1, 8, 0, 0, 0))

x = np.random.default_rng(0).integers(-2, 3, 512).astype(np.float16)
z = np.zeros(16, np.float16)
kernel[1](x, z)
assert (z[:4] == x.reshape(4, 128).sum(1)).all() and not z[4:].any()
"""

MESSAGE = """
@asc.jit
def kernel(z: asc.GlobalAddress, w: asc.GlobalAddress):
    z_gm = gm(z)
    w_gm = gm(w)
    a = ub(0, 16, asc.int32)
    if asc.get_block_idx() == 0:
        {writer}
    asc.sync_all()
    if asc.get_block_idx() == 1:
        {reader}

z = np.zeros(32, np.int32)
w = np.zeros(32, np.int32)
kernel[2](z, w)
assert (z[:1] == 5).all(), z
"""
LINE = "asc.data_cache_clean_and_invalid(asc.CacheLine.SINGLE_CACHE_LINE, {of}_gm)"


def message(name: str, writer: str, reader: str) -> Scenario:
    """A word from core 0 to core 1 through w."""
    sides = (side.strip("\n").replace("\n", "\n        ") for side in (writer, reader))
    return Scenario(name, MESSAGE.format(writer=next(sides), reader=next(sides)))


BY_SCALAR = "w_gm.set_value(0, 5)\n" + LINE.format(of="w")
BY_COPY = "asc.duplicate(a, 5, 16)\nsync(V_MTE3, 0)\nasc.data_copy(w_gm, a, 16)"
TO_SCALAR = LINE.format(of="w") + "\nvalue = w_gm.get_value(0)\nz_gm.set_value(0, value)\n" + LINE.format(of="z")
TO_COPY = "asc.data_copy(a, w_gm, 16)\nsync(MTE2_MTE3, 0)\nasc.data_copy(z_gm, a, 16)"

ROWS = (
    whole("C01", QUEUES.format(depth=1, number=2)),
    whole("C01-single", QUEUES.format(depth=1, number=1)),
    whole("C01-depth-2", QUEUES.format(depth=2, number=2)),
    clean(
        "C02",
        """
set(MTE3_MTE2, 0)
set(MTE3_MTE2, 1)
for i in range(n):
    at = i % 2 * 128
    wait(MTE3_MTE2, i % 2)
    asc.data_copy(a[at:], x_gm[i * 32:], 32)
    sync(MTE2_V, i % 2)
    asc.adds(b[at:], a[at:], 1.0, count=32)
    sync(V_MTE3, i % 2)
    asc.data_copy(z_gm[i * 32:], b[at:], 32)
    set(MTE3_MTE2, i % 2)
wait(MTE3_MTE2, 0)
wait(MTE3_MTE2, 1)
""",
        "assert (z == x + 1).all()",
    ),
    clean(
        "C02-ahead",
        """
asc.data_copy(a, x_gm, 32)
set(MTE2_V, 0)
set(V_MTE2, 1)
set(MTE3_V, 0)
set(MTE3_V, 1)
for i in range(n):
    now = i % 2
    after = 1 - now
    wait(V_MTE2, after)
    if i + 1 < n:
        asc.data_copy(a[after * 128:], x_gm[i * 32 + 32:], 32)
    set(MTE2_V, after)
    wait(MTE2_V, now)
    wait(MTE3_V, now)
    asc.adds(b[now * 128:], a[now * 128:], 1.0, count=32)
    set(V_MTE2, now)
    sync(V_MTE3, now)
    asc.data_copy(z_gm[i * 32:], b[now * 128:], 32)
    set(MTE3_V, now)
wait(V_MTE2, 1)
wait(MTE2_V, 0)
wait(MTE3_V, 0)
wait(MTE3_V, 1)
""",
        "assert (z == x + 1).all()",
    ),
    clean(
        "C03",
        """
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
asc.adds(a, a, 1.0, count=256)
barrier(V)
asc.add(a, a, a, 256)
sync(V_MTE3, 0)
asc.data_copy(z_gm, a, 256)
""",
        "assert (z == 2 * (x + 1)).all()",
    ),
    clean(
        "C03-accumulate",
        """
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
asc.duplicate(b, 0.0, 64)
barrier(V)
asc.add(b, a, b, mask=64, repeat_times=4, repeat_params=asc.BinaryRepeatParams(1, 1, 1, 0, 8, 0))
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 64)
""",
        "assert (z.reshape(4, 256)[:, :64] == x.reshape(4, 4, 64).sum(1)).all()",
    ),
    clean(
        "C04",
        """
out_gm = gm(z)
asc.data_copy(a, x_gm, 256)
sync(MTE2_MTE3, 0)
asc.set_atomic_add(asc.float32)
asc.data_copy(out_gm, a, 256)
asc.set_atomic_none()
""",
        "assert (z[:256] == x.reshape(4, 256).sum(0)).all()",
    ),
    clean(
        "C06",
        """
out_gm = gm(z)
asc.data_copy(a, x_gm, 128)
sync(MTE2_MTE3, 0)
asc.data_copy(z_gm, a, 128)
asc.sync_all()
asc.data_copy(b, out_gm[(block + 1) % 4 * 256:], 128)
sync(MTE2_MTE3, 0)
asc.data_copy(z_gm[128:], b, 128)
""",
        "assert (z.reshape(4, 256)[:, 128:] == np.roll(x.reshape(4, 256)[:, :128], -1, 0)).all()",
    ),
    whole("C06-soft", SOFT),
    whole("C07", CHAIN),
    whole("C07-turns", TURNS),
    clean(
        "C10",
        """
out_gm = gm(z)
asc.data_copy(a, x_gm, 256)
sync(MTE2_MTE3, 0)
asc.data_copy(out_gm[block * 64:], a, repeat_params=asc.DataCopyParams(4, 8, 0, 24))
""",
        "assert (z.reshape(4, 4, 64) == x.reshape(4, 4, 64).swapaxes(0, 1)).all()",
    ),
    clean(
        "C11",
        """
asc.data_copy_pad(a, x_gm, asc.DataCopyExtParams(1, 400, 0, 0, 0), asc.DataCopyPadExtParams(x.dtype, is_pad=False, left_padding=0, right_padding=0, padding_value=0))
sync(MTE2_V, 0)
asc.set_mask_count()
asc.set_vector_mask(100, dtype=asc.float32, mode=asc.MaskMode.COUNTER)
asc.adds(b, a, 1.0, mask=0, repeat_times=1, repeat_params=asc.UnaryRepeatParams(1, 1, 8, 8), is_set_mask=False)
asc.set_mask_norm()
asc.reset_mask()
sync(V_MTE3, 0)
asc.data_copy_pad(z_gm, b, asc.DataCopyExtParams(1, 400, 0, 0, 0))
""",
        "z, x = z.reshape(4, 256), x.reshape(4, 256)\nassert (z[:, :100] == x[:, :100] + 1).all() and not z[:, 100:].any()",
    ),
    clean(
        "C12",
        """
all_gm = gm(x)
asc.data_copy(a, all_gm, 256)
sync(MTE2_MTE3, 0)
asc.data_copy(z_gm, a, 256)
""",
        "assert (z.reshape(4, 256) == x[:256]).all()",
    ),
    whole("C14", POOLS),
    clean(
        "C18",
        """
asc.data_copy(a, x_gm, 256)
barrier(ALL)
asc.adds(b, a, 1.0, count=256)
barrier(ALL)
asc.adds(a, b, 1.0, count=256)
barrier(ALL)
asc.data_copy(z_gm, a, 256)
barrier(ALL)
a.set_value(0, 9.0)
""",
        "assert (z == x + 2).all()",
    ),
    clean(
        "C19",
        """
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
asc.adds(b, a, 1.0, count=256)
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
        "kernel[2](x, z, 0)\nkernel[4](z, x, 0)\nkernel[4](x, z, 0)\nassert z[5] == 5 + 3",
    ),
    clean(
        "C21",
        """
places = ub(4096, 128, asc.uint32)
asc.data_copy(a, x_gm, 256)
sync(MTE2_S, 0)
for i in range(64):
    places.set_value(i, 4 * (63 - i))
    places.set_value(64 + i, 4 * (2 * i))
sync(S_V, 0)
sync(MTE2_V, 0)
asc.gather(b, a, places, 0, count=64)
asc.gather(b[64:], a, places[64:], 0, count=64)
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 128)
""",
        "z, x = z.reshape(4, 256), x.reshape(4, 256)\nassert (z[:, :64] == x[:, 63::-1]).all() and (z[:, 64:128] == x[:, :128:2]).all()",
    ),
    clean(
        "C22",
        """
asc.data_copy(a, x_gm, 256)
asc.data_copy(b, x_gm, 64)
sync(MTE2_V, 0)
asc.add(c, a, b, mask=64, repeat_times=4, repeat_params=asc.BinaryRepeatParams(1, 1, 1, 8, 8, 0))
sync(V_MTE3, 0)
asc.data_copy(z_gm, c, 256)
""",
        "z, x = z.reshape(4, 4, 64), x.reshape(4, 4, 64)\nassert (z == x + x[:, :1]).all()",
    ),
    clean(
        "C23",
        """
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
asc.data_copy(a, x_gm, repeat_params=asc.DataCopyParams(0, 8, 0, 0))
asc.data_copy(a, x_gm, n)
asc.adds(a, a, 1.0, count=n)
asc.adds(b, a, 1.0, count=256)
asc.adds(b, b, 1.0, mask=64, repeat_times=0, repeat_params=asc.UnaryRepeatParams(1, 1, 8, 8))
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
asc.data_copy(z_gm, a, n)
""",
        "assert (z == x + 1).all()",
        n=0,
    ),
    whole("C24", HALF_SUMS),
    clean(
        "C25",
        """
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
asc.adds(b, a, 1.0, count=256)
barrier(V)
asc.muls(c, b, 2.0, count=256)
barrier(V)
asc.data_copy(b, c, 256)
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
barrier(MTE3)
asc.data_copy(z_gm, c, 128)
""",
        "assert (z == 2 * (x + 1)).all()",
    ),
    clean(
        "C26",
        """
out_gm = gm(z)
asc.duplicate(a, 3.0, 256)
sync(V_MTE3, 0)
if block == 0:
    asc.data_copy(out_gm, a, 256)
asc.sync_all()
if block == 1:
    asc.data_copy(b, out_gm, 256)
    sync(MTE2_V, 0)
    asc.adds(b, b, 1.0, count=256)
    sync(V_MTE3, 0)
    asc.data_copy(out_gm, b, 256)
""",
        "assert (z[:256] == 4).all()",
        cores=2,
    ),
    whole("C-softmax", SOFTMAX),
    message("D05", BY_SCALAR, TO_SCALAR),
    message("D06", BY_COPY, TO_SCALAR),
    message("D07", BY_SCALAR, TO_COPY),
)

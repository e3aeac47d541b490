"""Copies of a matrix of halves into UB or, as NZ, into L1: tile sizes, odd widths, reuse through the L2 cache, and all
cores at the same address."""

import asc
import asc.runtime.config as config
import numpy as np

SIDE = 12288


@asc.jit
def to_ub(source: asc.GlobalAddress, width: int, mine: int, first: int, columns: int, times: int,
          most: int, tile_rows: asc.ConstExpr[int], tile: asc.ConstExpr[int]):
    source_gm = asc.GlobalTensor()
    source_gm.set_global_buffer(source)
    local = asc.LocalTensor(source.dtype, asc.TPosition.VECIN, 0, tile_rows * tile)
    start = asc.get_block_idx() * mine
    for _time in range(times):
        for down in range(mine // tile_rows):
            for right in range((columns + tile - 1) // tile):
                column = right * tile
                count = columns - column
                if count > most:
                    count = most
                place = (start + down * tile_rows) * width + first + column
                asc.data_copy_pad(local, source_gm[place:],
                                  asc.DataCopyExtParams(tile_rows, count * 2, (width - count) * 2, 0),
                                  asc.DataCopyPadExtParams(source.dtype, False, 0, 0, 0))


@asc.jit
def to_ub_all(source: asc.GlobalAddress, height: int, width: int, mine: int, turn: int,
              tile_rows: asc.ConstExpr[int], tile: asc.ConstExpr[int]):
    source_gm = asc.GlobalTensor()
    source_gm.set_global_buffer(source)
    source_gm.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
    local = asc.LocalTensor(source.dtype, asc.TPosition.VECIN, 0, tile_rows * tile)
    blocks = asc.get_block_num()
    block = asc.get_block_idx() * turn
    for part in range(height // mine):
        start = (part + block) % blocks * mine
        for down in range(mine // tile_rows):
            for right in range(width // tile):
                asc.data_copy_pad(local, source_gm[(start + down * tile_rows) * width + right * tile:],
                                  asc.DataCopyExtParams(tile_rows, tile * 2, (width - tile) * 2, 0),
                                  asc.DataCopyPadExtParams(source.dtype, False, 0, 0, 0))


@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def to_l1(source: asc.GlobalAddress, width: int, mine: int, first: int, columns: int, times: int,
          most: int, tile_rows: asc.ConstExpr[int], tile: asc.ConstExpr[int]):
    source_gm = asc.GlobalTensor()
    source_gm.set_global_buffer(source)
    local = asc.LocalTensor(source.dtype, asc.TPosition.A1, 0, tile_rows * tile)
    start = asc.get_block_idx() * mine
    for _time in range(times):
        for down in range(mine // tile_rows):
            for right in range((columns + tile - 1) // tile):
                column = right * tile
                count = columns - column
                if count > most:
                    count = most
                place = (start + down * tile_rows) * width + first + column
                asc.data_copy(local, source_gm[place:],
                              intri_params=asc.Nd2NzParams(1, tile_rows, count, 0, width, tile_rows, 1, 0))


@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def to_l1_all(source: asc.GlobalAddress, height: int, width: int, mine: int, turn: int,
              tile_rows: asc.ConstExpr[int], tile: asc.ConstExpr[int]):
    source_gm = asc.GlobalTensor()
    source_gm.set_global_buffer(source)
    source_gm.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
    local = asc.LocalTensor(source.dtype, asc.TPosition.A1, 0, tile_rows * tile)
    blocks = asc.get_block_num()
    block = asc.get_block_idx() * turn
    for part in range(height // mine):
        start = (part + block) % blocks * mine
        for down in range(mine // tile_rows):
            for right in range(width // tile):
                asc.data_copy(local, source_gm[(start + down * tile_rows) * width + right * tile:],
                              intri_params=asc.Nd2NzParams(1, tile_rows, tile, 0, width, tile_rows, 1, 0))


def tiles(target: str, cores: int, tile_rows: int, tile: int, width: int = SIDE, part: int = 1) -> None:
    """Every core copies its rows, or the first 1/`part` of them, once."""
    mine = SIDE // cores // part
    source = np.zeros((mine * cores, width), np.float16)
    (to_ub if target == "UB" else to_l1)[cores](source, width, mine, 0, width, 1, tile, tile_rows, tile)


def four_times(target: str, cores: int, whole: bool, part: int = 1) -> None:
    """Tiles of 64 x 1024, everything four times over. `whole` goes through the whole matrix each time; otherwise a
    quarter of its columns is read four times, then the next."""
    mine = SIDE // cores // part
    source = np.zeros((mine * cores, SIDE), np.float16)
    kernel = to_ub if target == "UB" else to_l1
    if whole:
        kernel[cores](source, SIDE, mine, 0, SIDE, 4, 1024, 64, 1024)
    else:
        kernel[cores](source, SIDE, mine, 0, SIDE // 4, 4, 1024, 64, 1024)


def everyone(target: str, cores: int, height: int, tile_rows: int, turned: bool) -> None:
    """All cores read the whole of a matrix 512 wide, in the same order or each from another place on."""
    source = np.zeros((height, 512), np.float16)
    kernel = to_ub_all if target == "UB" else to_l1_all
    kernel[cores](source, height, 512, height // cores, int(turned), tile_rows, 64)

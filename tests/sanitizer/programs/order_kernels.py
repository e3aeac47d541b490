"""Kernels whose programs meet: what atomic operations order and what they do not."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def last_adds_up(source, parts, counter, target, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr, SEM: tl.constexpr):
    program = tl.program_id(0)
    index = program * BLOCK + tl.arange(0, BLOCK)
    tl.store(parts + program, tl.sum(tl.load(source + index), axis=0))
    arrived = tl.atomic_add(counter, 1, sem=SEM)
    if arrived == PROGRAMS - 1:
        tl.store(target, tl.sum(tl.load(parts + tl.arange(0, PROGRAMS)), axis=0))


def last_arriver(sem: str = "acq_rel", programs: int = 16) -> None:
    source, target = torch.arange(programs * 32.0), torch.zeros(1)
    last_adds_up[(programs,)](
        source, torch.zeros(programs), torch.zeros(1, dtype=torch.int32), target, PROGRAMS=programs, BLOCK=32, SEM=sem
    )
    assert float(target) == float(source.sum())


@triton.jit
def locked(lock, target, GUARD: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(target, tl.load(target) + 1.0)
    if GUARD:
        tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def spin_lock(programs: int = 20) -> None:
    target = torch.zeros(1)
    locked[(programs,)](torch.zeros(1, dtype=torch.int32), target, GUARD=True)
    assert float(target) == programs


@triton.jit
def half_locked(lock, target):
    if tl.program_id(0) % 2 == 0:
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
        tl.store(target, tl.load(target) + 1.0)
        tl.atomic_xchg(lock, 0)
    else:
        tl.store(target, tl.load(target) + 1.0)


def lock_that_some_ignore() -> None:
    half_locked[(8,)](torch.zeros(1, dtype=torch.int32), torch.zeros(1))


@triton.jit
def split_k(a, b, c, locks, K, M: tl.constexpr, STEP: tl.constexpr, PARTS: tl.constexpr, WAITS: tl.constexpr):
    part = tl.program_id(0)
    m, k = tl.arange(0, M), part * STEP + tl.arange(0, STEP)
    one = tl.load(a + m[:, None] * K + k[None, :])
    other = tl.load(b + k[:, None] * M + m[None, :])
    sum_ = tl.dot(one, other, input_precision="ieee")
    place = c + m[:, None] * M + m[None, :]
    if WAITS:
        while tl.atomic_add(locks, 0) != part:
            pass
    if part > 0:
        sum_ += tl.load(place)
    tl.store(place, sum_)
    tl.debug_barrier()
    tl.atomic_add(locks, 1)


def semaphore(waits: bool = True) -> None:
    a, b, c = torch.randn(16, 64), torch.randn(64, 16), torch.zeros(16, 16)
    split_k[(4,)](a, b, c, torch.zeros(1, dtype=torch.int32), 64, M=16, STEP=16, PARTS=4, WAITS=waits)
    if waits:
        torch.testing.assert_close(c, a @ b)


@triton.jit
def publish(data, flag, target, SEM: tl.constexpr, VOLATILE: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(data, 42.0)
        if VOLATILE:
            tl.store(flag, 1)
        else:
            tl.atomic_xchg(flag, 1, sem=SEM)
    else:
        if VOLATILE:
            while tl.load(flag, volatile=True) == 0:
                pass
        else:
            while tl.atomic_add(flag, 0, sem=SEM) == 0:
                pass
        tl.store(target + tl.program_id(0), tl.load(data))


def message(sem: str = "acq_rel", volatile: bool = False) -> None:
    target = torch.zeros(4)
    publish[(4,)](torch.zeros(1), torch.zeros(1, dtype=torch.int32), target, SEM=sem, VOLATILE=volatile)
    assert target.tolist() == [0, 42, 42, 42]


@triton.jit
def mixed(target):
    if tl.program_id(0) == 0:
        tl.store(target, 0.0)
    tl.atomic_add(target, 1.0)


def plain_beside_atomic() -> None:
    mixed[(8,)](torch.zeros(1))


@triton.jit
def poll(flag, target):
    while tl.load(flag, volatile=True) == 0:
        pass
    tl.store(target + tl.program_id(0), 1.0)


@triton.jit
def turn_about(flag):
    own = tl.program_id(0)
    while tl.atomic_add(flag + 1 - own, 0) == 0:
        pass
    tl.atomic_xchg(flag + own, 1)


def each_waits_for_the_other() -> None:
    turn_about[(2,)](torch.zeros(2, dtype=torch.int32))


@triton.jit
def all_meet(counter, data, target, PROGRAMS: tl.constexpr):
    own = tl.program_id(0)
    tl.store(data + own, own.to(tl.float32))
    tl.atomic_add(counter, 1)
    while tl.atomic_add(counter, 0) < PROGRAMS:
        pass
    tl.store(target + own, tl.load(data + (own + 1) % PROGRAMS))


def grid_barrier(programs: int = 100) -> None:
    target = torch.zeros(programs)
    all_meet[(programs,)](torch.zeros(1, dtype=torch.int32), torch.zeros(programs), target, PROGRAMS=programs)
    assert target.tolist() == [*range(1, programs), 0]

"""What a row orders, carried out on the clocks, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from npuscope.sanitizer.order import clocks
from npuscope.sanitizer.order.clocks import PIPES, message
from npuscope.sanitizer.order.events import ALL, Action, S
from npuscope.sanitizer.order.segments import clear_pages
from npuscope.sanitizer.order.state import COUNT, PAGE_BITS
from npuscope.sanitizer.order.tables import (
    ACTION,
    DRAINS,
    FRAMEWORK,
    GIVES,
    OPERAND,
    ROW_A,
    ROW_B,
    ROW_D,
    ROW_OPCODE,
    ROW_ORIGIN,
    SIGNAL,
    TAKES,
)

NONE, SET_FLAG, WAIT_FLAG, BARRIER = int(Action.NONE), int(Action.SET_FLAG), int(Action.WAIT_FLAG), int(Action.BARRIER)
POST, SYNC_ALL = int(Action.POST), int(Action.SYNC_ALL)
DATA_BARRIER, KERNEL_END = int(Action.DATA_BARRIER), int(Action.KERNEL_END)
SOFT_SYNC = 2
IN_SEQUENCE = 3
FLAG_KEY = 1 << 60
LIBRARY_FLAG = 15
"""Stands for the id of a flag that the library sets and waits for in one go: queue flags begin at 16, a program's ids
end below."""


@njit(cache=True)
def act(
    clock: np.ndarray, foreign: np.ndarray, messages: np.ndarray, history: np.ndarray, index: np.ndarray,
    used: np.ndarray, core_page: np.ndarray, pages: np.ndarray, segments: np.ndarray, opcodes: np.ndarray,
    instruction: np.ndarray, row: int, core: int, pipe: int, ended: np.ndarray,
) -> None:
    """What the row orders."""
    opcode = instruction[ROW_OPCODE, row]
    action = opcodes[ACTION, opcode]
    a = instruction[ROW_A, row]
    agent = S if pipe == ALL else pipe
    if action == SET_FLAG or action == WAIT_FLAG:
        number = instruction[ROW_B, row]
        if instruction[ROW_ORIGIN, row] == FRAMEWORK:
            number = instruction[ROW_D, row]
            if number == 0:
                number = LIBRARY_FLAG
        told = message(messages, index, used, FLAG_KEY | (core << 32) | (a << 24) | number)
        if action == SET_FLAG:
            clocks.set_flag(clock, messages, told, core, agent)
        else:
            clocks.wait_flag(clock, foreign, history, used, messages, told, core, agent)
        return
    if action == BARRIER and pipe != ALL:
        clock[core, pipe, pipe] = clock[core, pipe, COUNT]
        return
    if action == KERNEL_END:
        ended[core] = True
        for space in range(core_page.shape[1]):
            page = core_page[core, space]
            if page >= 0:
                size = core_page[core_page.shape[0] - 1, space]
                clear_pages(pages, segments, used, page, page + ((size - 1) >> PAGE_BITS) + 1)
        return
    arrives = action == SYNC_ALL and a == 0
    if opcodes[DRAINS, opcode] or action == BARRIER or arrives or (action == DATA_BARRIER and a != IN_SEQUENCE):
        clocks.drain(clock, foreign, history, used, core)
    if foreign.shape[0] == 1:
        return  # no core learns of another one
    if action == POST:
        told = clocks.snapshot(clock, foreign, used, core, agent)
        clocks.learn(clock, foreign, history, used, instruction[ROW_B, row], S, told)
        return
    gives, takes = opcodes[GIVES, opcode] != 0, opcodes[TAKES, opcode] != 0
    if action == SYNC_ALL:
        soft = instruction[ROW_B, row] == SOFT_SYNC
        gives, takes = soft and arrives, soft and not arrives
    if gives or takes:
        key = opcodes[SIGNAL, opcode] | instruction[opcodes[OPERAND, opcode], row]
        told = message(messages, index, used, key)
        if takes:
            clocks.learn(clock, foreign, history, used, core, agent, messages[told, PIPES])
        if gives:
            clocks.release(clock, foreign, used, messages, told, core, agent)

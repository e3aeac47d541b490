"""The lines of simulator logs as columns. One compiled pass over the bytes of a file; no line becomes a Python object.

A text is an array of uint8 that ends with a newline, so that no loop can run past its end. Spans are [start, end)
places in it. Grammar: opprof.md 4.2.
"""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.compiled import inner, outer_free

TICK, PC, IDENT, WORD, START, END = range(6)
"""Rows of the table of `scan_instructions`: the tick; the pc; the ID or -1; the number of the (pipe, mnemonic) pair;
the span of the operands."""
PIPE_START, PIPE_END, NAME_START, NAME_END = range(4)
"""Rows of the table of words: where each (pipe, mnemonic) pair stands for the first time."""
POINT_TICK, POINT_KIND, POINT_ADDRESS, POINT_START, POINT_END = range(5)
"""Rows of the table of `scan_points`."""
MISS, FETCH, CONTROL = range(3)
"""Kinds of points: a miss of the instruction cache, a fetch, and an instruction that the control unit takes up."""
MOVE_TICK, MOVE_UNIT, MOVE_WRITES, MOVE_ADDRESS, MOVE_SIZE, MOVE_INSTRUCTION, MOVE_REQUEST, MOVE_TAG = range(8)
"""Rows of the table of `scan_moves`: what an interface of the transfer units did, -1 where a key is not given."""
GM_UNIT, L1_UNIT, OTHER_UNIT, UB_UNIT = 0, 1, 15, 16
"""Units of interfaces: ``B``, ``L1``, any other, and ``UB<n>`` which is UB_UNIT + n; `UNITS` has the rest."""
UNITS = {b"L0A": 2, b"L0B": 3, b"L0C": 4, b"BT": 5, b"FB": 6}

BRACKETS, QUOTES = 1, 2
"""Bits of what the operands of a log hold: a bracket (SIMT), a quote (JSON)."""
SHORTEST_INSTRUCTION, SHORTEST_POINT, SHORTEST_MOVE = 28, 24, 18
"""Bytes that a line with a row has at least: room for rows is made by it."""

NEWLINE, SPACE, TAB = 10, 32, 9
ZERO, NINE, LOWER_A, LOWER_F, UPPER_A, UPPER_F = 48, 57, 97, 102, 65, 70
COMMA, COLON, DOT, OPEN, CLOSE, BRACKET, BRACKET_END, BRACE = 44, 58, 46, 40, 41, 91, 93, 123
AT, EQUALS, QUOTE, LOWER_X, UPPER_X, LOWER_I, UPPER_I, UPPER_R, UPPER_W = 64, 61, 34, 120, 88, 105, 73, 82, 87
AFTER_NAME = (OPEN, COMMA, BRACE)
BEFORE_PC, BEFORE_CODE, BEFORE_ID, NOISE = (
    np.frombuffer(words, np.uint8) for words in (b"(PC:", b"(Binary:", b"(ID:", b"poped from IQ")
)
IN_WORD = np.array([chr(letter).isalnum() and letter < 128 or letter == 95 for letter in range(256)])
"""Which letters names and keys are made of."""
PLAIN = np.array([letter not in (NEWLINE, BRACKET, QUOTE, int(NOISE[-1])) for letter in range(256)])
"""Which letters of operands tell nothing of the whole log."""
FNV_BASE, FNV_PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)


@inner
def _digits(text: np.ndarray, at: int) -> tuple[int, int]:
    """(value, place after it) of decimal digits; the place is `at` where there are none."""
    value = 0
    while ZERO <= text[at] <= NINE:
        value = value * 10 + (text[at] - ZERO)
        at += 1
    return value, at


@inner
def _hex(text: np.ndarray, at: int) -> tuple[int, int]:
    """(value, place after it) of hexadecimal digits, with or without 0x; the place is `at` where there are none."""
    begin = at
    if text[at] == ZERO and (text[at + 1] == LOWER_X or text[at + 1] == UPPER_X):
        at += 2
    first = at
    value = 0
    while True:
        letter = text[at]
        if ZERO <= letter <= NINE:
            value = value * 16 + (letter - ZERO)
        elif LOWER_A <= letter <= LOWER_F:
            value = value * 16 + (letter - LOWER_A + 10)
        elif UPPER_A <= letter <= UPPER_F:
            value = value * 16 + (letter - UPPER_A + 10)
        else:
            break
        at += 1
    return value, at if at > first else begin


@inner
def _blanks(text: np.ndarray, at: int) -> int:
    """The place of the next letter that is no blank."""
    while text[at] == SPACE or text[at] == TAB:
        at += 1
    return at


@inner
def _after_info(text: np.ndarray, at: int) -> int:
    """The place after ``[info]`` and blanks, where the line begins with it."""
    if text[at] == BRACKET and text[at + 1] == LOWER_I:
        while text[at] != BRACKET_END and text[at] != NEWLINE:
            at += 1
        if text[at] == BRACKET_END:
            at += 1
    return _blanks(text, at)


@inner
def _same(text: np.ndarray, start: int, end: int, other: int, other_end: int) -> bool:
    """Whether two spans hold the same letters."""
    if end - start != other_end - other:
        return False
    step = 0
    while start + step < end and text[start + step] == text[other + step]:
        step += 1
    return start + step == end


@inner
def _begins(text: np.ndarray, at: int, pattern: np.ndarray) -> bool:
    """Whether `pattern`, which holds no newline, stands at a place."""
    step = 0
    while step < pattern.size and text[at + step] == pattern[step]:
        step += 1
    return step == pattern.size


@inner
def _part_begins(text: np.ndarray, at: int, patterns: np.ndarray, first: int, end: int) -> bool:
    """Whether that part of `patterns`, which holds no newline, stands at a place."""
    step = first
    while step < end and text[at] == patterns[step]:
        step += 1
        at += 1
    return step == end


@inner
def _hashed(text: np.ndarray, start: int, end: int, letters: np.uint64) -> np.uint64:
    """A hash of a span's letters, beginning with that of what stands before."""
    for at in range(start, end):
        letters = (letters ^ np.uint64(text[at])) * FNV_PRIME
    return letters


@inner
def _stamp(text: np.ndarray, at: int) -> tuple[int, int, int]:
    """(tick, pc, place after them) of ``[<tick>](PC: 0x<hex>)``, the place -1 where a line does not begin so."""
    if text[at] != BRACKET:
        return 0, 0, -1
    tick, after = _digits(text, at + 1)
    if after == at + 1 or text[after] != BRACKET_END:
        return 0, 0, -1
    at = _blanks(text, after + 1)
    if not _begins(text, at, BEFORE_PC):
        return 0, 0, -1
    at = _blanks(text, at + BEFORE_PC.size)
    pc, after = _hex(text, at)
    if after == at or text[after] != CLOSE:
        return 0, 0, -1
    return tick, pc, after + 1


@inner
def _pipe(text: np.ndarray, at: int) -> tuple[int, int, int]:
    """(start, end, place after the encoding) of ``[@CORE<n>] <PIPE> ... (Binary: 0x<hex>)``, the place -1 where it is
    not there."""
    if text[at] == AT:
        while text[at] != SPACE and text[at] != NEWLINE:
            at += 1
    start = at = _blanks(text, at)
    while IN_WORD[text[at]]:
        at += 1
    end = at
    while text[at] != OPEN and text[at] != NEWLINE:
        at += 1
    if end == start or not _begins(text, at, BEFORE_CODE):
        return 0, 0, -1
    while text[at] != CLOSE and text[at] != NEWLINE:
        at += 1
    return start, end, (at + 1 if text[at] == CLOSE else -1)


@inner
def _ident(text: np.ndarray, at: int) -> tuple[int, int]:
    """(number, place of the mnemonic) of ``[(ID: <n>)]``, the number -1 where there is none."""
    at = _blanks(text, at)
    if not _begins(text, at, BEFORE_ID):
        return -1, at
    ident, at = _digits(text, _blanks(text, at + BEFORE_ID.size))
    return ident, _blanks(text, at + 1 if text[at] == CLOSE else at)


@inner
def _operands(text: np.ndarray, line: int, at: int) -> tuple[int, int, bool]:
    """(place of the line's end, what the operands hold, whether the line speaks of a queue)."""
    held = 0
    noise = False
    while True:
        while PLAIN[text[at]]:
            at += 1
        letter = text[at]
        if letter == NEWLINE:
            return at, held, noise
        if letter == BRACKET:
            held |= BRACKETS
        elif letter == QUOTE:
            held |= QUOTES
        elif at - NOISE.size >= line and _begins(text, at + 1 - NOISE.size, NOISE):
            noise = True
        at += 1


@inner
def _word(text: np.ndarray, span: tuple[int, int, int, int], table: np.ndarray, words: np.ndarray, known: int) -> int:
    """The number of a (pipe, mnemonic) pair; it is `known` where the pair is new, and then put into the table."""
    pipe, pipe_end, name, name_end = span
    letters = _hashed(text, name, name_end, _hashed(text, pipe, pipe_end, FNV_BASE) * FNV_PRIME)
    slot = np.int64(letters ^ (letters >> np.uint64(29))) & (table.size - 1)
    while table[slot] >= 0:
        word = table[slot]
        if _same(text, name, name_end, words[NAME_START, word], words[NAME_END, word]) and _same(
            text, pipe, pipe_end, words[PIPE_START, word], words[PIPE_END, word]
        ):
            return word
        slot = (slot + 1) & (table.size - 1)
    table[slot] = known
    words[PIPE_START, known], words[PIPE_END, known] = pipe, pipe_end
    words[NAME_START, known], words[NAME_END, known] = name, name_end
    return known


def scan_instructions(text: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """(columns, words, letters) of a popped or retire log; `letters` tells what the operands hold, see BRACKETS. Lines
    that are no instruction, or speak of a queue (``poped from IQ``), have no row."""
    lines = text.size // SHORTEST_INSTRUCTION + 1
    columns = np.empty((6, lines), np.int64)
    words = np.empty((4, lines), np.int64)
    table = np.full(max(64, 1 << (2 * lines - 1).bit_length()), -1, np.int64)
    count, known, letters = _instructions(text, columns, words, table)
    return columns[:, :count].copy(), words[:, :known].copy(), letters


@outer_free
def _instructions(text: np.ndarray, columns: np.ndarray, words: np.ndarray, table: np.ndarray) -> tuple[int, int, int]:
    """(rows, words, letters) of `scan_instructions`; the arrays have the room."""
    count = known = letters = at = np.int64(0)  # no literal, for which the inner functions would be compiled twice
    size = text.size
    while at < size:
        line = at
        ident = -1
        pipe = pipe_end = name = name_end = 0
        tick, pc, after = _stamp(text, _after_info(text, at))
        if after >= 0:
            pipe, pipe_end, after = _pipe(text, after)
        if after >= 0:
            ident, name = _ident(text, after)
            name_end = name
            while text[name_end] > SPACE and text[name_end] not in AFTER_NAME:
                name_end += 1
        end, held, noise = _operands(text, line, max(name_end, line))
        at = end + 1
        if name_end == name or noise:
            continue
        letters |= held
        start = name_end
        while start < end and text[start] <= SPACE:
            start += 1
        while end > start and (text[end - 1] <= SPACE or text[end - 1] == COMMA):
            end -= 1
        word = _word(text, (pipe, pipe_end, name, name_end), table, words, known)
        known = max(known, word + 1)
        columns[TICK, count], columns[PC, count], columns[IDENT, count] = tick, pc, ident
        columns[WORD, count], columns[START, count], columns[END, count] = word, start, end
        count += 1
    return int(count), int(known), int(letters)


@inner
def _point_tick(text: np.ndarray, at: int) -> tuple[int, int]:
    """(tick, place after it and its colon), the place -1 where there is none. Forms: ``12:``, ``@12:``, ``[12]:``."""
    if text[at] == AT or text[at] == BRACKET:
        at += 1
    tick, after = _digits(text, at)
    if after == at:
        return 0, -1
    if text[after] == BRACKET_END:
        after += 1
    return (tick, _blanks(text, after + 1)) if text[after] == COLON else (0, -1)


def scan_points(
    text: np.ndarray, patterns: np.ndarray, starts: np.ndarray, kinds: np.ndarray, status: np.ndarray
) -> np.ndarray:
    """(5, points) of an instruction cache or control unit log: tick, kind, address and the span of what follows it, of
    the lines that begin, after their tick, with one of `patterns` (joined; `starts` bounds them). A miss counts where
    the line ends with `status`."""
    points = np.empty((5, text.size // SHORTEST_POINT + 1), np.int64)
    return points[:, : _points(text, patterns, starts, kinds, status, points)].copy()


@outer_free
def _points(
    text: np.ndarray,
    patterns: np.ndarray,
    starts: np.ndarray,
    kinds: np.ndarray,
    status: np.ndarray,
    points: np.ndarray,
) -> int:
    """How many points there are; `points` has the room for them."""
    count = at = np.int64(0)
    size = text.size
    while at < size:
        tick, after = _point_tick(text, _after_info(text, at))
        found, address, start = -1, 0, 0
        if after >= 0:
            at = after
            for number in range(kinds.size):
                if _part_begins(text, at, patterns, starts[number], starts[number + 1]):
                    place = at + starts[number + 1] - starts[number]
                    address, after = _hex(text, place)
                    if after > place:
                        found = number
                        at = start = after
                    break
        while text[at] != NEWLINE:
            at += 1
        end = at
        at += 1
        if found < 0:
            continue
        while text[start] == COMMA or text[start] == SPACE:
            start += 1
        while end > start and text[end - 1] <= SPACE:
            end -= 1
        if kinds[found] == MISS and not _begins(text, end - status.size, status):
            continue
        points[0, count], points[1, count], points[2, count] = tick, kinds[found], address
        points[3, count], points[4, count] = start, end
        count += 1
    return int(count)


@inner
def _unit(text: np.ndarray, start: int, end: int) -> int:
    """The number of the unit whose name is a span: ``B``, ``L1``, ``UB0``; see `UNITS`."""
    size = end - start
    first, second = text[start], text[start + 1]
    if size == 1 and first == 66:  # B
        return GM_UNIT
    if size >= 2 and first == 85 and second == 66:  # UB
        number, _ = _digits(text, start + 2)
        return UB_UNIT + number
    if size == 2 and first == 76 and second == 49:  # L1
        return L1_UNIT
    if size == 3 and first == 76 and second == ZERO and UPPER_A <= text[start + 2] <= 67:  # L0A, L0B, L0C
        return 2 + text[start + 2] - UPPER_A
    if size == 2 and second == 84 and first == 66:  # BT
        return 5
    if size == 2 and second == 66 and first == 70:  # FB
        return 6
    return OTHER_UNIT


@inner
def _key(text: np.ndarray, start: int, end: int) -> int:
    """The row of the table of moves that a key names, -1 for a key that is not used."""
    size = end - start
    first, last = text[start], text[end - 1]
    if size == 4 and first == 115 and last == 101:  # size
        return MOVE_SIZE
    if size == 4 and first == 97 and last == 114:  # addr
        return MOVE_ADDRESS
    if size == 8 and first == 105 and text[start + 5] == 95 and last == 100:  # instr_id
        return MOVE_INSTRUCTION
    if (size == 6 and first == 114 and last == 100) or (size == 3 and first == 103 and last == 100):  # req_id, gid
        return MOVE_REQUEST
    if size == 6 and first == 116 and text[start + 3] == 95 and last == 100:  # tag_id
        return MOVE_TAG
    return -1


def scan_moves(text: np.ndarray) -> np.ndarray:
    """(8, moves) of a transfer log: the lines of interfaces, ``<UNIT>RIF`` or ``<UNIT>WIF``, that name an
    instruction."""
    moves = np.empty((8, text.size // SHORTEST_MOVE + 1), np.int64)
    return moves[:, : _moves(text, moves)].copy()


@outer_free
def _moves(text: np.ndarray, moves: np.ndarray) -> int:
    """How many moves there are; `moves` has the room for them."""
    count = at = np.int64(0)
    size = text.size
    while at < size:
        tick, after = _point_tick(text, _after_info(text, at))
        unit = -1
        writes = False
        if after >= 0:
            at = begin = after
            while text[at] > SPACE and text[at] != COMMA:
                # An interface's name ends in IF, and may have names before and after it, set off by dots.
                if text[at] == DOT and unit < 0:
                    begin = at + 1
                ends = text[at + 1] <= SPACE or text[at + 1] == COMMA or text[at + 1] == DOT
                if ends and text[at] == UPPER_F and text[at - 1] == UPPER_I and at - begin >= 3:
                    letter = text[at - 2]
                    if letter in (UPPER_R, UPPER_W):
                        unit = _unit(text, begin, at - 2)
                        writes = letter == UPPER_W
                at += 1
        if unit >= 0:
            for row in range(8):
                moves[row, count] = -1
            moves[0, count], moves[1, count], moves[2, count] = tick, unit, np.int64(writes)
            while text[at] != NEWLINE:
                word = at
                while IN_WORD[text[at]]:
                    at += 1
                if at > word and text[at] == COLON:
                    row = _key(text, word, at)
                    at = _blanks(text, at + 1)
                    if row >= 0:
                        if text[at] == ZERO and text[at + 1] == LOWER_X:
                            moves[row, count], at = _hex(text, at)
                        else:
                            moves[row, count], at = _digits(text, at)
                elif text[at] != NEWLINE:
                    at += 1
            if moves[MOVE_INSTRUCTION, count] >= 0:
                count += 1
        while text[at] != NEWLINE:
            at += 1
        at += 1
    return int(count)


def numbers_after(text: np.ndarray, starts: np.ndarray, ends: np.ndarray, key: np.ndarray, base: int) -> np.ndarray:
    """The number that stands after the word `key` in each span, -1 where there is none. Between them may stand quotes,
    colons, blanks, an equals sign and the name of a register (``XM:X15=0x10``). A number is hexadecimal after 0x or
    where `base` is 16."""
    found = np.full(starts.size, -1, np.int64)
    _numbers_after(text, starts, ends, key, base, found)
    return found


@outer_free
def _numbers_after(
    text: np.ndarray, starts: np.ndarray, ends: np.ndarray, key: np.ndarray, base: int, found: np.ndarray
) -> None:
    """Put the numbers into `found`."""
    whole = IN_WORD[key[0]]
    for row in range(starts.size):
        end = ends[row]
        for at in range(starts[row], end - key.size + 1):
            if text[at] != key[0] or not _begins(text, at, key):
                continue
            if at > starts[row] and whole and IN_WORD[text[at - 1]]:
                continue  # the end of a longer word
            place = at + key.size
            while place < end and (
                text[place] == COLON or text[place] == SPACE or text[place] == EQUALS or text[place] == QUOTE
            ):
                place += 1
            if text[place] == UPPER_X:
                while place < end and text[place] != EQUALS and text[place] != COMMA:
                    place += 1
                place += 1
            if place >= end:
                break
            prefixed = text[place] == ZERO and (text[place + 1] == LOWER_X or text[place + 1] == UPPER_X)
            if base == 16 or prefixed:
                value, after = _hex(text, place)
            else:
                value, after = _digits(text, place)
            if after > place:
                found[row] = value
            break


def span_hashes(text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """A 64-bit hash of the letters of each span, blanks left out, (spans,) int64."""
    found = np.empty(starts.size, np.int64)
    _span_hashes(text, starts, ends, found)
    return found


@outer_free
def _span_hashes(text: np.ndarray, starts: np.ndarray, ends: np.ndarray, found: np.ndarray) -> None:
    """Put the hashes into `found`."""
    for row in range(starts.size):
        letters = FNV_BASE
        for at in range(starts[row], ends[row]):
            if text[at] > SPACE:
                letters = (letters ^ np.uint64(text[at])) * FNV_PRIME
        found[row] = np.int64(letters)

"""Machine code for what must run without the interpreter's lock.

The activity library asks for buffers and returns them while it holds its own lock, from any thread of the job. Another
thread may hold the interpreter's lock and wait for the library's at that moment; a callback in Python would then wait
for ever. So the callbacks are a few lines of LLVM's language, compiled in the process for its own processor. The walk
over a buffer's records and the reading of one field of them lie here too: they are as short, and the training loop's
threads go on meanwhile.

llvmlite is what numba compiles with; on its own it loads in a tenth of numba's time. Loading it is left until a source
really starts.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.agent.sources.source import Unavailable

COUNT = 32
"""Buffers."""
KINDS = 64
"""Kinds of record that a walk can tell apart."""

REFUSED, FOREIGN, TURNS, DESCRIPTOR, OPEN = range(5)
"""Words at the beginning of the state; each word has 64 bits."""
ADDRESS = 8
STATUS = ADDRESS + COUNT
VALID = STATUS + COUNT
TURN = VALID + COUNT
WORDS = TURN + COUNT
"""Where the words of the buffers begin: address, status, bytes in use, and the how-manyth to be completed it was."""
FREE, LENT, COMPLETE = range(3)

_TEXT = """
@one = private constant i64 1
declare i64 @write(i32, ptr, i64)

; The library wants a buffer: the first free one, or null, counted.
define void @request(ptr %buffer, ptr %size, ptr %records) {{
entry:
  store i64 0, ptr %records
  %open = load atomic i64, ptr inttoptr (i64 {open} to ptr) acquire, align 8
  %closed = icmp eq i64 %open, 0
  br i1 %closed, label %none, label %look
look:
  %i = phi i64 [0, %entry], [%next, %busy]
  %status = getelementptr i64, ptr inttoptr (i64 {status} to ptr), i64 %i
  %pair = cmpxchg ptr %status, i64 {FREE}, i64 {LENT} acq_rel monotonic
  %taken = extractvalue {{i64, i1}} %pair, 1
  br i1 %taken, label %give, label %busy
busy:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {COUNT}
  br i1 %more, label %look, label %refuse
give:
  %place = getelementptr i64, ptr inttoptr (i64 {address} to ptr), i64 %i
  %address = load i64, ptr %place
  store i64 %address, ptr %buffer
  store i64 {size}, ptr %size
  ret void
refuse:
  %counted = atomicrmw add ptr inttoptr (i64 {refused} to ptr), i64 1 monotonic
  br label %none
none:
  store i64 0, ptr %buffer
  store i64 0, ptr %size
  ret void
}}

; The library returns a buffer: mark it complete and wake the thread that decodes. Null comes after a refusal.
define void @completed(ptr %buffer, i64 %size, i64 %valid) {{
entry:
  %wanted = ptrtoint ptr %buffer to i64
  %null = icmp eq i64 %wanted, 0
  br i1 %null, label %done, label %look
look:
  %i = phi i64 [0, %entry], [%next, %other]
  %place = getelementptr i64, ptr inttoptr (i64 {address} to ptr), i64 %i
  %address = load i64, ptr %place
  %same = icmp eq i64 %address, %wanted
  br i1 %same, label %found, label %other
other:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {COUNT}
  br i1 %more, label %look, label %foreign
found:
  %bytes = getelementptr i64, ptr inttoptr (i64 {valid} to ptr), i64 %i
  store i64 %valid, ptr %bytes
  %turn = atomicrmw add ptr inttoptr (i64 {turns} to ptr), i64 1 monotonic
  %order = getelementptr i64, ptr inttoptr (i64 {turn} to ptr), i64 %i
  store i64 %turn, ptr %order
  %status = getelementptr i64, ptr inttoptr (i64 {status} to ptr), i64 %i
  store atomic i64 {COMPLETE}, ptr %status release, align 8
  %descriptor = load i64, ptr inttoptr (i64 {descriptor} to ptr)
  %number = trunc i64 %descriptor to i32
  %written = call i64 @write(i32 %number, ptr @one, i64 8)
  br label %done
foreign:
  %counted = atomicrmw add ptr inttoptr (i64 {foreign} to ptr), i64 1 monotonic
  br label %done
done:
  ret void
}}

; The complete buffer that was returned first, -1 when there is none.
define i64 @oldest() {{
entry:
  br label %look
look:
  %i = phi i64 [0, %entry], [%next, %on]
  %best = phi i64 [-1, %entry], [%better, %on]
  %first = phi i64 [9223372036854775807, %entry], [%earlier, %on]
  %status = getelementptr i64, ptr inttoptr (i64 {status} to ptr), i64 %i
  %is = load atomic i64, ptr %status acquire, align 8
  %complete = icmp eq i64 %is, {COMPLETE}
  %order = getelementptr i64, ptr inttoptr (i64 {turn} to ptr), i64 %i
  %turn = load i64, ptr %order
  %before = icmp slt i64 %turn, %first
  %choose = and i1 %complete, %before
  %better = select i1 %choose, i64 %i, i64 %best
  %earlier = select i1 %choose, i64 %turn, i64 %first
  br label %on
on:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {COUNT}
  br i1 %more, label %look, label %done
done:
  ret i64 %better
}}

; A buffer has been read and may be lent again.
define void @give_back(i64 %i) {{
  %status = getelementptr i64, ptr inttoptr (i64 {status} to ptr), i64 %i
  store atomic i64 {FREE}, ptr %status release, align 8
  ret void
}}
"""

_WALK = """
; From byte %start on, note for each record of a kind with a row where it begins, in units of 4 bytes. Ends where no
; record of a known size follows; returns that byte. %sizes, %rows, %counts are by kind, 64-bit.
define i64 @walk(ptr %bytes, i64 %start, i64 %valid, ptr %sizes, ptr %rows, ptr %starts, i64 %width, ptr %counts) {{
entry:
  br label %record
record:
  %at = phi i64 [%start, %entry], [%after, %on]
  %left = sub i64 %valid, %at
  %enough = icmp sge i64 %left, 4
  br i1 %enough, label %look, label %done
look:
  %place = getelementptr i8, ptr %bytes, i64 %at
  %word = load i32, ptr %place, align 4
  %kind = zext i32 %word to i64
  %possible = icmp ult i64 %kind, {KINDS}
  br i1 %possible, label %measure, label %done
measure:
  %size.place = getelementptr i64, ptr %sizes, i64 %kind
  %size = load i64, ptr %size.place
  %known = icmp ne i64 %size, 0
  %whole = icmp sle i64 %size, %left
  %good = and i1 %known, %whole
  br i1 %good, label %tally, label %done
tally:
  %count.place = getelementptr i64, ptr %counts, i64 %kind
  %count = load i64, ptr %count.place
  %counted = add i64 %count, 1
  store i64 %counted, ptr %count.place
  %row.place = getelementptr i64, ptr %rows, i64 %kind
  %row = load i64, ptr %row.place
  %wanted = icmp sge i64 %row, 0
  br i1 %wanted, label %note, label %on
note:
  %row.start = mul i64 %row, %width
  %index = add i64 %row.start, %count
  %slot = getelementptr i32, ptr %starts, i64 %index
  %unit = lshr i64 %at, 2
  %short = trunc i64 %unit to i32
  store i32 %short, ptr %slot
  br label %on
on:
  %after = add i64 %at, %size
  br label %record
done:
  ret i64 %at
}}

; The different values of a column in the order of their first use, and for each value its place among them. %table
; has 2^%bits zeroed places, more than %n: 1 + the place of a value that hashes to here or before, open addressing.
define i64 @distinct(ptr %values, i64 %n, ptr %table, i64 %bits, ptr %different, ptr %index) {{
entry:
  %shift = sub i64 64, %bits
  %size = shl i64 1, %bits
  %mask = sub i64 %size, 1
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %value, label %done
value:
  %i = phi i64 [0, %entry], [%next, %stored]
  %found = phi i64 [0, %entry], [%found.now, %stored]
  %place = getelementptr i64, ptr %values, i64 %i
  %it = load i64, ptr %place
  %mixed = mul i64 %it, -7046029254386353131
  %hash = lshr i64 %mixed, %shift
  br label %probe
probe:
  %h = phi i64 [%hash, %value], [%h.next, %collision]
  %slot = getelementptr i32, ptr %table, i64 %h
  %held = load i32, ptr %slot
  %empty = icmp eq i32 %held, 0
  br i1 %empty, label %fresh, label %compare
compare:
  %there = zext i32 %held to i64
  %there.index = sub i64 %there, 1
  %there.place = getelementptr i64, ptr %different, i64 %there.index
  %other = load i64, ptr %there.place
  %same = icmp eq i64 %other, %it
  br i1 %same, label %stored, label %collision
collision:
  %h.up = add i64 %h, 1
  %h.next = and i64 %h.up, %mask
  br label %probe
fresh:
  %new.place = getelementptr i64, ptr %different, i64 %found
  store i64 %it, ptr %new.place
  %found.up = add i64 %found, 1
  %found.short = trunc i64 %found.up to i32
  store i32 %found.short, ptr %slot
  br label %stored
stored:
  %found.now = phi i64 [%found, %compare], [%found.up, %fresh]
  %number = phi i64 [%there.index, %compare], [%found, %fresh]
  %to = getelementptr i64, ptr %index, i64 %i
  store i64 %number, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %value, label %done
done:
  %all = phi i64 [0, %entry], [%found.now, %stored]
  ret i64 %all
}}
"""

_FIELD = """
; One field of %n records.
define void @{name}(ptr %base, ptr %starts, i64 %n, ptr %out) {{
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %record, label %done
record:
  %i = phi i64 [0, %entry], [%next, %record]
  %slot = getelementptr i32, ptr %starts, i64 %i
  %short = load i32, ptr %slot
  %unit = zext i32 %short to i64
  %place = getelementptr i32, ptr %base, i64 %unit
{load}
  %to = getelementptr i64, ptr %out, i64 %i
  store i64 %value, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %record, label %done
done:
  ret void
}}
"""
_LOADS = {
    "field64": "  %value = load i64, ptr %place, align 4",
    # Without sign, and all ones, which stands for none, is -1.
    "field32": """
  %word = load i32, ptr %place
  %wide = zext i32 %word to i64
  %none = icmp eq i32 %word, -1
  %value = select i1 %none, i64 -1, i64 %wide""",
}
"""How a field's 64 bits are read, by the function that does so for many records."""

_ADDRESS, _INTEGER = ctypes.c_void_p, ctypes.c_int64


class Code:
    """Compiled functions. They stay in memory for as long as the process lives, because a thread of the library may
    be inside one even while the interpreter ends."""

    def __init__(self, text: str) -> None:
        """Raises Unavailable when llvmlite is missing or too old for the language."""
        try:
            self.addresses = _compiled(text)
        except (ImportError, RuntimeError) as error:
            raise Unavailable(f"llvmlite 0.45 or later is needed, and cannot be used here: {error}") from None

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """A function that can be called from Python; the interpreter's lock is released meanwhile."""
        return ctypes.CFUNCTYPE(result, *arguments)(self.addresses[name])


class Callbacks:
    """The two callbacks and what the thread that decodes needs, over the words at `state`, buffers of `size` bytes."""

    def __init__(self, state: int, size: int) -> None:
        words = {"refused": REFUSED, "foreign": FOREIGN, "turns": TURNS, "descriptor": DESCRIPTOR, "open": OPEN,
                 "address": ADDRESS, "status": STATUS, "valid": VALID, "turn": TURN}  # fmt: skip
        places = {name: state + 8 * word for name, word in words.items()}
        code = Code(_TEXT.format(**places, size=size, FREE=FREE, LENT=LENT, COMPLETE=COMPLETE, COUNT=COUNT))
        self.request = code.addresses["request"]
        self.completed = code.addresses["completed"]
        self.oldest = code.function("oldest", _INTEGER)
        self.give_back = code.function("give_back", None, _INTEGER)


class Walk:
    """`walk`, `field64`, `field32` and `distinct` as described in the text above."""

    def __init__(self) -> None:
        fields = [_FIELD.format(name=name, load=load) for name, load in _LOADS.items()]
        code = Code(_WALK.format(KINDS=KINDS) + "".join(fields))
        self.walk = code.function("walk", _INTEGER, _ADDRESS, _INTEGER, _INTEGER, _ADDRESS, _ADDRESS, _ADDRESS,
                                  _INTEGER, _ADDRESS)  # fmt: skip
        field = (None, _ADDRESS, _ADDRESS, _INTEGER, _ADDRESS)
        self.field64 = code.function("field64", *field)
        self.field32 = code.function("field32", *field)
        self._distinct = code.function("distinct", _INTEGER, _ADDRESS, _INTEGER, _ADDRESS, _INTEGER, _ADDRESS, _ADDRESS)

    def distinct(self, values: Column) -> tuple[Column, Column]:
        """The different values of an int64 column by first use, and for each value its place among them."""
        bits = max(len(values).bit_length() + 1, 4)
        table, different = np.zeros(1 << bits, np.int32), np.empty_like(values)
        index = np.empty_like(values)
        count = self._distinct(values.ctypes.data, len(values), table.ctypes.data, bits, different.ctypes.data,
                               index.ctypes.data)  # fmt: skip
        return different[:count], index


def _compiled(text: str) -> dict[str, int]:
    """The addresses of the functions that a text defines, by name."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = binding.parse_assembly(text)
    module.verify()
    machine = binding.Target.from_default_triple().create_target_machine(opt=2)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    names = [function.name for function in module.functions if not function.is_declaration]
    addresses = {name: engine.get_function_address(name) for name in names}
    engine.detach()  # never freed
    return addresses

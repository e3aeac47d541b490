"""The text of a pyasc kernel that copies in, computes and copies out through queues."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent


@dataclass(frozen=True, slots=True)
class Script:
    """A script that launches its kernel once."""

    text: str


BYTES = {"float32": 4, "float16": 2, "int32": 4, "uint32": 4, "int16": 2, "uint8": 1}


@dataclass(frozen=True, slots=True)
class Operand:
    """A stretch of `count` elements of `dtype`: of one tile where the kernel has several."""

    dtype: str = "float32"
    count: int = 64

    @property
    def bytes(self) -> int:
        """Its size in bytes."""
        return self.count * BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class QueueKernel:
    """`inputs` go through VECIN queues to ``x0``, ``x1``..., `outputs` come from ``z0``, ``z1``... through VECOUT
    queues, `scratch` are buffers ``t0``, ``t1``...; `body` computes the one from the others. `cores` blocks, each with
    `tiles` tiles that follow each other in the arrays, and `buffers` buffers in every queue. `values` are numpy
    expressions of the inputs' elements, with ``n`` for how many; random numbers where there are none. `around` are
    statements before and after the copies out; where there are any, all cores write to the same place."""

    body: str
    inputs: tuple[Operand, ...] = (Operand(),)
    outputs: tuple[Operand, ...] = (Operand(),)
    scratch: tuple[Operand, ...] = ()
    tiles: int = 1
    cores: int = 1
    buffers: int = 1
    values: tuple[str, ...] = ()
    around: tuple[str, str] = ("", "")

    @property
    def text(self) -> str:
        """A script that launches the kernel once."""
        xs, zs = range(len(self.inputs)), range(len(self.outputs))
        names = [f"x{i}" for i in xs] + [f"z{i}" for i in zs]
        lines = [
            "import asc",
            "import numpy as np",
            "",
            "",
            "@asc.jit",
            f"def kernel({', '.join(f'{name}_gm: asc.GlobalAddress' for name in names)}):",
            indent("\n".join([*self._setup(), *self._loop()]), "    "),
            "",
            "",
            "random = np.random.default_rng(0)",
        ]
        total = self.tiles * self.cores
        for name, operand, value in zip(names, self.inputs, self._values(), strict=False):
            lines.append(f"n = {operand.count * total}")
            lines.append(f"{name} = ({value}).astype(np.{operand.dtype})")
        lines += [f"z{i} = np.zeros({self.outputs[i].count * total}, np.{self.outputs[i].dtype})" for i in zs]
        lines.append(f"kernel[{self.cores}]({', '.join(names)})")
        return "\n".join(lines) + "\n"

    @property
    def _spread(self) -> bool:
        return self.cores > 1 and not self.around[0]

    def _values(self) -> list[str]:
        default = "random.random(n) * 8 + 1"
        return [*self.values, *[default] * (len(self.inputs) - len(self.values))]

    def _setup(self) -> list[str]:
        lines = []
        for name, operand in self._named():
            block = operand.count * self.tiles
            lines += [
                f"{name} = asc.GlobalTensor()",
                f"{name}.set_global_buffer({name}_gm + asc.get_block_idx() * {block if self._spread else 0}, {block})",
            ]
        lines.append("pipe = asc.TPipe()")
        for name, operand in self._named():
            position = "VECIN" if name[0] == "x" else "VECOUT"
            lines += [
                f"{name}_queue = asc.TQue(asc.TPosition.{position}, {self.buffers})",
                f"pipe.init_buffer({name}_queue, {self.buffers}, {max(operand.bytes, 32)})",
            ]
        for i, operand in enumerate(self.scratch):
            lines += [
                f"t{i}_buffer = asc.TBuf(asc.TPosition.VECCALC)",
                f"pipe.init_buffer(t{i}_buffer, {max(operand.bytes, 32)})",
            ]
        return lines

    def _named(self) -> list[tuple[str, Operand]]:
        return [
            *((f"x{i}", operand) for i, operand in enumerate(self.inputs)),
            *((f"z{i}", operand) for i, operand in enumerate(self.outputs)),
        ]

    def _loop(self) -> list[str]:
        if self.tiles == 1:
            return self._tile("")
        return [f"for i in range({self.tiles}):", *(indent(line, "    ") for line in self._tile("i * {count}"))]

    def _tile(self, place: str) -> list[str]:
        ins = [(f"x{i}", operand) for i, operand in enumerate(self.inputs)]
        outs = [(f"z{i}", operand) for i, operand in enumerate(self.outputs)]

        def gm(name: str, operand: Operand) -> str:
            return f"{name}[{place.format(count=operand.count)}:]" if place else name

        return [
            *(f"{name}_new = {name}_queue.alloc_tensor(asc.{operand.dtype})" for name, operand in ins),
            *(f"asc.data_copy({name}_new, {gm(name, operand)}, {operand.count})" for name, operand in ins),
            *(f"{name}_queue.enque({name}_new)" for name, _ in ins),
            *(f"{name}_in = {name}_queue.deque(asc.{operand.dtype})" for name, operand in ins),
            *(f"{name}_new = {name}_queue.alloc_tensor(asc.{operand.dtype})" for name, operand in outs),
            *(f"t{i} = t{i}_buffer.get(asc.{operand.dtype})" for i, operand in enumerate(self.scratch)),
            *self.body.format(**{name: f"{name}_in" for name, _ in ins}, **{name: f"{name}_new" for name, _ in outs})
            .strip()
            .splitlines(),
            *(f"{name}_queue.enque({name}_new)" for name, _ in outs),
            *(f"{name}_queue.free_tensor({name}_in)" for name, _ in ins),
            *(f"{name}_out = {name}_queue.deque(asc.{operand.dtype})" for name, operand in outs),
            *self.around[0].splitlines(),
            *(f"asc.data_copy({gm(name, operand)}, {name}_out, {operand.count})" for name, operand in outs),
            *self.around[1].splitlines(),
            *(f"{name}_queue.free_tensor({name}_out)" for name, _ in outs),
        ]

"""Parameter records of the Ascend C API: what `ascendc.construct` builds and structs passed to a kernel hold."""

from __future__ import annotations

from typing import Any


class Record:
    """A plain struct: named fields, and `values` for records whose field names nothing here needs."""

    def __init__(self, type_name: str, values: tuple[Any, ...] = (), **fields: Any) -> None:
        self.type_name = type_name
        self.values = values
        self.__dict__.update(fields)

    def copy(self) -> Record:
        """A struct by value; nested records are copied too."""
        twin = Record(self.type_name, self.values)
        for name, value in self.__dict__.items():
            twin.__dict__[name] = value.copy() if isinstance(value, Record) else value
        return twin

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self.type_name} has no field {name}")

    def __repr__(self) -> str:
        fields = {name: value for name, value in self.__dict__.items() if name not in ("type_name", "values", "type")}
        return f"{self.type_name}({fields or self.values})"


FIELDS: dict[str, dict[str, Any]] = {
    "binary_repeat_params": {
        "dst_blk_stride": 1, "src0_blk_stride": 1, "src1_blk_stride": 1,
        "dst_rep_stride": 8, "src0_rep_stride": 8, "src1_rep_stride": 8,
    },
    "unary_repeat_params": {"dst_blk_stride": 1, "src_blk_stride": 1, "dst_rep_stride": 8, "src_rep_stride": 8},
    "copy_repeat_params": {"dst_stride": 1, "src_stride": 1, "dst_repeat_size": 8, "src_repeat_size": 8},
    "brcb_repeat_params": {"dst_blk_stride": 1, "dst_rep_stride": 8},
    "gather_repeat_params": {"dst_blk_stride": 1, "dst_rep_stride": 8},
    "gather_mask_params": {"src0_block_stride": 1, "repeat_times": 0, "src0_repeat_stride": 8, "src1_repeat_stride": 8},
    "data_copy_params": {"block_count": 1, "block_len": 0, "src_stride": 0, "dst_stride": 0},
    "data_copy_ext_params": {"block_count": 1, "block_len": 0, "src_stride": 0, "dst_stride": 0, "rsv": 0},
    "data_copy_pad_params": {"is_pad": 0, "left_padding": 0, "right_padding": 0, "padding_value": 0},
    "data_copy_pad_ext_params": {"is_pad": 0, "left_padding": 0, "right_padding": 0, "padding_value": 0},
    "nd2nz_params": {
        "nd_num": 1, "n_value": 0, "d_value": 0, "src_nd_matrix_stride": 0, "src_d_value": 0,
        "dst_nz_c0_stride": 0, "dst_nz_n_stride": 0, "dst_nz_matrix_stride": 0,
    },
    "nz2nd_params_full": {
        "nd_num": 1, "n_value": 0, "d_value": 0, "src_nd_matrix_stride": 0, "src_n_stride": 0,
        "dst_d_stride": 0, "dst_nd_matrix_stride": 0,
    },
}
"""Fields in the order of the vendor's constructors, with the vendor's defaults; a file that needs another adds it."""


def construct(type_name: str, type_text: str, *arguments: Any) -> Record:
    """The record `type_name` from positional `arguments`; missing fields take their defaults."""
    names = FIELDS.get(type_name)
    record = Record(type_name, arguments, type=type_text)
    if names is not None:
        record.__dict__.update(names)
        record.__dict__.update(zip(names, arguments, strict=False))
    return record

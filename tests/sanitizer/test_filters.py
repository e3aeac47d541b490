"""Launch filters."""

from __future__ import annotations

import pytest

from npuscope.errors import UserError
from npuscope.sanitizer.filters import LaunchFilter, LaunchSelector
from npuscope.trace.schema import Launch

KERNELS = ["add", "add_bias", "softmax", "add", "matmul"]


@pytest.mark.parametrize(
    ("rule", "taken"),
    [
        (LaunchFilter(), [0, 1, 2, 3, 4]),
        (LaunchFilter(names=("add",)), [0, 1, 3]),
        (LaunchFilter(patterns=("^add$", "mul")), [0, 3, 4]),
        (LaunchFilter(names=("soft",), patterns=("^add$",)), [0, 2, 3]),
        (LaunchFilter(excluded=("add",)), [2, 4]),
        (LaunchFilter(names=("add",), excluded=("bias",)), [0, 3]),
        (LaunchFilter(skip=2), [2, 3, 4]),
        (LaunchFilter(count=2), [0, 1]),
        (LaunchFilter(names=("add",), skip=1, count=1), [1]),
        (LaunchFilter(count=0), []),
    ],
)
def test_which_launches_are_taken(rule: LaunchFilter, taken: list[int]) -> None:
    """Skip and count go by the launches whose name passes."""
    select = LaunchSelector(rule)
    launches = [Launch(index, name, "chip", (), (1,), {}, {}) for index, name in enumerate(KERNELS)]
    assert [launch.index for launch in launches if select(launch)] == taken


def test_a_bad_pattern() -> None:
    with pytest.raises(UserError, match=r"--kernel-regex \("):
        LaunchFilter(patterns=("(",))

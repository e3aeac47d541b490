"""Softmax of 2048 rows of 1024 floats on 8 cores: the example's kernel."""

import sys
from pathlib import Path

import asc.runtime.config as config
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "pyasc"))

from softmax_rows import softmax_kernel  # noqa: E402

CORES, ROWS, WIDTH = 8, 2048, 1024


def prepare() -> tuple[np.ndarray, np.ndarray]:
    """x random, z zero."""
    config.set_platform(config.Backend.Model)
    x = (np.random.default_rng(2).random((ROWS, WIDTH), dtype=np.float32) - 0.5) * 20
    return x, np.zeros_like(x)


def launch(x: np.ndarray, z: np.ndarray) -> None:
    """One launch."""
    softmax_kernel[CORES](x, z, ROWS // CORES, WIDTH)


def right(x: np.ndarray, z: np.ndarray) -> bool:
    """Whether z is what numpy says."""
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return np.allclose(z, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)

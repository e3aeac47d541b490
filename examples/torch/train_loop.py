"""A small model learns to tell which of eight patterns a noisy picture shows. Nothing here knows of a monitor.

python train_loop.py [--seconds N]
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn

PATTERNS, SIDE, BATCH = 8, 12, 32


def pictures(patterns: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch of noisy patterns, and which ones they are."""
    which = torch.randint(PATTERNS, (BATCH,))
    return patterns[which] + 0.7 * torch.randn(BATCH, 1, SIDE, SIDE), which


def main() -> None:
    """Train until the time is up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    end = time.monotonic() + parser.parse_args().seconds
    torch.manual_seed(0)
    torch.set_num_threads(1)
    patterns = torch.randn(PATTERNS, 1, SIDE, SIDE)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 36, PATTERNS)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    while time.monotonic() < end:
        batch, which = pictures(patterns)
        loss = nn.functional.cross_entropy(model(batch), which)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
        time.sleep(0.02)  # as if the next batch were read


if __name__ == "__main__":
    main()

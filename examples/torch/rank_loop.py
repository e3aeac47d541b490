"""A small model is trained by several processes together. Nothing here knows of a monitor.

torchrun --nproc-per-node 3 rank_loop.py [--seconds N] [--slow RANK]
"""

from __future__ import annotations

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH, WIDTH = 64, 256


def main() -> None:
    """Train until the time is up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--slow", type=int, default=-1, help="Rank whose forward pass is made to take longer.")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    slow = dist.get_rank() == options.slow
    model = DistributedDataParallel(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    running, step = torch.ones(1), 0
    while running.item():
        batch = torch.randn(BATCH, WIDTH)
        for _ in range(40 if slow else 1):  # as a card would that has become slow
            loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 20 == 0:
            print(f"rank {dist.get_rank()}, step {step}: loss {loss.item():.3f}", flush=True)
        time.sleep(0.01)  # as if the next batch were read
        running.fill_(time.monotonic() < end)
        dist.all_reduce(running, dist.ReduceOp.MIN)  # all stop after the same step
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""One process of PyTorch's DistributedDataParallel over Gloo, without or with one of its
communication hooks: a contender of `netlab race` and `netlab finish`.

Rank 0 prints "warm" when the measured rounds begin, and JSON at the end, as the other peers do.
The model is `sotto train --model mlp:HIDDEN` on 28 x 28 images: Linear, ReLU, Linear.
"""
import argparse
import datetime
import gzip
import json
import math
import os
import pathlib
import signal
import struct
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

FEATURES = 784
CLASSES = 10
MARK_TIME_S = 0.05  # for who reads "warm", before more goes over the wire


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--store", required=True, help="an empty folder to meet in")
    parser.add_argument("--timeout", type=float, default=120, help="seconds")
    parser.add_argument("--hook", default="none", help="none, fp16 or powersgd:RANK")
    parser.add_argument("--powersgd-start", type=int, default=2,
                        help="rounds of plain all-reduce before PowerSGD begins; 2 or more")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--warm-up", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10, help="at least one")
    parser.add_argument("--mnist", help="a folder of IDX files: train, and print the history")
    parser.add_argument("--eval-every", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.warm_up < 0:
        parser.error("--rounds is 1 or more, and --warm-up not negative")
    return arguments


def read_idx(folder, name):
    """The bytes of an IDX file, gzip or not, as a tensor of the shape that it states."""
    for path in (pathlib.Path(folder) / name, pathlib.Path(folder) / (name + ".gz")):
        if path.exists():
            raw = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
            dimensions = raw[3]
            shape = struct.unpack(f">{dimensions}I", raw[4:4 + 4 * dimensions])
            return torch.frombuffer(bytearray(raw[4 + 4 * dimensions:]),
                                    dtype=torch.uint8).reshape(shape)
    return None


def load_mnist(folder):
    """Training and test examples, split as `sotto train` splits them."""
    parts = []
    for prefix in ("train", "t10k"):
        images = read_idx(folder, prefix + "-images-idx3-ubyte")
        labels = read_idx(folder, prefix + "-labels-idx1-ubyte")
        if images is not None and labels is not None:
            parts.append((images.reshape(len(images), -1).float() / 255, labels.long()))
    if not parts:
        raise FileNotFoundError(f"{folder}: no IDX files of MNIST are there")
    if len(parts) == 2:
        return parts
    images, labels = parts[0]
    split = len(images) * 4 // 5
    return (images[:split], labels[:split]), (images[split:], labels[split:])


def make_model(hidden, seed):
    """He's uniform start, then Glorot's, biases 0: what `sotto train` starts from."""
    torch.manual_seed(seed)
    first = torch.nn.Linear(FEATURES, hidden)
    last = torch.nn.Linear(hidden, CLASSES)
    with torch.no_grad():
        first.weight.uniform_(-1, 1).mul_(math.sqrt(6 / FEATURES))
        last.weight.uniform_(-1, 1).mul_(math.sqrt(6 / (hidden + CLASSES)))
        first.bias.zero_()
        last.bias.zero_()
    return torch.nn.Sequential(first, torch.nn.ReLU(), last)


def add_hook(model, name, start):
    if name == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif name.startswith("powersgd:"):
        state = powerSGD_hook.PowerSGDState(process_group=None,
                                            matrix_approximation_rank=int(name.split(":")[1]),
                                            start_powerSGD_iter=start)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif name != "none":
        raise ValueError(f"--hook {name}: none, fp16 or powersgd:RANK")


class Batches:
    """This node's share of the examples, in a new order for every pass."""

    def __init__(self, examples, batch, rank, size, seed):
        self.images, self.labels = examples
        self.batch = batch
        dealt = torch.randperm(len(self.labels), generator=torch.Generator().manual_seed(seed))
        self.shard = dealt[rank::size]
        self.generator = torch.Generator().manual_seed(seed + 1 + rank)
        self.order = torch.empty(0, dtype=torch.long)

    def next(self):
        while len(self.order) < self.batch:
            shuffled = self.shard[torch.randperm(len(self.shard), generator=self.generator)]
            self.order = torch.cat([self.order, shuffled])
        rows, self.order = self.order[:self.batch], self.order[self.batch:]
        return self.images[rows], self.labels[rows]


def step(model, optimizer, batch):
    optimizer.zero_grad(set_to_none=False)
    torch.nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
    optimizer.step()


def time_rounds(arguments, model, optimizer):
    batch = (torch.rand(arguments.batch, FEATURES), torch.zeros(arguments.batch, dtype=torch.long))
    for _ in range(arguments.warm_up):
        step(model, optimizer, batch)
    dist.barrier()
    if arguments.rank == 0:
        print("warm", flush=True)
    time.sleep(MARK_TIME_S)
    dist.barrier()
    times = []
    begin = before = time.monotonic()
    for _ in range(arguments.rounds):
        step(model, optimizer, batch)
        now = time.monotonic()
        times.append(now - before)
        before = now
    slowest = torch.tensor([before - begin], dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    total = slowest.item()
    times.sort()
    return {"rounds": arguments.rounds, "round_s": total / arguments.rounds,
            "median_s": times[len(times) // 2], "min_s": times[0], "max_s": times[-1],
            "bytes_per_round": None}


def train(arguments, model, optimizer):
    training, test = load_mnist(arguments.mnist)
    batches = Batches(training, arguments.batch, arguments.rank, arguments.size, arguments.seed)
    history = []
    spent = 0.0
    dist.barrier()
    for number in range(1, arguments.rounds + 1):
        begin = time.monotonic()
        step(model, optimizer, batches.next())
        spent += time.monotonic() - begin
        if number % arguments.eval_every == 0 or number == arguments.rounds:
            if arguments.rank == 0:
                with torch.no_grad():
                    scores = model.module(test[0])
                    history.append({
                        "round": number, "time_s": spent,
                        "loss": torch.nn.functional.cross_entropy(scores, test[1]).item(),
                        "accuracy": (scores.argmax(1) == test[1]).float().mean().item()})
            dist.barrier()
    return {"rounds": arguments.rounds, "history": history,
            "dimension": sum(p.numel() for p in model.parameters())}


def main():
    arguments = parse_arguments()
    # A process that hangs ends itself; the parent's own deadline comes sooner or later too.
    signal.alarm(int(arguments.timeout) + (3600 if arguments.mnist else 600))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{arguments.store}/ddp",
                            rank=arguments.rank, world_size=arguments.size,
                            timeout=datetime.timedelta(seconds=arguments.timeout))
    model = DistributedDataParallel(make_model(arguments.hidden, arguments.seed))
    add_hook(model, arguments.hook, arguments.powersgd_start)
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.lr)
    result = (train if arguments.mnist else time_rounds)(arguments, model, optimizer)
    if arguments.rank == 0:
        print(json.dumps(result), flush=True)
    dist.barrier()
    # A process group that is destroyed after a hook in Python waits, with the interpreter locked, for
    # a thread that waits for the lock (PyTorch 1.13).
    os._exit(0)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # the last line on standard error says why
        print(f"ddp_peer: {error}", file=sys.stderr)
        sys.exit(1)

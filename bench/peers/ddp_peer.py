#!/usr/bin/env python3
"""One process of PyTorch's DistributedDataParallel over Gloo, without or with one of its
communication hooks: a contender of `netlab race` and `netlab finish`.

Rank 0 prints "warm" when the measured rounds begin, and JSON at the end, as the other peers do.
It knows two models and their tasks, both as `sotto train` has them: `mlp:HIDDEN` on images of 28 x 28
(`mnist:FOLDER`), and `transformer:LAYERS,WIDTH,HEADS` on the symbols of a text
(`text:FILE,context=N`).
"""
import argparse
import copy
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
from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook
from torch.distributed.algorithms.model_averaging import averagers
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

FEATURES = 784
CLASSES = 10
TEST_PLACES = 4096  # windows of a text that are looked at, at most
MARK_TIME_S = 0.05  # for the reader of "warm", before more goes over the wire


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--store", required=True, help="an empty folder to meet in")
    parser.add_argument("--timeout", type=float, default=120, help="seconds")
    parser.add_argument("--hook", default="none",
                        help="none, fp16, powersgd:RANK or post-local:STEPS between two averages")
    parser.add_argument("--powersgd-start", type=int, default=2,
                        help="rounds of plain all-reduce before PowerSGD begins; 2 or more")
    parser.add_argument("--model", default="mlp:64",
                        help="mlp:HIDDEN or transformer:LAYERS,WIDTH,HEADS")
    parser.add_argument("--task", help="mnist:FOLDER of IDX files or text:FILE[,context=N]: train, "
                                       "and print the history")
    parser.add_argument("--step-rule", default="sgd", choices=("sgd", "adamw"))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--warm-up", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10, help="at least one")
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


def load_text(spec):
    """The symbols of a text as numbers, split as `sotto train` splits them, and the context."""
    path, _, rest = spec.partition(",")
    context = int(rest.removeprefix("context=")) if rest else 8
    content = pathlib.Path(path).read_bytes()
    number = {byte: i for i, byte in enumerate(sorted(set(content)))}
    text = torch.tensor([number[byte] for byte in content])
    cut = len(text) - len(text) // 10
    places = len(text) // 10 - context
    stride = -(-places // TEST_PLACES)
    # Every position of a window is predicted, so that windows one after the other are enough.
    return text, cut, context, range(cut, cut + places, stride * context), len(number)


class Windows:
    """Places of a text, each an example: `context` symbols, and at each position what follows it."""

    def __init__(self, text, context, places):
        self.text, self.context, self.places = text, context, places

    def __len__(self):
        return len(self.places)

    def take(self, rows):
        at = self.places[rows][:, None] + torch.arange(self.context)
        return self.text[at], self.text[at + 1]


class Images:
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def take(self, rows):
        return self.images[rows], self.labels[rows]


def load_task(spec):
    """Training and test examples, and the shape (context, symbols) of a text, or None."""
    kind, _, rest = spec.partition(":")
    if kind == "mnist":
        return (*(Images(*part) for part in load_mnist(rest)), None)
    if kind != "text":
        raise ValueError(f"--task {spec}: mnist:FOLDER or text:FILE[,context=N]")
    text, cut, context, test, symbols = load_text(rest)
    return (Windows(text, context, torch.arange(cut - context)),
            Windows(text, context, torch.tensor(test)), (context, symbols))


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = torch.nn.LayerNorm(width)
        self.c_attn = torch.nn.Linear(width, 3 * width, bias=False)
        self.c_proj = torch.nn.Linear(width, width)
        self.ln_2 = torch.nn.LayerNorm(width)
        self.c_fc = torch.nn.Linear(width, 4 * width)
        self.contract = torch.nn.Linear(4 * width, width)

    def attention(self, u):
        examples, positions, width = u.shape
        split = (examples, positions, self.heads, width // self.heads)
        q, k, v = (part.reshape(split).transpose(1, 2) for part in self.c_attn(u).chunk(3, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(split[3])
        later = torch.ones(positions, positions, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(later, float("-inf")).softmax(dim=3) @ v
        return self.c_proj(mixed.transpose(1, 2).reshape(u.shape))

    def forward(self, h):
        h = h + self.attention(self.ln_1(h))
        return h + self.contract(torch.relu(self.c_fc(self.ln_2(h))))


class Transformer(torch.nn.Module):
    """That of `sotto train`, and its start: GPT-2's deviations, uniform."""

    def __init__(self, layers, width, heads, context, symbols):
        super().__init__()
        self.wte = torch.nn.Embedding(symbols, width)
        self.wpe = torch.nn.Embedding(context, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = torch.nn.LayerNorm(width)
        self.lm_head = torch.nn.Linear(width, symbols)
        with torch.no_grad():
            for name, values in self.named_parameters():
                if values.dim() > 1:
                    bound = 0.02 * math.sqrt(3)
                    if name.endswith(("c_proj.weight", "contract.weight")):
                        bound /= math.sqrt(2 * layers)
                    values.uniform_(-bound, bound)
                elif name.endswith("bias"):
                    values.zero_()

    def forward(self, symbols):
        h = self.wte(symbols) + self.wpe.weight
        for block in self.blocks:
            h = block(h)
        return self.lm_head(self.ln_f(h)).transpose(1, 2)  # classes where cross_entropy has them


def make_perceptron(hidden):
    """He's uniform start, then Glorot's, biases 0: what `sotto train` starts from."""
    first = torch.nn.Linear(FEATURES, hidden)
    last = torch.nn.Linear(hidden, CLASSES)
    with torch.no_grad():
        first.weight.uniform_(-1, 1).mul_(math.sqrt(6 / FEATURES))
        last.weight.uniform_(-1, 1).mul_(math.sqrt(6 / (hidden + CLASSES)))
        first.bias.zero_()
        last.bias.zero_()
    return torch.nn.Sequential(first, torch.nn.ReLU(), last)


def make_model(spec, sequence, seed):
    torch.manual_seed(seed)
    kind, _, sizes = spec.partition(":")
    if kind == "mlp" and sequence is None:
        return make_perceptron(int(sizes))
    if kind == "transformer" and sequence is not None:
        layers, width, heads = (int(size) for size in (sizes or "2,64,4").split(","))
        return Transformer(layers, width, heads, *sequence)
    raise ValueError(f"--model {spec}: mlp:HIDDEN on images, transformer:LAYERS,WIDTH,HEADS on text")


class Trainer:
    """The model that one of the hooks trains: DistributedDataParallel, and what follows a step."""

    def __init__(self, arguments, model):
        self.ddp = DistributedDataParallel(model)
        rule = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[arguments.step_rule]
        settings = {} if arguments.step_rule == "sgd" else {"weight_decay": 0}
        self.optimizer = rule(self.ddp.parameters(), lr=arguments.lr, **settings)
        self.averager = None
        name, _, number = arguments.hook.partition(":")
        if name == "fp16":
            self.ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
        elif name == "powersgd":
            state = powerSGD_hook.PowerSGDState(process_group=None,
                                                matrix_approximation_rank=int(number),
                                                start_powerSGD_iter=arguments.powersgd_start)
            self.ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        elif name == "post-local":
            # Each process is a group of its own, so that gradients stay where they are.
            alone = [dist.new_group([rank]) for rank in range(arguments.size)][arguments.rank]
            state = post_localSGD_hook.PostLocalSGDState(process_group=None, subgroup=alone,
                                                         start_localSGD_iter=0)
            self.ddp.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
            self.averager = averagers.PeriodicModelAverager(period=int(number), warmup_steps=0)
        elif name != "none":
            raise ValueError(f"--hook {arguments.hook}: none, fp16, powersgd:RANK or post-local:STEPS")

    def step(self, batch):
        self.optimizer.zero_grad(set_to_none=False)
        torch.nn.functional.cross_entropy(self.ddp(batch[0]), batch[1]).backward()
        self.optimizer.step()
        if self.averager is not None:
            self.averager.average_parameters(self.ddp.parameters())

    def evaluate(self, test):
        """Loss and accuracy over all that is predicted; of the mean of all nodes' models."""
        model = self.ddp.module
        if self.averager is not None:
            model = copy.deepcopy(model)
            mean = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
            dist.all_reduce(mean)
            torch.nn.utils.vector_to_parameters(mean / dist.get_world_size(), model.parameters())
        loss = right = count = 0
        with torch.no_grad():
            for rows in torch.arange(len(test)).split(256):
                examples, labels = test.take(rows)
                scores = model(examples)
                loss += torch.nn.functional.cross_entropy(scores, labels, reduction="sum").item()
                right += (scores.argmax(1) == labels).sum().item()
                count += labels.numel()
        return {"loss": loss / count, "accuracy": right / count}


class Batches:
    """This node's share of the examples, in a new order for every pass."""

    def __init__(self, examples, batch, rank, size, seed):
        self.examples = examples
        self.batch = batch
        dealt = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed))
        self.shard = dealt[rank::size]
        self.generator = torch.Generator().manual_seed(seed + 1 + rank)
        self.order = torch.empty(0, dtype=torch.long)

    def next(self):
        while len(self.order) < self.batch:
            shuffled = self.shard[torch.randperm(len(self.shard), generator=self.generator)]
            self.order = torch.cat([self.order, shuffled])
        rows, self.order = self.order[:self.batch], self.order[self.batch:]
        return self.examples.take(rows)


def time_rounds(arguments, trainer):
    batch = (torch.rand(arguments.batch, FEATURES), torch.zeros(arguments.batch, dtype=torch.long))
    for _ in range(arguments.warm_up):
        trainer.step(batch)
    dist.barrier()
    if arguments.rank == 0:
        print("warm", flush=True)
    time.sleep(MARK_TIME_S)
    dist.barrier()
    times = []
    begin = before = time.monotonic()
    for _ in range(arguments.rounds):
        trainer.step(batch)
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


def train(arguments, trainer, examples, test):
    batches = Batches(examples, arguments.batch, arguments.rank, arguments.size, arguments.seed)
    history = []
    spent = 0.0
    dist.barrier()
    for number in range(1, arguments.rounds + 1):
        begin = time.monotonic()
        trainer.step(batches.next())
        spent += time.monotonic() - begin
        if number % arguments.eval_every == 0 or number == arguments.rounds:
            if arguments.rank == 0 or trainer.averager is not None:
                history.append({"round": number, "time_s": spent, **trainer.evaluate(test)})
            dist.barrier()
    return {"rounds": arguments.rounds, "history": history,
            "dimension": sum(p.numel() for p in trainer.ddp.parameters())}


def main():
    arguments = parse_arguments()
    # A process that hangs ends itself; the parent's own deadline comes sooner or later too.
    signal.alarm(int(arguments.timeout) + (3600 if arguments.task else 600))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{arguments.store}/ddp",
                            rank=arguments.rank, world_size=arguments.size,
                            timeout=datetime.timedelta(seconds=arguments.timeout))
    if arguments.task:
        examples, test, sequence = load_task(arguments.task)
        trainer = Trainer(arguments, make_model(arguments.model, sequence, arguments.seed))
        result = train(arguments, trainer, examples, test)
    else:
        trainer = Trainer(arguments, make_model(arguments.model, None, arguments.seed))
        result = time_rounds(arguments, trainer)
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

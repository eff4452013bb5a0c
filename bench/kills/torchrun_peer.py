#!/usr/bin/env python3
"""One worker of a job of torchrun on a processor, for elastic_kills.py: DistributedDataParallel
over Gloo, and a checkpoint that the first worker writes at every so many steps, from which all go
on when torchrun has started them again, as its documentation asks of a script.

The model is linear, and a gradient takes --gradient-time, as in `sotto train --gradient-time`. Each
worker writes a line for each step: the time, its process, restarts so far and steps done. A step
that is done again is written again.
"""
import argparse
import datetime
import os
import sys
import time


def load(path, model, rule):
    """The steps that the checkpoint has had; 0: there is none."""
    import torch
    if not os.path.exists(path):
        return 0
    kept = torch.load(path)
    model.load_state_dict(kept["model"])
    rule.load_state_dict(kept["rule"])
    return kept["steps"]


def save(path, model, rule, steps):
    """Writes a checkpoint that is whole or not there."""
    import torch
    torch.save({"model": model.state_dict(), "rule": rule.state_dict(), "steps": steps},
               path + ".new")
    os.replace(path + ".new", path)


def train(options):
    """A worker, until torchrun ends it."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=options.timeout))
    rank = dist.get_rank()
    model = torch.nn.Linear(options.features, options.classes)
    rule = torch.optim.SGD(model.parameters(), lr=0.05)
    checkpoint = os.path.join(options.folder, "checkpoint.pt")
    done = load(checkpoint, model, rule)
    shared = torch.nn.parallel.DistributedDataParallel(model)
    mark = f"{os.getpid()} {os.environ['TORCHELASTIC_RESTART_COUNT']}"
    with open(os.path.join(options.folder, f"rank{rank}.txt"), "a", buffering=1,
              encoding="utf-8") as log:
        while True:
            examples = torch.rand(10, options.features)
            labels = examples[:, :options.classes].argmax(dim=1)
            rule.zero_grad()
            loss = torch.nn.functional.cross_entropy(shared(examples), labels)
            time.sleep(options.gradient_time)
            loss.backward()
            rule.step()
            done += 1
            log.write(f"{time.time():.4f} {mark} {done}\n")
            if rank == 0 and done % options.checkpoint_every == 0:
                save(checkpoint, model, rule, done)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", required=True, help="for the checkpoint and the steps")
    parser.add_argument("--checkpoint-every", type=int, default=100, help="steps")
    parser.add_argument("--timeout", type=float, default=10, help="seconds, of all operations")
    parser.add_argument("--gradient-time", type=float, default=0.005, help="seconds")
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--classes", type=int, default=10)
    train(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())

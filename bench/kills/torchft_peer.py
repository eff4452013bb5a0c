#!/usr/bin/env python3
"""One process of a run of torchft on a processor, for torchft_kills.py: its lighthouse, or a
replica.

A replica takes the mean of the whole gradient by its manager's allreduce, over Gloo, and steps by
torchft's optimizer wrapper. (Its DistributedDataParallel ends the process where a peer dies: with
torchft 0.2.0 and torch 2.15 its hook asserts a future that a failed all-reduce does not have.)
The model is linear, and a gradient takes --gradient-time, as in `sotto train --gradient-time`. It
writes a line for each step: the time, whether the step was committed, steps committed so far and
replicas that take part.
"""
import argparse
import datetime
import logging
import signal
import sys
import threading
import time


def serve_lighthouse(options):
    """The lighthouse, until SIGTERM."""
    from torchft._torchft import LighthouseServer
    server = LighthouseServer(bind=f"127.0.0.1:{options.lighthouse}", min_replicas=options.least,
                              join_timeout_ms=options.join_timeout,
                              heartbeat_timeout_ms=options.heartbeat_timeout)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    while not stop.wait(0.2):
        pass
    server.shutdown()


def train(options):
    """A replica, until it is killed, or SIGTERM."""
    import torch
    import torch.distributed as dist
    from torchft.manager import Manager
    from torchft.optim import OptimizerWrapper
    from torchft.process_group import ProcessGroupGloo

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Linear(options.features, options.classes)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    timeout = datetime.timedelta(seconds=options.timeout)
    rule = torch.optim.SGD(model.parameters(), lr=0.05)

    def take_over(state):
        model.load_state_dict(state["model"])
        rule.load_state_dict(state["rule"])

    manager = Manager(pg=ProcessGroupGloo(timeout=timeout), load_state_dict=take_over,
                      state_dict=lambda: {"model": model.state_dict(), "rule": rule.state_dict()},
                      min_replica_size=options.least, replica_id=options.name, rank=0,
                      world_size=1, store_addr="127.0.0.1", store_port=store.port,
                      hostname="127.0.0.1", timeout=timeout, quorum_timeout=timeout,
                      connect_timeout=timeout,
                      lighthouse_addr=f"http://127.0.0.1:{options.lighthouse}")
    optimizer = OptimizerWrapper(manager, rule)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with open(options.log, "w", buffering=1, encoding="utf-8") as log:
        while not stop.is_set():
            examples = torch.rand(10, options.features)
            labels = examples[:, :options.classes].argmax(dim=1)
            before = manager.current_step()
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(examples), labels)
            time.sleep(options.gradient_time)
            loss.backward()
            mean = torch.cat([one.grad.flatten() for one in model.parameters()])
            manager.allreduce(mean).wait()
            for one, part in zip(model.parameters(),
                                 mean.split([one.numel() for one in model.parameters()])):
                one.grad.copy_(part.view_as(one))
            optimizer.step()
            done = manager.current_step()
            log.write(f"{time.time():.4f} {int(done > before)} {done} "
                      f"{manager.num_participants()}\n")
    manager.shutdown(wait=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lighthouse", type=int, required=True, help="port of the lighthouse")
    parser.add_argument("--name", help="of the replica; without it, this is the lighthouse")
    parser.add_argument("--log", help="file for the replica's steps")
    parser.add_argument("--least", type=int, default=2)
    parser.add_argument("--join-timeout", type=int, help="milliseconds")
    parser.add_argument("--heartbeat-timeout", type=int, help="milliseconds")
    parser.add_argument("--timeout", type=float, default=10, help="seconds, of all operations")
    parser.add_argument("--gradient-time", type=float, default=0.005, help="seconds")
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--classes", type=int, default=10)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    if options.name:
        train(options)
    else:
        serve_lighthouse(options)


if __name__ == "__main__":
    sys.exit(main())

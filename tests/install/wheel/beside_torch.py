"""sotto as installed in a folder beside PyTorch: beside_torch.py FOLDER "FIRST, SECOND". Both communicate."""

import datetime
import importlib
import pathlib
import sys
import threading

FOLDER, ORDER = sys.argv[1:]
for name in ORDER.split(", "):
    importlib.import_module(name)

import sotto.torch  # noqa: E402
import torch  # noqa: E402
import torch.distributed  # noqa: E402


def train(rank, store, found):
    model = torch.nn.Linear(4, 1, bias=False)
    torch.nn.init.zeros_(model.weight)  # threads share the generator of random numbers
    local = torch.optim.SGD(model.parameters(), lr=0.1)
    settings = {
        "nodes": 2,
        "rank": rank,
        "store": store,
        "transport": "gloo",
        "compressor": "quant:8",
    }
    with sotto.torch.DistributedOptimizer(local, module=model, **settings) as optimizer:
        for _ in range(20):
            optimizer.zero_grad()
            (model.weight - rank).square().sum().backward()
            optimizer.step()
    found[rank] = model.weight.detach().clone()


def torch_sum():
    """By PyTorch's own Gloo."""
    store = torch.distributed.HashStore()
    wait = datetime.timedelta(seconds=60)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1, timeout=wait)
    ones = torch.ones(3)
    torch.distributed.all_reduce(ones)
    torch.distributed.destroy_process_group()
    assert ones.tolist() == [1, 1, 1]


def main():
    torch_sum()
    found = {}
    store = sotto.Store()
    nodes = [threading.Thread(target=train, args=(rank, store, found)) for rank in range(2)]
    for node in nodes:
        node.start()
    for node in nodes:
        node.join()
    assert abs(sum(found.values()) / 2 - 0.5).max() < 0.1, found
    torch_sum()
    with open("/proc/self/maps", encoding="utf-8") as maps:
        ours = {line.split()[-1] for line in maps if "/libsotto.so" in line}
    assert len(ours) == 1 and pathlib.Path(*ours).is_relative_to(
        pathlib.Path(FOLDER).resolve()
    ), ours
    print(f"{ORDER}: both run, with PyTorch {torch.__version__}")


main()

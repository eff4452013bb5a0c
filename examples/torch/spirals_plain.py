"""A network learns to tell three spirals apart, on one node.

    python3 spirals_plain.py [STEPS]
"""

import os
import sys

import torch


def spirals(rank, rows):
    """Points of three spirals, and which one each is of; other points on each node."""
    generator = torch.Generator().manual_seed(1 + rank)
    while True:
        kind = torch.randint(3, (rows,), generator=generator)
        away = torch.rand(rows, generator=generator)
        angle = 4 * away + kind * 2.094 + 0.1 * torch.randn(rows, generator=generator)
        yield torch.stack([away * angle.cos(), away * angle.sin()], dim=1), kind


def accuracy(model):
    points, kinds = next(spirals(1000, 2000))
    with torch.no_grad():
        return (model(points).argmax(dim=1) == kinds).float().mean().item()


steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
rank = int(os.environ.get("RANK", 0))
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(2, 64),
    torch.nn.ReLU(),
    torch.nn.Linear(64, 64),
    torch.nn.ReLU(),
    torch.nn.Linear(64, 3),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
for _, (points, kinds) in zip(range(steps), spirals(rank, 32)):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(points), kinds).backward()
    optimizer.step()
    scheduler.step()
if rank == 0:
    print(f"accuracy {accuracy(model):.3f}")

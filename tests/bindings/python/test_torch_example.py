"""examples/torch/spirals.py: from a plain PyTorch program to many nodes it is a few lines."""

import difflib
import pathlib
import socket
import subprocess
import sys

import nodes

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples" / "torch"


def body(name):
    """Without the opening comment."""
    return (EXAMPLES / name).read_text().split('"""', 2)[2].splitlines()


def accuracy(name, count):
    """What node 0 of `count` processes prints; the others print nothing."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for rank in range(count):
        variables = {
            **nodes.environment(),
            "OMP_NUM_THREADS": "1",
            "RANK": str(rank),
            "WORLD_SIZE": str(count),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        started.append(
            subprocess.Popen(
                [sys.executable, str(EXAMPLES / name), "150"],
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    said = [process.communicate(timeout=300) for process in started]
    for process, (_, errors) in zip(started, said):
        assert process.returncode == 0, errors
    assert all(out == "" for out, _ in said[1:])
    return float(said[0][0].removeprefix("accuracy "))


def test_two_lines_differ_and_one_ends_the_run():
    changes = list(difflib.ndiff(body("spirals_plain.py"), body("spirals.py")))
    assert [line[2:] for line in changes if line.startswith("- ")] == [
        "optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)"
    ]
    added = [line[2:] for line in changes if line.startswith("+ ")]
    assert len(added) == 3
    assert (
        added[0] == "from sotto.torch import DistributedOptimizer"
        and added[2] == "optimizer.finish_with_mean()"
    )


def test_four_processes_learn_as_one_does():
    alone = accuracy("spirals_plain.py", 1)
    together = accuracy("spirals.py", 4)
    assert alone > 0.8 and together > alone - 0.05

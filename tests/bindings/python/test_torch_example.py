"""examples/torch/*.py: from a plain PyTorch program to many nodes it is a few lines."""

import difflib
import pathlib
import subprocess
import sys

import nodes

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples" / "torch"


def body(name):
    """Without the opening comment."""
    return (EXAMPLES / name).read_text().split('"""', 2)[2].splitlines()


def run(name, count, *arguments):
    """What node 0 of `count` processes prints; the others print nothing."""
    port = nodes.free_port()
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
                [sys.executable, str(EXAMPLES / name), *arguments],
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
    return said[0][0]


def accuracy(name, count):
    return float(run(name, count, "150").removeprefix("accuracy "))


def loss(said):
    """The last that was printed."""
    return float(said.rsplit("loss ", 1)[1])


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


def test_a_gpt_is_trained_as_people_train_one_and_goes_on_with_the_same_bits(tmp_path):
    words = ["to be", "or not", "that is", "the question", "whether", "nobler", "in the mind"]
    text = tmp_path / "text.txt"
    text.write_text("".join(words[k * k % 7] + ", " for k in range(3000)))
    size = ["--width", "32", "--layers", "1", "--batch", "4", "--rate", "0.01", "--warm-up", "4"]
    small = [str(text), *size, "--every", "8", "--steps", "24"]
    alone = run("train_gpt_plain.py", 1, *small, "--checkpoints", str(tmp_path))
    resumed = run("train_gpt_plain.py", 1, *small, "--checkpoints", str(tmp_path), "--resume", "16")
    assert resumed.startswith("step 24") and alone.endswith(resumed)
    together = run("train_gpt.py", 2, *small, "--checkpoints", str(tmp_path))
    rest = run("train_gpt.py", 2, *small, "--checkpoints", str(tmp_path), "--resume", "16")
    assert rest.startswith("step 24") and together.endswith(rest)
    assert loss(alone) < 2.5 and loss(together) < 2.5
    half = run("train_gpt.py", 2, *small, "--bfloat16", "--algorithm", "allreduce", "--until", "9")
    assert half.startswith("step 8") and loss(half) < 9

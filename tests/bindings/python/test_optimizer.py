"""The optimizer from Python: the same bits as the program, and clear errors."""

import json
import multiprocessing
import os
import subprocess
import threading

import numpy
import pytest

import nodes
import sotto


def program_result(tmp_path, given, rounds, *options):
    """What `sotto train` ends with, a row for each node."""
    program = os.environ.get("SOTTO_PROGRAM")
    if not program:
        pytest.skip("the program is not built")
    nodes.write_problem(given, tmp_path / "problem.json")
    rows = tmp_path / "rows.csv"
    command = [program, "train", "--task", f"quadratic:{tmp_path}/problem.json", "--quiet"]
    command += ["--rounds", str(rounds), "--eval-every", "0", "--seed", "5", "--local"]
    subprocess.run(command + ["--dump-parameters", str(rows), *options], check=True)
    return numpy.loadtxt(rows, delimiter=",", dtype=numpy.float64).astype(numpy.float32)


@pytest.mark.parametrize(
    "settings",
    [
        {"compressor": "quant:4", "lr": 0.05},
        {"algorithm": "choco", "compressor": "topk:0.1", "momentum": 0.9, "nesterov": True},
        {"algorithm": "onebit-adam", "freeze_step": 5, "lr": 0.01},
    ],
)
def test_threads_end_with_the_bits_of_the_program(tmp_path, settings):
    given = nodes.problem(4)
    models = [nodes.start_of(given) for _ in range(4)]
    store = sotto.Store()
    nodes.threads(
        4, lambda rank: nodes.train(given, rank, 40, models[rank], store=store, seed=5, **settings)
    )
    options = []
    for name, value in settings.items():
        option = "--" + name.replace("_", "-")
        options += [option] if value is True else [option, str(value)]
    expected = program_result(tmp_path, given, 40, *options)
    assert numpy.array_equal(numpy.array(models), expected)


def process_node(given, rank, folder):
    x = nodes.start_of(given)
    nodes.train(given, rank, 30, x, rendezvous=f"file:{folder}/store", seed=5, transport="zmq")
    numpy.save(f"{folder}/node-{rank}.npy", x)


def test_processes_end_with_the_bits_of_threads(tmp_path):
    if not any(t["name"] == "zmq" and t["available"] for t in sotto.choices("transports")):
        pytest.skip("this build has no zmq")
    given = nodes.problem(2)
    models = [nodes.start_of(given) for _ in range(2)]
    store = sotto.Store()
    nodes.threads(2, lambda rank: nodes.train(given, rank, 30, models[rank], store=store, seed=5))
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=process_node, args=(given, rank, str(tmp_path))) for rank in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=300)
    assert [process.exitcode for process in processes] == [0, 0]
    for rank in range(2):
        assert numpy.array_equal(numpy.load(tmp_path / f"node-{rank}.npy"), models[rank])


def test_a_state_goes_on_bit_for_bit(tmp_path):
    given = nodes.problem(1)
    whole = nodes.start_of(given)
    nodes.train(given, 0, 20, whole, momentum=0.9)
    x = nodes.start_of(given)
    with sotto.Optimizer(x, nodes=1, momentum=0.9) as optimizer:
        for _ in range(8):
            optimizer.step(nodes.gradient_of(given, 0, x))
        state = optimizer.save()
        optimizer.save_file(tmp_path / "state")
        assert len(state) == (tmp_path / "state").stat().st_size
        with pytest.raises(sotto.Refused, match="path: .* holds a zero byte"):
            optimizer.save_file(tmp_path / "state\0")
    for load in (
        lambda optimizer: optimizer.load(state),
        lambda optimizer: optimizer.load_file(tmp_path / "state"),
    ):
        x = nodes.start_of(given)
        with sotto.Optimizer(x, nodes=1, momentum=0.9) as optimizer:
            load(optimizer)
            assert optimizer.round == 8
            while optimizer.round < 20:
                optimizer.step(nodes.gradient_of(given, 0, x))
        assert numpy.array_equal(x, whole)
    with sotto.Optimizer(x, nodes=1, momentum=0.8) as optimizer:
        with pytest.raises(sotto.Unexpected, match="momentum is 0.8 here and 0.9 there"):
            optimizer.load(state)
    with sotto.Optimizer(x, nodes=1, momentum=0.9) as optimizer:
        with pytest.raises(sotto.Malformed):
            optimizer.load(state[:-1])


def test_nothing_is_copied():
    x = numpy.ones(8, dtype=numpy.float32)
    with sotto.Optimizer(x, nodes=1, lr=0.5) as optimizer:
        assert optimizer.parameters is x
        optimizer.step(numpy.ones((2, 4), dtype=numpy.float32))
        assert numpy.array_equal(x, numpy.full(8, 0.5, dtype=numpy.float32))


@pytest.mark.parametrize(
    "array, error, message",
    [
        (numpy.zeros(8), TypeError, "parameters: the array holds float64; float32 is needed"),
        (numpy.zeros(8, numpy.float32)[::2], ValueError, "parameters: the array is not contiguous"),
        ([0.0, 1.0], TypeError, "parameters: a NumPy array or a PyTorch tensor"),
        (numpy.zeros(0, numpy.float32), sotto.Refused, "count: '0' is refused"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(array, error, message):
    with pytest.raises(error, match=message):
        sotto.Optimizer(array, nodes=1)


def test_a_read_only_array_is_refused():
    x = numpy.zeros(8, numpy.float32)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="parameters: the array is read-only"):
        sotto.Optimizer(x, nodes=1)


def test_settings_that_are_wrong_are_refused_by_name():
    x = numpy.zeros(8, numpy.float32)
    for settings, message in [
        ({"colour": "red"}, "colour: there is no such setting"),
        ({"lr": "much"}, "lr: 'much' is refused"),
        ({"algorithm": "dcd", "compressor": "topk:0.1"}, "unbiased"),
        ({"lazy": "yes"}, "true or false"),
        ({"compressor": "quant:8\0junk"}, "compressor: .* holds a zero byte"),
        ({"lr\0": 1}, "the name of a setting: .* holds a zero byte"),
        ({"layout": [("a\0b", (8,))]}, "layout: .* holds a zero byte"),
        ({"job": {"model": "a\0b"}}, "job.model: .* holds a zero byte"),
    ]:
        with pytest.raises(sotto.Refused, match=message) as caught:
            sotto.Optimizer(x, nodes=1 if "compressor" not in settings else 4, rank=0, **settings)
        assert isinstance(caught.value, ValueError)
        assert caught.value.status == 1


def test_a_gradient_is_checked():
    x = numpy.zeros(8, numpy.float32)
    with sotto.Optimizer(x, nodes=1) as optimizer:
        with pytest.raises(sotto.Refused, match="gradient: '?7 elements"):
            optimizer.step(numpy.zeros(7, numpy.float32))
        bad = numpy.zeros(8, numpy.float32)
        bad[3] = numpy.nan
        with pytest.raises(sotto.NonFinite):
            optimizer.step(bad)
        optimizer.step(numpy.zeros(8, numpy.float32))
        assert optimizer.round == 1


def test_a_closed_optimizer_says_so():
    x = numpy.zeros(8, numpy.float32)
    optimizer = sotto.Optimizer(x, nodes=1)
    optimizer.close()
    optimizer.close()
    with pytest.raises(sotto.Refused, match="optimizer: it is closed"):
        optimizer.step(x)


def test_a_block_that_raises_leaves_at_once_and_its_peer_hears_of_it():
    store = sotto.Store()
    heard = []

    def node(rank):
        x = numpy.zeros(8, numpy.float32)
        try:
            with sotto.Optimizer(x, nodes=2, rank=rank, store=store) as optimizer:
                for round in range(100):
                    if rank == 1 and round == 3:
                        raise KeyError("mine")
                    optimizer.step(x)
        except (KeyError, sotto.PeerLost) as error:
            heard.append(error)

    nodes.threads(2, node)
    assert sorted(type(error).__name__ for error in heard) == ["KeyError", "PeerLost"]
    lost = next(error for error in heard if isinstance(error, sotto.PeerLost))
    assert isinstance(lost, ConnectionError) and str(lost) == "node 1: KeyError: 'mine'"


def test_a_deadline_names_who_did_not_come():
    x = numpy.zeros(8, numpy.float32)
    optimizer = sotto.Optimizer(x, nodes=2, rank=0, store=sotto.Store(), timeout=0.05)
    with pytest.raises(sotto.Deadline, match="1"):
        optimizer.connect()
    optimizer.close()


def test_other_threads_run_while_one_waits_and_a_second_caller_is_refused():
    store = sotto.Store()
    x = numpy.zeros(8, numpy.float32)
    first = sotto.Optimizer(x, nodes=2, rank=0, store=store)
    second = sotto.Optimizer(x.copy(), nodes=2, rank=1, store=store)
    waiting = threading.Thread(target=first.connect)
    waiting.start()  # holds no lock of the interpreter, or this test would end here
    refusal = ""
    while waiting.is_alive() and not refusal:
        try:
            first.round
        except sotto.Refused as refused:
            refusal = str(refused)
    assert "another thread is inside a call" in refusal
    second.connect()
    waiting.join()
    assert first.round == 0


def test_the_report_counts_bytes():
    given = nodes.problem(2)
    store = sotto.Store()
    reports = {}

    def node(rank):
        x = nodes.start_of(given)
        settings = {"compressor": "quant:8", "job": {"model": "none"}}
        with sotto.Optimizer(x, nodes=2, rank=rank, store=store, **settings) as optimizer:
            for _ in range(5):
                optimizer.step(nodes.gradient_of(given, rank, x))
            optimizer.drain()
            reports[rank] = optimizer.report()

    nodes.threads(2, node)
    assert reports[0]["traffic"][0]["frames"] == 5
    assert reports[0]["traffic"][0]["bytes"] > 5 * nodes.DIMENSION
    assert reports[1]["rank"] == 1
    assert reports[1]["job"] == {"model": "none"}
    assert reports[1]["dimension"] == nodes.DIMENSION


def test_who_watches_hears_of_all_nodes_and_of_their_mean(tmp_path):
    given = nodes.problem(4)
    models = [nodes.start_of(given) for _ in range(4)]
    means = [numpy.empty_like(model) for model in models]
    store = sotto.Store()
    log = tmp_path / "run.jsonl"

    def node(rank):
        x = models[rank]
        watched = {"log_json": log, "report_every": 5}
        with sotto.Optimizer(x, nodes=4, rank=rank, store=store, **watched) as optimizer:
            for _ in range(12):
                optimizer.step(nodes.gradient_of(given, rank, x))
            distance = optimizer.mean(means[rank])
            assert distance > 0
            optimizer.evaluated(0.5, accuracy=0.75)

    nodes.threads(4, node)
    assert numpy.allclose(means[0], sum(models) / 4, atol=1e-6)
    assert all(numpy.array_equal(means[0], mean) for mean in means)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["began"] + 4 * ["evaluation"] + ["ended"]
    assert [line["round"] for line in lines[1:5]] == [5, 10, 12, 12]
    assert lines[3]["test_accuracy"] == 0.75 and lines[3]["consensus_distance"] > 0
    assert len(lines[4]["nodes"]) == 4 and lines[4]["traffic_saving"] > 0

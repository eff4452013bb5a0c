#!/usr/bin/env python3
"""Kills random processes of a run of sotto and of one of torchft, one after the other on this
machine, and says what each kill cost: how long the others stood still, how many of their gradients
are in no mean, and how many bytes went over loopback.

Both train a linear model of 64 features and 10 classes by SGD, with gradients of --gradient-time.
torchft has a lighthouse, which is not killed. It is run once for each --heartbeat-timeout, by which
it tells that a replica is gone; 5,000 ms is its default. A kill's time is from SIGKILL until the
last survivor has made a step without the dead. Bytes are those of a network namespace of its own,
where this is run as root; they include what replacements copy.

Says SKIPPED where --python has no torchft (`pip install torchft`).
"""
import argparse
import functools
import importlib.util
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
OWN_NETWORK = "SOTTO_BENCH_OWN_NETWORK"


@functools.cache  # one module, whose Node knows all processes
def epoch_kills():
    """bench/kills/epoch_kills.py as a module."""
    spec = importlib.util.spec_from_file_location("epoch_kills", HERE.parent / "kills" / "epoch_kills.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def enter_own_network():
    """Begins this program again in a network namespace, where that is allowed."""
    if os.environ.get(OWN_NETWORK) or os.geteuid() != 0 or not shutil.which("unshare"):
        return
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        print("no network of its own can be had here: bytes are not counted")
        return
    os.environ[OWN_NETWORK] = "1"
    script = 'ip link set lo up && exec "$@"'
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, *sys.argv])


def loopback_bytes():
    """Bytes that loopback has carried; None where others use it, too."""
    if not os.environ.get(OWN_NETWORK):
        return None
    with open("/proc/net/dev", encoding="utf-8") as table:
        line = next(one for one in table if one.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])


class Replica:
    """A process of torchft."""

    def __init__(self, name, folder, words):
        self.name = name
        self.log = os.path.join(folder, name + ".txt")
        with open(os.path.join(folder, name + ".err"), "wb") as errors:
            self.process = subprocess.Popen(words + ["--name", name, "--log", self.log],
                                            stdout=errors, stderr=errors)

    def steps(self):
        """Its steps: time, whether it was committed, steps committed, replicas that took part."""
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as log:
            rows = [line.split() for line in log if line.endswith("\n")]
        return [(float(row[0]), row[1] == "1", int(row[2]), int(row[3])) for row in rows]

    def next_step(self, since, most):
        """When it made its first step since then with `most` replicas or fewer; None: not yet."""
        return next((at for at, done, _, there in self.steps()
                     if done and at > since and 0 < there <= most), None)


def await_replicas(nodes, limit):
    """Waits until all take part; whether they do in time."""
    end = time.time() + limit
    while time.time() < end:
        last = [node.steps()[-1:] for node in nodes]
        if all(one and one[0][3] == len(nodes) and time.time() - one[0][0] < 2 for one in last):
            return True
        time.sleep(0.2)
    return False


def kill_replica(nodes, victim, folder):
    """What a kill costs, as a row."""
    since = time.time()
    victim.process.kill()
    victim.process.wait()
    nodes.remove(victim)
    end = since + 120
    steps = [None]
    while time.time() < end and None in steps:
        time.sleep(0.02)
        steps = [node.next_step(since, len(nodes)) for node in nodes]
    if None in steps:
        raise SystemExit(f"torchft: after a kill the others stood still: see {folder}")
    lost = sum(1 for node, step in zip(nodes, steps) for at, done, _, _ in node.steps()
               if not done and since < at <= step)
    return {"ms": 1000 * (max(steps) - since), "lost": lost}


def play_torchft(options, heartbeat, folder):
    """A run of torchft; its rows, its steps and its bytes."""
    port = epoch_kills().free_port()
    words = [options.python, str(HERE / "torchft_peer.py"), "--lighthouse", str(port),
             "--gradient-time", str(options.gradient_time / 1000), "--timeout",
             str(options.timeout)]
    with open(os.path.join(folder, "lighthouse.err"), "wb") as errors:
        lighthouse = subprocess.Popen(words + ["--heartbeat-timeout", str(heartbeat)],
                                      stdout=errors, stderr=errors)
    draw, kills = random.Random(options.seed), []
    nodes = []
    try:
        time.sleep(1)
        if lighthouse.poll() is not None:
            raise SystemExit(f"torchft: the lighthouse ended: see {folder}/lighthouse.err")
        nodes += [Replica(f"n{k}", folder, words) for k in range(options.nodes)]
        if not await_replicas(nodes, 180):
            raise SystemExit(f"torchft: the replicas did not come together: see {folder}")
        before, first = loopback_bytes(), nodes[0].steps()[-1][2]
        while len(kills) < options.kills:
            time.sleep(options.every)
            kills.append(kill_replica(nodes, draw.choice(nodes), folder))
            nodes.append(Replica(f"n{options.nodes + len(kills)}", folder, words))
            if not await_replicas(nodes, 180):
                raise SystemExit(f"torchft: a replacement was not taken in: see {folder}")
        steps = nodes[0].steps()[-1][2] - first
        used = None if before is None else loopback_bytes() - before
    finally:
        for node in nodes:
            node.process.kill()
            node.process.wait()
        lighthouse.terminate()
        try:
            lighthouse.wait(timeout=30)
        except subprocess.TimeoutExpired:
            lighthouse.kill()
            lighthouse.wait()
    return kills, steps, used


def play_sotto(options, folder):
    """A run of sotto, in the same terms."""
    try:
        return kill_nodes(options, folder)
    finally:
        epoch_kills().Node.kill_all()


def kill_nodes(options, folder):
    """Starts nodes of sotto, kills some, and ends the others."""
    bench = epoch_kills()
    given = argparse.Namespace(torch=None, sotto=options.sotto, task="digits,train=600,test=200",
                               model="softmax", algorithm="allreduce", nodes=options.nodes,
                               gradient_time=f"{options.gradient_time} ms")
    seeds = [f"127.0.0.1:{bench.free_port()}" for _ in range(2)]
    words = bench.words_of(given, seeds) + ["--rounds", "100000000"]
    nodes = bench.start_together(given, folder, words, seeds)
    kept = nodes[1]  # whose steps are counted
    draw, kills = random.Random(options.seed), []

    def left_out():
        return sum(node.epoch().get("left_out", 0) for node in nodes)

    before, first = loopback_bytes(), kept.status()["round"]
    while len(kills) < options.kills:
        time.sleep(options.every)
        victim = draw.choice([node for node in nodes if node is not kept])
        nodes.remove(victim)
        before_kill = left_out()
        row = bench.kill_one(victim, nodes, folder)
        kills.append({"ms": row["ms"], "lost": left_out() - before_kill})
        nodes.append(bench.Node(f"n{options.nodes + len(kills)}", folder, words))
        if not bench.await_members(nodes, options.nodes, time.time() + 180):
            raise SystemExit(f"sotto: a replacement was not taken in: see {folder}")
    steps = kept.status()["round"] - first
    used = None if before is None else loopback_bytes() - before
    bench.end_all(nodes)
    return kills, steps, used


def figures_of(name, kills, steps, used):
    """One row of the table."""
    spread = epoch_kills().spread([kill["ms"] for kill in kills])
    return {"contender": name, "kills": len(kills), "step_ms": spread, "steps": steps,
            "lost_each": sum(kill["lost"] for kill in kills) / len(kills),
            "bytes_step": None if used is None else used / max(1, steps)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sotto", default="build/sotto", help="the program")
    parser.add_argument("--python", default=sys.executable, help="one that has torchft")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--every", type=float, default=2, help="seconds before a kill")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--gradient-time", type=float, default=20, help="milliseconds")
    parser.add_argument("--heartbeat-timeout", type=int, action="append",
                        help="of torchft's lighthouse, milliseconds; 5000, and 500")
    parser.add_argument("--timeout", type=float, default=10,
                        help="of torchft's operations, seconds")
    parser.add_argument("--seed", type=int, default=1, help="of who is killed")
    parser.add_argument("--only", choices=("sotto", "torchft"), help="one of the two")
    parser.add_argument("--json", help="file for all figures")
    options = parser.parse_args()
    if subprocess.run([options.python, "-c", "import torchft"], capture_output=True,
                      check=False).returncode != 0:
        print(f"SKIPPED: {options.python} cannot import torchft: pip install torchft, or --python")
        return 0
    enter_own_network()
    epoch_kills().end_on_sigterm()
    rows = []
    heartbeats = options.heartbeat_timeout or [5000, 500]
    for heartbeat in [] if options.only == "sotto" else heartbeats:
        with epoch_kills().scratch() as folder:
            rows.append(figures_of(f"torchft, heartbeats {heartbeat} ms",
                                   *play_torchft(options, heartbeat, folder)))
    if options.only != "torchft":
        with epoch_kills().scratch() as folder:
            rows.append(figures_of("sotto", *play_sotto(options, folder)))
    print("contender                    kills   median ms     95 %  slowest  lost/kill  bytes/step")
    for row in rows:
        one, used = row["step_ms"], row["bytes_step"]
        print(f"{row['contender']:28} {row['kills']:5} {one['median']:11.0f} {one['p95']:8.0f} "
              f"{one['slowest']:8.0f} {row['lost_each']:10.1f} "
              + (f"{used:11.0f}" if used else "          –"))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(rows, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""torchft in elastic_kills.py: a lighthouse, which is not killed, and a process for each replica,
in whose place another one is started."""
import os
import random
import subprocess
import time

import epoch_kills
import kills_support


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
        return [(float(row[0]), row[1] == "1", int(row[2]), int(row[3]))
                for row in kills_support.rows_of(self.log)]

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


def play(options, heartbeat, folder):
    """A run; its rows, its steps and its bytes."""
    port = epoch_kills.free_port()
    words = [options.python, str(kills_support.HERE / "torchft_peer.py"), "--lighthouse", str(port),
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
        before, first = kills_support.loopback_bytes(), nodes[0].steps()[-1][2]
        while len(kills) < options.kills:
            time.sleep(options.every)
            kills.append(kill_replica(nodes, draw.choice(nodes), folder))
            nodes.append(Replica(f"n{options.nodes + len(kills)}", folder, words))
            if not await_replicas(nodes, 180):
                raise SystemExit(f"torchft: a replacement was not taken in: see {folder}")
        steps = nodes[0].steps()[-1][2] - first
        used = None if before is None else kills_support.loopback_bytes() - before
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

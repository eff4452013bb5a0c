#!/usr/bin/env python3
"""Kills random nodes of a run of one model on loopback (docs/epochs.md), starts others in their
place, and says how long the survivors stood still.

A kill's time is from SIGKILL until the last survivor has made its next step, by the logs of the
nodes, in milliseconds; `died_median_ms` of that is until the kernel has ended the process, which
takes long where processors are busy. A node is killed while more than two are members, since of two the younger
cannot go on alone. The node `kept` is never killed: it shows whether memory and descriptors grow.
At the end all nodes are told to end, and their models are compared: the test losses of all steps
that two nodes have evaluated, and the digests of those that ended at one step, must be equal.
"""
import argparse
import calendar
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request


def free_port():
    """A port that nobody has at the moment."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def seconds_of(text):
    """Seconds since 1970 of "2026-11-21T12:00:00.000Z"."""
    whole = calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))
    return whole + float(text[19:-1])


class Node:
    """One process of the run."""

    def __init__(self, name, folder, words):
        self.name = name
        self.log = os.path.join(folder, name + ".log")
        self.result = os.path.join(folder, name + ".json")
        self.port = free_port()
        more = ["--name", name, "--log-json", self.log, "--json", self.result,
                "--metrics", str(self.port)]
        self.process = subprocess.Popen(words + more, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    def members(self):
        """Members of its epoch, as it says; 0 before it takes part."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=5) as page:
                epoch = json.load(page).get("epoch") or {}
        except OSError:
            return 0
        return len(epoch.get("members", [])) if epoch.get("standing") == "member" else 0

    def next_step(self, since):
        """When it made its first step in an epoch that began after `since`; None: not yet."""
        began = False
        with open(self.log, encoding="utf-8") as log:
            for line in log:
                if not line.endswith("}\n"):
                    break
                event = json.loads(line)
                at = seconds_of(event["time"])
                # Logs have milliseconds.
                if event["event"] == "epoch-began" and at >= since - 0.001:
                    began = True
                elif event["event"] == "round" and began:
                    return at
        return None

    def usage(self):
        """Resident memory in KiB, and open descriptors."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            memory = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        return memory, len(os.listdir(f"/proc/{self.process.pid}/fd"))


def await_members(nodes, least, deadline):
    """Waits until all nodes are members of one epoch of `least` or more, or the deadline."""
    while time.time() < deadline:
        counts = [node.members() for node in nodes]
        if min(counts) >= least and len(set(counts)) == 1:
            return True
        time.sleep(0.05)
    return False


def await_step(nodes, since, limit=60):
    """Milliseconds from `since` until the last node's next step; None: one made none."""
    while time.time() < since + limit:
        steps = [node.next_step(since) for node in nodes]
        if all(step is not None for step in steps):
            return 1000 * (max(steps) - since)
        time.sleep(0.02)
    return None


def end_all(nodes):
    """Tells all to end; what they wrote, by name."""
    for node in nodes:
        node.process.send_signal(signal.SIGTERM)
    results = {}
    for node in nodes:
        status = node.process.wait(timeout=60)
        if status != 0:
            raise SystemExit(f"{node.name} ended with status {status}: see {node.log}")
        with open(node.result, encoding="utf-8") as result:
            results[node.name] = json.load(result)
    return results


def compare(results):
    """Number of evaluations and digests that were compared, and those that differ."""
    found, compared, differ = {}, 0, []
    for name, result in results.items():
        facts = [(("loss", point["round"]), point["loss"]) for point in result["history"]]
        facts.append((("digest", result["round"]), result["parameters_sha256"]))
        for key, value in facts:
            if key in found:
                compared += 1
                if found[key] != value:
                    differ.append([name, *key])
            else:
                found[key] = value
    return compared, differ


def play(options, folder):
    """The whole run."""
    seed = f"127.0.0.1:{free_port()}"
    words = [options.sotto, "train", "--task", options.task, "--model", options.model,
             "--algorithm", options.algorithm, "--nodes", "2:32", "--seeds", seed, "--lr", "0.05",
             "--rounds", "100000000", "--eval-every", "100", "--gradient-time",
             options.gradient_time]
    draw = random.Random(options.seed)
    nodes = [Node("first", folder, words + ["--listen", seed])]
    time.sleep(1)
    nodes.append(Node("kept", folder, words))
    nodes += [Node(f"n{k}", folder, words) for k in range(options.nodes - 2)]
    if not await_members(nodes, options.nodes, time.time() + 60):
        raise SystemExit(f"the nodes did not come together: see {folder}")
    kept, kills, usage, number = nodes[1], [], [], options.nodes
    end = time.time() + options.seconds
    while len(kills) < options.kills and time.time() < end:
        members = [node for node in nodes if node.members() > 0]
        if kept.members() < 3 or len(members) < kept.members():
            time.sleep(0.05)
            continue
        victim = draw.choice([node for node in members if node is not kept])
        survivors = [node for node in members if node is not victim]
        since = time.time()
        victim.process.kill()
        victim.process.wait()
        died = time.time()
        nodes.remove(victim)
        took = await_step(survivors, since)
        kills.append({"victim": victim.name, "survivors": len(survivors), "ms": took,
                      "died_ms": 1000 * (died - since)})
        usage.append(kept.usage())
        if took is None:
            raise SystemExit(f"after the kill of {victim.name} the others stood still: {folder}")
        nodes.append(Node(f"n{number}", folder, words))
        number += 1
        time.sleep(options.every)
    await_members(nodes, len(nodes), time.time() + 30)
    compared, differ = compare(end_all(nodes))
    return kills, usage, compared, differ


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sotto", default="build/sotto", help="the program")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=600, help="no kill after so long")
    parser.add_argument("--every", type=float, default=1, help="seconds from a kill to the next")
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--algorithm", default="allreduce")
    parser.add_argument("--task", default="digits,train=600,test=200")
    parser.add_argument("--model", default="softmax")
    parser.add_argument("--gradient-time", default="5 ms")
    parser.add_argument("--seed", type=int, default=1, help="of who is killed")
    parser.add_argument("--json", help="file for all figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kills, usage, compared, differ = play(options, folder)
    times = sorted(kill["ms"] for kill in kills)
    figures = {
        "kills": len(kills),
        "median_ms": statistics.median(times),
        "p95_ms": times[min(len(times) - 1, int(0.95 * len(times)))],
        "slowest_ms": times[-1],
        "died_median_ms": statistics.median(kill["died_ms"] for kill in kills),
        "memory_kib": [usage[0][0], usage[-1][0]],
        "descriptors": [usage[0][1], usage[-1][1]],
        "compared": compared,
        "differ": differ,
        "each": kills,
    }
    print("from a kill to the survivors' next step")
    for name in ("kills", "median_ms", "p95_ms", "slowest_ms", "died_median_ms"):
        print(f"  {name:16} {figures[name]:.1f}")
    print(f"  memory of the node that stays, KiB: {usage[0][0]} at first, {usage[-1][0]} at last")
    print(f"  its descriptors: {usage[0][1]} at first, {usage[-1][1]} at last")
    print(f"  {compared} evaluations and digests compared between nodes, {len(differ)} differ")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(figures, out, indent=1)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())

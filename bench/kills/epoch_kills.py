#!/usr/bin/env python3
"""Kills random nodes of a run of one model on loopback (docs/epochs.md), starts others in their
place, and says how long the survivors stood still.

A kill's time is from SIGKILL until the last survivor has made its next step, by the logs of the
nodes, in milliseconds. Of that, `died` is until the kernel has ended the process, which takes long
where processors are busy, and `noticed` until all survivors have seen its channel close. A node is
killed while more than two are members, since of two the younger cannot go on alone. The node that
began the run is killed first. The node `kept` is never killed: it shows whether memory and
descriptors grow, as medians over the first and the last tenth of the kills. At the end all nodes
are told to end, and their models are compared: the test losses of all steps that two nodes have
evaluated, and the digests of those that ended at one step, must be equal.

With --undisturbed N as many runs without a kill follow, of --compare-at steps: the test loss that
the run with kills had after as many is to lie where 95 of 100 such runs have theirs (the prediction
interval of Student's t). It also fails where models differ, where the median of a kill's time is
above --most-ms, and where memory or descriptors grew by more than a tenth.

With --torch PROGRAM, build/bench/torch_member, a libtorch program trains a small network on the
MNIST of --data, in place of `sotto train`.
"""
import argparse
import bisect
import calendar
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request


def end_on_sigterm():
    """SIGTERM then ends this program as an error does, with all that it has started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


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

    started = []  # all, so that none goes on where the run fails

    def __init__(self, name, folder, words):
        self.name = name
        self.log = os.path.join(folder, name + ".log")
        self.result = os.path.join(folder, name + ".json")
        more = ["--name", name, "--log-json", self.log, "--json", self.result]
        self.port = None
        if words[1] == "train":  # a libtorch program has no page
            self.port = free_port()
            more += ["--metrics", str(self.port)]
        self.errors = os.path.join(folder, name + ".err")
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(words + more, stdout=subprocess.DEVNULL, stderr=errors)
        Node.started.append(self.process)
        self.read, self.known = 0, []  # bytes of the log, and the events in them
        self.of_epoch = 0  # members of its epoch, by its newest event that says so

    def require_alive(self):
        """Ends this program where the node has ended, with what it said."""
        if self.process.poll() is not None:
            with open(self.errors, encoding="utf-8", errors="replace") as errors:
                raise SystemExit(f"{self.name} ended with status {self.process.returncode}: "
                                 f"{errors.read().strip()[-1000:]}")

    @classmethod
    def kill_all(cls):
        """Ends every process that still runs."""
        for process in cls.started:
            if process.poll() is None:
                process.kill()
                process.wait()

    def status(self):
        """What a node of `sotto train` says of itself; empty where it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=5) as page:
                return json.load(page)
        except OSError:
            return {}

    def epoch(self):
        """Its epoch, as it says; empty before it has one."""
        return self.status().get("epoch") or {}

    def members(self):
        """Members of its epoch, as its log says; 0 before it takes part."""
        self.events()
        return self.of_epoch

    def events(self):
        """Its log so far: time, event, and the peer or None."""
        if os.path.exists(self.log):
            with open(self.log, "rb") as log:  # of which only what is new is read
                log.seek(self.read)
                for line in log:
                    if not line.endswith(b"}\n"):
                        break
                    self.read += len(line)
                    event = json.loads(line)
                    self.known.append((seconds_of(event["time"]), event["event"], event.get("peer")))
                    self.of_epoch = (0 if event["event"] == "put-out" else
                                     event.get("members", self.of_epoch))
        return self.known

    def events_since(self, since):
        """Those of its log from a time on."""
        events = self.events()
        return events[bisect.bisect_left(events, (since,)):]

    def next_step(self, since):
        """When it made its first step in an epoch that began after `since`; None: not yet."""
        began = False
        for at, kind, _ in self.events_since(since - 0.001):  # logs have milliseconds
            if kind == "epoch-began":
                began = True
            elif kind == "round" and began:
                return at
        return None

    def noticed(self, name, since):
        """When its channel to this node closed; None: it had none."""
        closed = [at for at, kind, peer in self.events_since(since - 0.001)
                  if kind == "peer-down" and peer == name]
        return closed[0] if closed else None

    def usage(self):
        """Resident memory in KiB, and open descriptors."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            memory = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        return memory, len(os.listdir(f"/proc/{self.process.pid}/fd"))


@contextlib.contextmanager
def scratch():
    """A folder for a run, which stays where the run fails."""
    folder = tempfile.mkdtemp(prefix="kills-")
    yield folder
    shutil.rmtree(folder)


def await_listening(node, deadline):
    """Waits until the node listens, or the deadline."""
    while time.time() < deadline and all(kind != "listening" for _, kind, _ in node.events()):
        node.require_alive()
        time.sleep(0.02)


def await_members(nodes, least, deadline):
    """Waits until all nodes are members of one epoch of `least` or more, or the deadline."""
    while time.time() < deadline:
        for node in nodes:
            node.require_alive()
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


def words_of(options, seeds, least=2):
    """What each node of a run is started with."""
    shared = ["--nodes", f"{least}:32", "--seeds", ",".join(seeds), "--eval-every", "100"]
    if options.torch:
        return [options.torch, "--data", options.data, *shared]
    return [options.sotto, "train", "--task", options.task, "--model", options.model,
            "--algorithm", options.algorithm, *shared, "--lr", "0.05", "--gradient-time",
            options.gradient_time]


def start(options, folder, words, seeds):
    """The nodes of a run; the first begins it, the second is `kept`."""
    nodes = []
    for name, seed in zip(("first", "kept"), seeds):
        nodes.append(Node(name, folder, words + ["--listen", seed]))
        await_listening(nodes[-1], time.time() + 60)  # before another takes the seed's address
    return nodes + [Node(f"n{k}", folder, words) for k in range(options.nodes - 2)]


def start_together(options, folder, words, seeds):
    """The nodes of a run, all members."""
    nodes = start(options, folder, words, seeds)
    if not await_members(nodes, options.nodes, time.time() + 120):
        raise SystemExit(f"the nodes did not come together: see {folder}")
    return nodes


def kill_one(victim, survivors, folder):
    """Kills it, and says what became of the others."""
    since = time.time()
    victim.process.kill()
    victim.process.wait()
    died = time.time()
    took = await_step(survivors, since)
    if took is None:
        raise SystemExit(f"after the kill of {victim.name} the others stood still: {folder}")
    noticed = [at for at in (node.noticed(victim.name, since) for node in survivors) if at]
    return {"victim": victim.name, "survivors": len(survivors), "ms": took,
            "died_ms": 1000 * (died - since),
            "noticed_ms": 1000 * (max(noticed, default=since) - since)}


def play(options, folder):
    """The whole run."""
    seeds = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    words = words_of(options, seeds) + ["--rounds", "100000000"]
    draw = random.Random(options.seed)
    nodes = start_together(options, folder, words, seeds)
    kept, kills, usage, number = nodes[1], [], [], options.nodes
    end = time.time() + options.seconds
    while len(kills) < options.kills and time.time() < end:
        members = [node for node in nodes if node.members() > 0]
        if kept.members() < 3 or len(members) < kept.members():
            time.sleep(0.05)
            continue
        victim = draw.choice([node for node in members if node is not kept])
        victim = nodes[0] if not kills else victim
        kills.append(kill_one(victim, [node for node in members if node is not victim], folder))
        usage.append(kept.usage())
        nodes.remove(victim)
        nodes.append(Node(f"n{number}", folder, words))
        number += 1
        time.sleep(options.every)
    await_members(nodes, len(nodes), time.time() + 30)
    results = end_all(nodes)
    return kills, usage, results


def undisturbed(options, rounds):
    """The test loss after so many steps without a kill."""
    with scratch() as folder:
        seeds = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        words = words_of(options, seeds, options.nodes) + ["--rounds", str(rounds)]
        nodes = start(options, folder, words, seeds)
        for node in nodes:
            node.process.wait(timeout=options.seconds)
        with open(nodes[1].result, encoding="utf-8") as result:
            return json.load(result)["history"][-1]["loss"]


def spread(values):
    """The median of values, the 95th of a hundred, and the largest."""
    ordered = sorted(values)
    return {"median": statistics.median(ordered),
            "p95": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
            "slowest": ordered[-1]}


def ends_of(usage):
    """Memory in KiB and descriptors, as medians over the first and the last tenth of the kills."""
    tenth = max(1, len(usage) // 10)
    return {name: [statistics.median(one[k] for one in part)
                   for part in (usage[:tenth], usage[-tenth:])]
            for k, name in enumerate(("memory_kib", "descriptors"))}


def figures_of(options, folder):
    """All that is said in the end."""
    kills, usage, results = play(options, folder)
    if not kills:
        raise SystemExit(f"no kill was made: --nodes is 3 at least, and --seconds long enough; see "
                         f"{folder}")
    compared, differ = compare(results)
    point = [one for one in results["kept"]["history"] if one["round"] <= options.compare_at][-1]
    figures = {"kills": len(kills), **{name: spread(kill[key] for kill in kills)
                                       for name, key in (("step_ms", "ms"), ("died_ms", "died_ms"),
                                                         ("noticed_ms", "noticed_ms"))},
               **ends_of(usage), "compared": compared, "differ": differ,
               "round": point["round"], "loss": point["loss"], "undisturbed": []}
    show(figures)  # what follows takes its time
    for _ in range(options.undisturbed):
        figures["undisturbed"].append(undisturbed(options, point["round"]))
    figures["each"] = kills
    return figures


# Student's t, two-sided, 95 %, by degrees of freedom from 1 on; the last serves for more.
STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def interval(losses):
    """Where 95 of 100 further runs like these have their loss; two runs at least."""
    count = len(losses)
    t = STUDENT_T[min(count - 1, len(STUDENT_T)) - 1]
    room = t * statistics.stdev(losses) * (1 + 1 / count) ** 0.5
    middle = statistics.mean(losses)
    return middle - room, middle + room


def broken(figures, most_ms):
    """What does not hold of all that should, in words."""
    found = []
    if figures["differ"]:
        found.append("models of two nodes differ after one step")
    if figures["step_ms"]["median"] > most_ms:
        found.append(f"the median until the next step is above {most_ms:g} ms")
    for name in ("memory_kib", "descriptors"):
        first, last = figures[name]
        if last > 1.1 * first:
            found.append(f"{name} grew by more than a tenth")
    if len(figures["undisturbed"]) > 1:
        least, most = interval(figures["undisturbed"])
        print(f"95 of 100 undisturbed runs have a loss of {least:.5f} to {most:.5f}")
        if not least <= figures["loss"] <= most:
            found.append("the loss is not that of an undisturbed run")
    return found


def show(figures):
    """The table."""
    print(f"{figures['kills']} kills; from each, in ms   median     95 %  slowest")
    for name, words in (("died_ms", "until the process has ended"),
                        ("noticed_ms", "until all others noticed"),
                        ("step_ms", "until all others' next step")):
        one = figures[name]
        print(f"  {words:29} {one['median']:8.1f} {one['p95']:8.1f} {one['slowest']:8.1f}")
    print("of the node that stays, at first and at last: memory {:.0f} and {:.0f} KiB, descriptors "
          "{:.0f} and {:.0f}".format(*figures["memory_kib"], *figures["descriptors"]))
    print(f"{figures['compared']} evaluations and digests compared between nodes, "
          f"{len(figures['differ'])} differ")
    print(f"test loss after {figures['round']} steps: {figures['loss']:.5f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sotto", default="build/sotto", help="the program")
    parser.add_argument("--torch", help="a libtorch program in its place")
    parser.add_argument("--data", help="folder of MNIST, for --torch")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=600, help="no kill after so long")
    parser.add_argument("--every", type=float, default=1, help="seconds from a kill to the next")
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--algorithm", default="allreduce")
    parser.add_argument("--task", default="digits,train=600,test=200")
    parser.add_argument("--model", default="softmax")
    parser.add_argument("--gradient-time", default="5 ms")
    parser.add_argument("--seed", type=int, default=1, help="of who is killed")
    parser.add_argument("--compare-at", type=int, default=5000,
                        help="the step after which the test loss is compared, or the last before")
    parser.add_argument("--undisturbed", type=int, default=0,
                        help="runs without kills whose test loss is compared")
    parser.add_argument("--most-ms", type=float, default=500,
                        help="fail where the median until the next step is longer")
    parser.add_argument("--json", help="file for all figures")
    options = parser.parse_args()
    if options.nodes < 3:
        parser.error("--nodes: 3 at least, as of two the younger cannot go on alone")
    if options.torch and not options.data:
        parser.error("--torch: --data names the folder of MNIST")
    if options.compare_at < 100:
        parser.error("--compare-at: 100 at least, as losses are taken every 100 steps")
    end_on_sigterm()
    try:
        with scratch() as folder:
            figures = figures_of(options, folder)
    finally:
        Node.kill_all()
    if figures["undisturbed"]:
        print("undisturbed: " + ", ".join(f"{loss:.5f}" for loss in figures["undisturbed"]))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(figures, out, indent=1)
    found = broken(figures, options.most_ms)
    for words in found:
        print(f"DOES NOT HOLD: {words}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

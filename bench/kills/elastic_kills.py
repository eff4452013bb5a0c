#!/usr/bin/env python3
"""Kills random processes of a run of sotto, of one of torchft and of one under torchrun, one after
the other on this machine, and says what each kill cost: how long the others stood still, how many
gradients are in no model, and how many bytes went over loopback.

All train a linear model of 64 features and 10 classes by SGD, with gradients of --gradient-time.
torchft has a lighthouse, which is not killed. It is run once for each --heartbeat-timeout, by which
it tells that a replica is gone; 5,000 ms is its default. A kill's time is from SIGKILL until the
last survivor has made a step without the dead, and lost are the survivors' gradients in no mean.

torchrun has an agent, which is not killed. It is run once for each --checkpoint-every. A kill's
time is until the last worker has made a step after the restart, which is one that it had made
before; lost are the gradients of all workers since the checkpoint, which are taken again.

Bytes are those of a network namespace of its own, where this is run as root, over the steps that
the run has come forward; they include what replacements copy.

Says SKIPPED of torchft, or of torchrun, where --python cannot import it (`pip install torch
torchft`).
"""
import argparse
import functools
import json
import random
import sys
import time

import epoch_kills
import kills_support
import torchft_contender
import torchrun_contender


def play_sotto(options, folder):
    """A run of sotto, in the same terms."""
    try:
        return kill_nodes(options, folder)
    finally:
        epoch_kills.Node.kill_all()


def kill_nodes(options, folder):
    """Starts nodes of sotto, kills some, and ends the others."""
    given = argparse.Namespace(torch=None, sotto=options.sotto, task="digits,train=600,test=200",
                               model="softmax", algorithm="allreduce", nodes=options.nodes,
                               gradient_time=f"{options.gradient_time} ms")
    seeds = [f"127.0.0.1:{epoch_kills.free_port()}" for _ in range(2)]
    words = epoch_kills.words_of(given, seeds) + ["--rounds", "100000000"]
    nodes = epoch_kills.start_together(given, folder, words, seeds)
    kept = nodes[1]  # whose steps are counted
    draw, kills = random.Random(options.seed), []

    def left_out():
        return sum(node.epoch().get("left_out", 0) for node in nodes)

    before, first = kills_support.loopback_bytes(), kept.status()["round"]
    while len(kills) < options.kills:
        time.sleep(options.every)
        victim = draw.choice([node for node in nodes if node is not kept])
        nodes.remove(victim)
        before_kill = left_out()
        row = epoch_kills.kill_one(victim, nodes, folder)
        kills.append({"ms": row["ms"], "lost": left_out() - before_kill})
        nodes.append(epoch_kills.Node(f"n{options.nodes + len(kills)}", folder, words))
        if not epoch_kills.await_members(nodes, options.nodes, time.time() + 180):
            raise SystemExit(f"sotto: a replacement was not taken in: see {folder}")
    steps = kept.status()["round"] - first
    used = None if before is None else kills_support.loopback_bytes() - before
    epoch_kills.end_all(nodes)
    return kills, steps, used


def figures_of(name, kills, steps, used):
    """One row of the table."""
    spread = epoch_kills.spread([kill["ms"] for kill in kills])
    return {"contender": name, "kills": len(kills), "step_ms": spread, "steps": steps,
            "lost_each": sum(kill["lost"] for kill in kills) / len(kills),
            "bytes_step": None if used is None else used / max(1, steps), "each": kills}


def contenders(options):
    """What is run: its name, and what plays it in a folder."""
    found = []
    for every in options.checkpoint_every or [100]:
        found.append(("torchrun", "torch.distributed.run", f"torchrun, every {every} steps",
                      functools.partial(torchrun_contender.play, options, every)))
    for heartbeat in options.heartbeat_timeout or [5000, 500]:
        found.append(("torchft", "torchft", f"torchft, heartbeats {heartbeat} ms",
                      functools.partial(torchft_contender.play, options, heartbeat)))
    found.append(("sotto", None, "sotto", functools.partial(play_sotto, options)))
    return [one for one in found if options.only in (None, one[0])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sotto", default="build/sotto", help="the program")
    parser.add_argument("--python", default=sys.executable, help="one that has torch and torchft")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--every", type=float, default=2, help="seconds before a kill")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--gradient-time", type=float, default=20, help="milliseconds")
    parser.add_argument("--heartbeat-timeout", type=int, action="append",
                        help="of torchft's lighthouse, milliseconds; 5000, and 500")
    parser.add_argument("--checkpoint-every", type=int, action="append",
                        help="steps between two checkpoints under torchrun; 100")
    parser.add_argument("--timeout", type=float, default=10,
                        help="of torchft's and torchrun's operations, seconds")
    parser.add_argument("--seed", type=int, default=1, help="of who is killed")
    parser.add_argument("--only", choices=("sotto", "torchft", "torchrun"), help="one of the three")
    parser.add_argument("--json", help="file for all figures")
    options = parser.parse_args()
    kills_support.enter_own_network()
    epoch_kills.end_on_sigterm()
    rows = []
    for _, module, name, play in contenders(options):
        if module and kills_support.lacks(options.python, module):
            print(f"SKIPPED: {name}: {options.python} cannot import {module}: "
                  "pip install torch torchft, or --python")
            continue
        with epoch_kills.scratch() as folder:
            rows.append(figures_of(name, *play(folder)))
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

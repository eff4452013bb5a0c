"""torchrun in elastic_kills.py: one agent, which is not killed, and its workers. When one dies the
agent ends all others, and starts all of them again from the newest checkpoint."""
import os
import random
import signal
import subprocess
import time

import epoch_kills
import kills_support

# With PyTorch 2.15 the agent's store keeps what workers wrote before a restart, so that those of
# Gloo read addresses of processes that are gone, and fail once more. Then the first worker serves.
SETTINGS = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
MOST_TRIES = 5  # restarts for one kill, as one may fail


class Worker:
    """A rank of the job, whose process changes with each restart."""

    def __init__(self, rank, folder):
        self.rank = rank
        self.log = os.path.join(folder, f"rank{rank}.txt")

    def steps(self, restart):
        """The steps of its process after so many restarts: time, process, steps done."""
        return [(float(row[0]), int(row[1]), int(row[3]))
                for row in kills_support.rows_of(self.log) if int(row[2]) == restart]


def await_steps(workers, restarts, job, limit):
    """Waits until all have made a step after so many restarts, or more; the restarts, or None."""
    end = time.time() + limit
    while time.time() < end and job.poll() is None:
        begun = [{int(row[2]) for row in kills_support.rows_of(worker.log)} for worker in workers]
        common = set.intersection(*begun)
        if common and max(common) >= restarts:
            return max(common)
        time.sleep(0.05)
    return None


def kill_worker(workers, victim, restarts, job, folder):
    """What a kill costs, as a row with the restarts until now."""
    since = time.time()
    os.kill(victim.steps(restarts)[-1][1], signal.SIGKILL)
    now = await_steps(workers, restarts + 1, job, 180)
    if now is None:
        raise SystemExit(f"torchrun: after a kill there was no next step: see {folder}")
    begun = [worker.steps(now)[0] for worker in workers]
    done = [worker.steps(restarts)[-1][2] for worker in workers]
    # A step that is done again is lost at every worker that had done it.
    lost = sum(max(0, before - (first[2] - 1)) for before, first in zip(done, begun))
    return {"ms": 1000 * (max(first[0] for first in begun) - since), "lost": lost,
            "restarts": now}


def play(options, every, folder):
    """A run with a checkpoint at every so many steps; its rows, its steps and its bytes."""
    port = epoch_kills.free_port()
    words = [options.python, "-m", "torch.distributed.run", "--nnodes", "1:1", "--nproc-per-node",
             str(options.nodes), "--max-restarts", str(MOST_TRIES * options.kills),
             "--rdzv-backend", "c10d",
             "--rdzv-endpoint", f"127.0.0.1:{port}", "--local-addr", "127.0.0.1",
             str(kills_support.HERE / "torchrun_peer.py"), "--folder", folder,
             "--checkpoint-every", str(every), "--timeout", str(options.timeout),
             "--gradient-time", str(options.gradient_time / 1000)]
    environment = {**os.environ, **SETTINGS}
    with open(os.path.join(folder, "agent.err"), "wb") as errors:
        job = subprocess.Popen(words, stdout=errors, stderr=errors, env=environment)
    draw, kills = random.Random(options.seed), []
    workers = [Worker(rank, folder) for rank in range(options.nodes)]
    try:
        restarts = await_steps(workers, 0, job, 180)
        if restarts is None:
            raise SystemExit(f"torchrun: the workers did not come together: see {folder}")
        before, first = kills_support.loopback_bytes(), workers[0].steps(restarts)[-1][2]
        while len(kills) < options.kills:
            time.sleep(options.every)
            kills.append(kill_worker(workers, draw.choice(workers), restarts, job, folder))
            restarts = kills[-1]["restarts"]
        steps = workers[0].steps(restarts)[-1][2] - first
        used = None if before is None else kills_support.loopback_bytes() - before
    finally:
        job.terminate()  # the agent ends its workers
        try:
            job.wait(timeout=60)
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
    return kills, steps, used

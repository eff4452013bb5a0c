"""What the contenders of elastic_kills.py share: a network of its own, the bytes that a run has sent
and the log of a process."""
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OWN_NETWORK = "SOTTO_BENCH_OWN_NETWORK"


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


def rows_of(path):
    """The lines of a log that are whole, as words."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as log:
        return [line.split() for line in log if line.endswith("\n")]


def lacks(python, module):
    """Whether this Python cannot import it."""
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True,
                          check=False).returncode != 0

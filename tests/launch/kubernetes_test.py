"""The manifests of examples/launch/kubernetes: kubernetes_test.py CASE FOLDER PROGRAM."""

import contextlib
import copy
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

PATIENCE = 120  # seconds, after which something hangs


def skip(why):
    print("SKIPPED:", why)
    sys.exit(0)


try:
    import pods
except ImportError:
    skip("no python3-yaml")


def loopback(number):
    """An address of this host that other tests, which use 127.0.0.1, leave alone."""
    return f"127.{100 + os.getpid() % 100}.{os.getpid() // 100 % 250}.{number}"


def refused(model, change, word):
    changed = copy.deepcopy(model)
    change(changed)
    import api_models
    try:
        api_models.check_object(changed)
    except ValueError as error:
        assert word in str(error), error
    else:
        raise AssertionError(f"not refused: {word}")


def structure(folder, _):
    """Fields, their types and what is required, by the API's own models; and names that must be one."""
    try:
        import api_models
    except ImportError:
        skip("no python3-kubernetes")
    train = pods.read(f"{folder}/train.yaml")
    site = pods.read(f"{folder}/site.yaml")
    elastic = pods.read(f"{folder}/elastic.yaml")
    for one in [*train.values(), *site.values(), *elastic.values()]:
        api_models.check_object(one)
    check_elastic(elastic)
    job = train["Job"]
    refused(job, lambda one: one["spec"].update(completion_mode="Indexed"), "completion_mode")
    refused(job, lambda one: one["spec"].update(completions="4"), "completions")
    refused(job, lambda one: one["spec"].pop("template"), "template")
    refused(job, lambda one: pod_of(one)["containers"][0]["env"][1].update(value=4), "value")
    refused(job, lambda one: one.update(apiVersion="batch/v1beta1"), "apiVersion")

    name, spec, service = job["metadata"]["name"], job["spec"], train["Service"]
    assert spec["completionMode"] == "Indexed"
    assert pod_of(job)["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": name}  # which the Job gives its pods
    variables = {entry["name"]: entry.get("value") for entry in pod_of(job)["containers"][0]["env"]}
    assert variables["WORLD_SIZE"] == str(spec["completions"]) == str(spec["parallelism"])
    assert variables["MASTER_ADDR"] == f"{name}-0.{service['metadata']['name']}"
    assert variables["MASTER_PORT"] == str(service["spec"]["ports"][0]["port"])

    spec = site["StatefulSet"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["replicas"] == 1, "a key is one process"
    assert spec["selector"]["matchLabels"] == labels == site["Service"]["spec"]["selector"]
    pod = pod_of(site["StatefulSet"])
    volumes = {one["name"] for one in pod["volumes"]}
    volumes |= {one["metadata"]["name"] for one in spec["volumeClaimTemplates"]}
    for container in pod["initContainers"] + pod["containers"]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def check_elastic(elastic):
    """Names that must be one, and the same words at both kinds of pods but for what the first one keeps."""
    seed, workers, service = elastic["StatefulSet"], elastic["Deployment"], elastic["Service"]
    assert seed["spec"]["serviceName"] == service["metadata"]["name"]
    address = f"{seed['metadata']['name']}-0.{service['metadata']['name']}"
    port = service["spec"]["ports"][0]["port"]
    words = {}
    for one in (seed, workers):
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert one["spec"]["selector"]["matchLabels"] == labels
        for selector in (service["spec"]["selector"],
                         elastic["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]):
            assert selector.items() <= labels.items()
        pod = pod_of(one)
        container = pod["containers"][0]
        assert {f"--seeds={address}:{port}", f"--listen=$(POD_IP):{port}"} <= set(container["args"])
        assert {entry["containerPort"] for entry in container["ports"]} == {port}
        assert {entry.get("protocol", "TCP") for entry in container["ports"]} == {"TCP", "UDP"}
        volumes = {each["name"] for each in pod["volumes"]}
        volumes |= {each["metadata"]["name"] for each in one["spec"].get("volumeClaimTemplates", [])}
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        words[one["kind"]] = container["args"]
    kept = [word for word in words["StatefulSet"] if word not in words["Deployment"]]
    assert kept and all("/state/" in word for word in kept), kept
    assert [word for word in words["StatefulSet"] if word not in kept] == words["Deployment"]


def pod_of(one):
    return one["spec"]["template"]["spec"]


class TrainingJob:
    """The pods of train.yaml."""

    def __init__(self, folder, program, network):
        self.job = pods.read(f"{folder}/train.yaml")["Job"]
        assert pods.entry_point(f"{folder}/Dockerfile") == ["sotto"]
        self.container = pod_of(self.job)["containers"][0]
        self.program, self.network = program, network
        self.user = pods.as_user_of(pod_of(self.job), program)
        self.processes = {}

    def size(self):
        return self.job["spec"]["completions"]

    def name(self, index):
        return f"{self.job['metadata']['name']}-{index}.{pod_of(self.job)['subdomain']}"

    def start(self, index):
        address = loopback(index + 1)
        variables = pods.variables_of(self.container, {
            "metadata.annotations['batch.kubernetes.io/job-completion-index']": str(index),
            "status.podIP": address,
        })
        variables["JOB_COMPLETION_INDEX"] = str(index)
        command = self.user + [self.program]
        command += [pods.expand(arg, variables) for arg in self.container["args"]]
        if self.network.real:
            command = self.network.inside(command)
        else:
            variables["MASTER_ADDR"] = loopback(1)
        self.processes[index] = pods.start(command, variables)

    def finish(self):
        """What node 0 says."""
        said = {index: process.communicate(timeout=PATIENCE)
                for index, process in sorted(self.processes.items())}
        for index, (out, err) in said.items():
            assert self.processes[index].returncode == 0, f"pod {index}: {out}{err}"
            assert index == 0 or not out, out
        return said[0][0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.communicate()


def check_trained(report, size):
    assert f"{size} nodes" in report, report
    accuracies = re.findall(r"([\d.]+) %", report)
    assert float(accuracies[-1]) > 85, report


def train(folder, program):
    """The Job's containers, each with the variables of its index, train one model."""
    with tempfile.TemporaryDirectory() as scratch:
        network = pods.Network(scratch)
        with TrainingJob(folder, program, network) as job:
            network.publish({job.name(index): loopback(index + 1) for index in range(job.size())})
            for index in range(job.size()):
                job.start(index)
            check_trained(job.finish(), job.size())


def late(folder, program):
    """Pods whose first has no name yet wait for it."""
    with tempfile.TemporaryDirectory() as scratch:
        network = pods.Network(scratch)
        if not network.real:
            skip("a name service of its own needs root")
        with TrainingJob(folder, program, network) as job:
            before = os.stat(network.hosts).st_atime_ns
            for index in range(1, job.size()):
                job.start(index)
            # Until one has looked, where the file system tells.
            wait_until(lambda: os.stat(network.hosts).st_atime_ns != before, patience=5)
            assert all(process.poll() is None for process in job.processes.values())
            network.publish({job.name(index): loopback(index + 1) for index in range(job.size())})
            job.start(0)
            check_trained(job.finish(), job.size())


def wait_until(done, patience=PATIENCE):
    """False when it took too long."""
    end = time.monotonic() + patience
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


HELD = []


def free_port():
    """A TCP port of loopback that nobody uses: a socket holds it to the end of this process."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    # Servers that set SO_REUSEADDR can listen at it; nobody who asks for any port is given it.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    HELD.append(holder)
    return holder.getsockname()[1]


class Site:
    """The pod of site.yaml, for a site called so: its volumes are folders."""

    def __init__(self, folder, program, root, name, number):
        with open(f"{folder}/site.yaml", encoding="utf-8") as file:
            text = file.read().replace("hospital", name)
        self.manifest = os.path.join(root, f"{name}.yaml")
        with open(self.manifest, "w", encoding="utf-8") as file:
            file.write(text)
        objects = pods.read(self.manifest)
        self.config = objects["ConfigMap"]["data"]
        self.pod = pod_of(objects["StatefulSet"])
        self.program, self.root, self.name = program, os.path.join(root, name), name
        self.user = pods.as_user_of(self.pod, program)
        self.address = loopback(number)
        self.monitor = free_port()
        os.mkdir(self.root)
        for volume in ("secret", "key", "state", "data", "config"):
            pods.make_volume(os.path.join(self.root, volume), self.pod, volume == "data")
        subprocess.run([program, "keygen", f"{self.root}/secret/{name}", "--quiet"], check=True)
        with open(f"{self.root}/secret/{name}.pub", encoding="utf-8") as file:
            self.key = file.read().strip()
        if os.geteuid() == 0:
            os.chown(f"{self.root}/secret/{name}.key", 0, self.pod["securityContext"]["fsGroup"])
        os.chmod(f"{self.root}/secret/{name}.key", 0o440)
        self.process = None
        self.versions = 0

    def place(self, text):
        """Mounts of the container, the pod's own address and its loopback, on this machine."""
        for container in self.pod["initContainers"] + self.pod["containers"]:
            for mount in container["volumeMounts"]:
                path = re.escape(mount["mountPath"])
                text = re.sub(rf"(?<![\w/.]){path}(?=/)", f"{self.root}{mount['mountPath']}", text)
        return text.replace("0.0.0.0:", f"{self.address}:").replace("127.0.0.1:9100",
                                                                    f"127.0.0.1:{self.monitor}")

    def write_config(self, listed):
        """As the kubelet does it: the files are links into a folder, which is replaced at once."""
        lines = self.config["peers.csv"].splitlines()
        assert lines[1].startswith(f"{self.name},"), lines
        peers = [f"{one.name},{one.key},{one.address}:9001,yes,yes" for one in listed]
        texts = {"site.toml": self.place(self.config["site.toml"]), "peers.csv": "\n".join([lines[0], *peers])}
        config = os.path.join(self.root, "config")
        self.versions += 1
        os.mkdir(f"{config}/..{self.versions}")
        for name, text in texts.items():
            with open(f"{config}/..{self.versions}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
            if not os.path.lexists(f"{config}/{name}"):
                os.symlink(f"..data/{name}", f"{config}/{name}")
        os.symlink(f"..{self.versions}", f"{config}/..data_tmp")
        os.replace(f"{config}/..data_tmp", f"{config}/..data")

    def write_data(self):
        with open(f"{self.root}/data/patients.csv", "w", encoding="utf-8") as file:
            file.write("age,dose,class\n")
            file.writelines(f"{age},{dose},{int(age > dose)}\n" for age in range(20) for dose in range(20))

    def start(self):
        for container in self.pod["initContainers"]:
            subprocess.run(self.user + [self.place(word) for word in container["command"]], check=True)
        words = [self.place(word) for word in self.pod["containers"][0]["args"]]
        self.process = pods.start(self.user + [self.program] + words, {})

    def alive(self, *more):
        command = [self.place(word) for word in self.pod["containers"][0]["livenessProbe"]["exec"]["command"]]
        return subprocess.run(self.user + [self.program] + command[1:] + list(more), text=True,
                              capture_output=True, timeout=PATIENCE, check=False)

    def peers(self):
        """How its peers stand, by name; None while it does not answer or train."""
        answer = self.alive("--json", "-")
        assert self.process.poll() is None, self.process.communicate()
        status = json.loads(answer.stdout) if answer.returncode == 0 else {}
        return {peer["name"]: peer["state"] for peer in status["peers"]} if status.get("round") else None

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, err
        assert self.alive().returncode == 1


def site(folder, program):
    """Two sites of the StatefulSet's container meet, are found alive, take another list of peers while they run,
    and end as they are told to."""
    if shutil.which("install") is None:
        skip("no install")
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as ends:
        os.chmod(scratch, 0o755)
        sites = [Site(folder, program, scratch, name, number)
                 for number, name in ((1, "hospital"), (2, "university"))]
        for one in sites:
            one.write_config([one] + [other for other in sites if other is not one])
            one.write_data()
            one.start()
            ends.callback(one.process.kill)
        for one, other in zip(sites, reversed(sites)):
            assert wait_until(lambda: one.peers() == {other.name: "up"}), one.alive().stdout
            assert one.alive().returncode == 0
        sites[0].write_config(sites[:1])
        assert wait_until(lambda: sites[0].peers() == {}), sites[0].alive().stdout
        for one in sites:
            one.stop()


class ElasticPod:
    """A pod of elastic.yaml: its volumes are folders."""

    def __init__(self, folder, program, network, root, kind, name, number):
        self.pod = pod_of(pods.read(f"{folder}/elastic.yaml")[kind])
        self.container = self.pod["containers"][0]
        self.root, self.network, self.program = os.path.join(root, name), network, program
        self.user = pods.as_user_of(self.pod, program)
        self.fields = {"metadata.name": name, "status.podIP": loopback(number)}
        os.mkdir(self.root)
        for volume in ("secret", "key", "state"):
            pods.make_volume(os.path.join(self.root, volume), self.pod)
        shutil.copy(os.path.join(root, "run.key"), f"{self.root}/secret/run.key")
        if os.geteuid() == 0:
            os.chown(f"{self.root}/secret/run.key", 0, self.pod["securityContext"]["fsGroup"])
        os.chmod(f"{self.root}/secret/run.key", 0o440)
        self.process = None

    def place(self, text):
        return re.sub(r"(?<![\w/.])/(secret|key|state)(?=/)", rf"{self.root}/\1", text)

    def start(self, *more):
        """`more`: options beside those of the manifest."""
        for container in self.pod["initContainers"]:
            subprocess.run(self.user + [self.place(word) for word in container["command"]], check=True)
        variables = pods.variables_of(self.container, self.fields)
        words = [self.place(pods.expand(word, variables)) for word in self.container["args"]]
        if not self.network.real:
            for name, address in self.network.names.items():
                words = [word.replace(name, address) for word in words]
        command = self.user + [self.program, *words, *more]
        self.process = pods.start(self.network.inside(command) if self.network.real else command, variables)

    def stop(self):
        """As the kubelet ends a pod."""
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, err


def elastic(folder, program):
    """The containers of elastic.yaml begin a run, one is taken away, one comes, and all are told to end."""
    if shutil.which("install") is None:
        skip("no install")
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as ends:
        os.chmod(scratch, 0o755)
        subprocess.run([program, "keygen", f"{scratch}/run", "--quiet"], check=True)
        network = pods.Network(scratch)
        network.publish({"sotto-seed-0.sotto-elastic": loopback(1)})
        names = ["sotto-seed-0", "sotto-elastic-x7k2p", "sotto-elastic-9qz4d", "sotto-elastic-late1"]
        all_pods = [ElasticPod(folder, program, network, scratch, "Deployment" if number else "StatefulSet",
                               name, number + 1) for number, name in enumerate(names)]
        ports = [free_port() for _ in names]

        def begin(number):
            all_pods[number].start("--rounds", "1000000", "--gradient-time", "5 ms", "--metrics",
                                   str(ports[number]))
            ends.callback(all_pods[number].process.kill)

        def members(number):
            assert all_pods[number].process.poll() is None, all_pods[number].process.communicate()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{ports[number]}/status", timeout=5) as page:
                    return set((json.load(page)["epoch"] or {}).get("members", []))
            except OSError:
                return set()

        for number in range(3):
            begin(number)
        assert wait_until(lambda: members(0) == set(names[:3])), members(0)
        all_pods[1].stop()
        begin(3)
        assert wait_until(lambda: members(3) == {names[0], names[2], names[3]}), members(3)
        for number in (0, 2, 3):
            all_pods[number].stop()
        assert os.path.getsize(f"{all_pods[0].root}/state/model.csv") > 0


if __name__ == "__main__":
    {"structure": structure, "train": train, "late": late, "site": site, "elastic": elastic}[sys.argv[1]](*sys.argv[2:])
    print("ok")

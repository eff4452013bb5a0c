"""Kubernetes manifests without a cluster: their containers as processes of this machine, with what the kubelet
would give them."""

import os
import re
import subprocess

import yaml

class UniqueKeys(yaml.SafeLoader):
    """PyYAML takes the last of two equal keys; Kubernetes refuses them."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        doubled = {key for key in keys if keys.count(key) > 1}
        if doubled:
            raise yaml.constructor.ConstructorError(None, None, f"twice: {doubled}", node.start_mark)
        return super().construct_mapping(node, deep)


def read(path):
    """The objects of a file, by kind."""
    with open(path, encoding="utf-8") as file:
        objects = list(yaml.load_all(file, UniqueKeys))
    kinds = [one["kind"] for one in objects]
    assert len(set(kinds)) == len(kinds), f"{path}: a kind stands twice"
    return dict(zip(kinds, objects))


def expand(text, variables):
    return re.sub(r"\$\((\w+)\)", lambda match: variables.get(match[1], match[0]), text)


def variables_of(container, fields):
    """A container's variables. `fields`: what the downward API says of its pod."""
    variables = {}
    for entry in container.get("env", []):
        if "value" in entry:
            variables[entry["name"]] = expand(entry["value"], variables)
        else:
            variables[entry["name"]] = fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
    return variables


def entry_point(dockerfile):
    with open(dockerfile, encoding="utf-8") as file:
        return yaml.safe_load(re.search(r"^ENTRYPOINT (\[.*\])$", file.read(), re.MULTILINE)[1])


class Network:
    """Names of pods, as the cluster's name service knows them. As root a process sees them in an /etc/hosts of
    its own; else `address` takes their place in its variables."""

    def __init__(self, folder):
        self.hosts = os.path.join(folder, "hosts")
        self.names = {}
        self.publish({})
        self.real = os.geteuid() == 0 and subprocess.run(
            self.inside(["true"]), stderr=subprocess.DEVNULL).returncode == 0

    def publish(self, names):
        self.names.update(names)
        with open(self.hosts, "w", encoding="utf-8") as file:  # in place: it is mounted
            file.write("".join(f"{address} {name}\n" for name, address in self.names.items()))

    def inside(self, command):
        # Other names are asked of nobody.
        script = ('mount --bind "$0" /etc/hosts && '
                  '{ [ ! -e /etc/resolv.conf ] || mount --bind /dev/null /etc/resolv.conf; } && exec "$@"')
        return ["unshare", "--mount", "sh", "-c", script, self.hosts] + command


def as_user_of(pod, program):
    """What makes a command one of the pod's user, where we may do that and the user may run the program."""
    context = pod["securityContext"]
    words = ["setpriv", f"--reuid={context['runAsUser']}", f"--regid={context['runAsGroup']}", "--clear-groups",
             "--no-new-privs"]
    allowed = os.geteuid() == 0 and subprocess.run(
        words + [program, "list"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
    return words if allowed else []


def make_volume(path, pod, read_only=False):
    """An empty volume, with the owner and the mode that the kubelet gives it."""
    os.mkdir(path)
    if os.geteuid() == 0:
        os.chown(path, 0, pod["securityContext"]["fsGroup"])
    os.chmod(path, 0o755 if read_only else 0o2777)


def start(command, variables):
    """A container's process: nothing of our environment but PATH, and no place to write to."""
    environment = {"PATH": os.environ["PATH"], "TMPDIR": "/nonexistent", **variables}
    return subprocess.Popen(command, env=environment, cwd="/", text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)

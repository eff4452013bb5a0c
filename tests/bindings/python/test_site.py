"""Sites with models of Python's: over real sockets, from the files that `sotto site init` makes."""

import json
import threading
import urllib.request

import numpy
import pytest

import nodes
import sotto

DIMENSION = 30
QUICK = {"lr": 0.1, "patience": 10, "found_after": 10}


@pytest.fixture
def federation(tmp_path):
    return nodes.federation(tmp_path, ("bank", "lab"))


def step(site, x, centre):
    gradient = x - numpy.float32(centre)
    return site.step(gradient, float(gradient @ gradient))


def test_sites_come_to_the_minimum_of_their_sum(federation):
    ends = {}

    def train(name, centre):
        x = numpy.zeros(DIMENSION, dtype=numpy.float32)
        with sotto.Site(x, site=federation[name], rounds=80, **QUICK) as site:
            site.connect()
            while not site.over:
                done = step(site, x, centre)
                assert done.exchanged and not done.dropped
            site.evaluated(0.5, 0.25)
            ends[name] = (x, site.round, site.report(), site.events())

    threads = [
        threading.Thread(target=train, args=(name, centre))
        for name, centre in (("bank", 1), ("lab", 2))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(ends) == {"bank", "lab"}
    for name, (x, rounds, report, events) in ends.items():
        assert rounds >= 80
        assert abs(x.mean() - 1.5) < 0.2
        assert report["name"] == name and report["evaluation"]["accuracy"] == 0.25
        assert [peer["name"] for peer in report["peers"]] == [
            other for other in ends if other != name
        ]
        assert "started" in [event["event"] for event in events]


def of_a_run(leave_within):
    """Settings of a node of a run whose nodes come and go, and all hold a mass of one a node."""
    return {
        "nodes": 2,
        "seeds": f"127.0.0.1:{nodes.free_port()}",
        "algorithm": "pushsum",
        "mass_return": 0,
        "lr": 0.1,
        "leave_within": leave_within,
    }


@pytest.mark.parametrize("how", ["leave", "stop"])
def test_a_node_that_leaves_gives_what_it_holds_to_another(how):
    run = of_a_run(60)
    gone = threading.Event()
    ends = {}

    def stays():
        x = numpy.zeros(DIMENSION, dtype=numpy.float32)
        with sotto.Site(x, name="a", **run) as site:
            site.connect()
            while not gone.is_set():
                step(site, x, 1)
            for _ in range(5):
                step(site, x, 1)
            ends["a"] = site.report()

    def goes():
        x = numpy.zeros(DIMENSION, dtype=numpy.float32)
        try:
            with sotto.Site(x, name="b", **run) as site:
                site.connect()
                while site.round < 40:
                    step(site, x, 2)
                ends["lowered"] = site.report()["mass_lowered"]
                if how == "leave":
                    site.leave()
                    assert site.report()["phase"] == "done"
                else:
                    site.stop()  # and the block leaves
        finally:
            gone.set()
        ends["b"] = x

    nodes.threads(2, lambda rank: goes() if rank else stays())
    # Two parcels that a busy machine brings together count as one.
    lowered = ends["lowered"] + ends["a"]["mass_lowered"]
    assert ends["a"]["mass"] + lowered == pytest.approx(2)
    assert 1 < ends["b"].mean() < 2


def silent_neighbour(run):
    """Two nodes that have met, of which the first waits to leave: the second says no more."""
    made = [numpy.zeros(DIMENSION, dtype=numpy.float32) for _ in range(2)]
    sites = [sotto.Site(x, name=name, **run) for x, name in zip(made, "ab")]

    def meet(rank):
        sites[rank].connect()
        step(sites[rank], made[rank], rank + 1)

    nodes.threads(2, meet)
    return sites


def test_a_second_stop_ends_a_leave_that_waits():
    leaver, silent = silent_neighbour(of_a_run(3600))
    leaver.stop()
    assert leaver.over
    leaver.stop()
    leaver.leave()
    assert leaver.report()["phase"] == "done"
    leaver.close()
    silent.close()


def test_ctrl_c_ends_a_leave_that_waits_after_a_stop(tmp_path):
    script = tmp_path / "leaves.py"
    script.write_text("""
import os, signal, sys, threading
import numpy, sotto
from sotto import _waiting
def made(name):
    x = numpy.zeros(8, numpy.float32)
    return sotto.Site(x, name=name, nodes=2, seeds=sys.argv[1], lr=0.1, leave_within=3600)
def meet(site):
    site.connect()
    site.step(numpy.ones(8, numpy.float32))
def interrupt():
    while not (_waiting._caller and _waiting._caller.calling):
        pass
    os.kill(os.getpid(), signal.SIGINT)
leaver, silent = made("a"), made("b")
threads = [threading.Thread(target=meet, args=(site,)) for site in (leaver, silent)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
leaver.stop()
threading.Thread(target=interrupt).start()
try:
    leaver.leave()
except KeyboardInterrupt:
    print("interrupted")
leaver.close()
silent.close()
""")
    done = nodes.run_script(script, f"127.0.0.1:{nodes.free_port()}")
    assert done.stdout == "interrupted\n", done.stderr


def page(port, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=20) as answer:
        return answer.read().decode()


def test_a_site_shows_operators_how_it_stands(federation, tmp_path):
    port = nodes.free_port()
    x = numpy.zeros(DIMENSION, dtype=numpy.float32)
    shown = {"monitor": port, "audit": tmp_path / "audit", "tensorboard": tmp_path / "board"}
    with sotto.Site(x, site=federation["bank"], rounds=3, lr=0.1, found_after=0.01, **shown) as site:
        site.connect()
        while not site.over:
            step(site, x, 1)
        site.evaluated(0.5, 0.25)
        assert json.loads(page(port, "status"))["evaluation"]["accuracy"] == 0.25
        assert "sotto_round 3\n" in page(port, "metrics")
    assert '"event":"list-in-force"' in (tmp_path / "audit").read_text()
    assert any((tmp_path / "board").iterdir())


def test_a_site_goes_on_from_its_folder(federation):
    alone = {"site": federation["bank"], "lr": 0.1, "found_after": 0.01, "communication_interval": 2}
    x = numpy.zeros(DIMENSION, dtype=numpy.float32)
    site = sotto.Site(x, **alone)
    site.connect()
    for number in range(4):
        assert site.next_step == number
        assert step(site, x, 1).exchanged == (number % 2 == 1)
    site.close()  # as if the process had died
    again = numpy.zeros(DIMENSION, dtype=numpy.float32)
    with sotto.Site(again, **alone) as site:
        assert step(site, again, 1).dropped  # it was computed at another model
        assert site.next_step == 4
        assert site.round == 2
        assert (again == x).all()
        assert not step(site, again, 1).dropped


def test_what_is_wrong_is_said(federation, tmp_path):
    x = numpy.zeros(DIMENSION, dtype=numpy.float32)
    with pytest.raises(sotto.Refused, match="name: it is missing"):
        sotto.Site(x, lr=0.1)
    with pytest.raises(sotto.Refused, match="patienc: there is no such setting.*patience"):
        sotto.Site(x, site=federation["bank"], patienc=1)
    with pytest.raises(sotto.Refused, match="sites exchange by"):
        sotto.Site(x, site=federation["bank"], algorithm="dcd")
    with pytest.raises(sotto.Refused, match="patience"):
        sotto.Site(x, site=federation["bank"], patience=-1)
    bad = tmp_path / "bad.toml"
    bad.write_text('sotto-site = 1\nname = "bank"\nkey = "k"\npeers = "p"\nstate = "s"\nstat = 1\n')
    with pytest.raises(sotto.Refused, match="bad.toml:6.*stat"):
        sotto.Site(x, site=bad)
    with sotto.Site(x, site=federation["bank"], found_after=0.01) as site:
        with pytest.raises(sotto.Refused, match="another optimizer of this process trains"):
            sotto.Site(x, site=federation["lab"])
        with pytest.raises(sotto.Refused, match="gradient: '3 elements' is refused"):
            site.step(numpy.zeros(3, dtype=numpy.float32))
        with pytest.raises(sotto.NonFinite):
            site.step(numpy.full(DIMENSION, numpy.nan, dtype=numpy.float32))
        assert site.round == 0
        site.stop()
        assert site.over
    with pytest.raises(sotto.Refused, match="closed"):
        site.report()
    names = {setting["name"] for setting in sotto.choices("site-settings")}
    assert {"name", "key", "peers", "state", "patience", "compressor", "lr"} <= names

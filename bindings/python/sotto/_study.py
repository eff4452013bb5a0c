"""Simulations and plans: what runs would do on a network that need not be there."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

from ._errors import Refused
from ._handle import Interrupt
from ._library import TextList, call_for_json, setting_texts
from ._types import Path
from ._waiting import waiting

# One text, or several.
Texts = Union[str, Iterable[str], None]
# A file, or what would stand in it, as tables.
Scenario = Union[Path, Mapping[str, Any], None]


def _texts(value):
    if value is None or isinstance(value, str):
        return value
    return TextList(value)


def _with_argument_name(error, settings):
    """A refusal that calls the setting in front of its message as the argument is called."""
    name, colon, rest = str(error).partition(":")
    argument = name.replace("-", "_")
    if not colon or argument not in settings:
        return error
    renamed = Refused(argument + colon + rest)
    renamed.status = error.status
    return renamed


def _studied(function, settings):
    """What sotto_FUNCTION gives for these settings."""
    texts = setting_texts(settings)
    interrupt = Interrupt()
    found = []
    try:
        waiting(
            lambda: found.append(call_for_json(function, texts, interrupt.handle)), interrupt
        )
    except Refused as error:
        raise _with_argument_name(error, settings) from None
    return found[0]


def _toml(value, where="scenario"):
    """A value as it stands in a TOML file."""
    if isinstance(value, Mapping):
        inner = ", ".join(
            f"{json.dumps(str(key))} = {_toml(one, f'{where}.{key}')}" for key, one in value.items()
        )
        return "{" + inner + "}"
    if isinstance(value, (bool, str, int, float)):
        return json.dumps(value, ensure_ascii=False)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a number of NumPy's
        return _toml(value.item(), where)
    if isinstance(value, Iterable):
        return "[" + ", ".join(_toml(one, where) for one in value) + "]"
    raise TypeError(
        f"{where}: {value!r} is a {type(value).__name__}; give a text, a number, True or False, a "
        "list or a dictionary"
    )


def _where(scenario, scenario_text):
    """The settings that say where a scenario comes from."""
    if not isinstance(scenario, Mapping):
        file = None if scenario is None else os.fsdecode(scenario)
        return {"scenario": file, "scenario_text": scenario_text}
    if scenario_text is not None:
        raise TypeError("scenario: it has a text beside it; one is enough")
    lines = [
        f"{json.dumps(str(key))} = {_toml(value, f'scenario.{key}')}\n"
        for key, value in {"sotto-scenario": 1, **scenario}.items()
    ]
    return {"scenario": None, "scenario_text": "".join(lines)}


def simulate(
    scenario: Scenario = None,
    *,
    scenario_text: Optional[str] = None,
    seed: Optional[int] = None,
    threads: Optional[int] = None,
    equal: Optional[str] = None,
    seeds: Optional[int] = None,
    upgrades: Optional[bool] = None,
) -> dict[str, Any]:
    """Simulates the runs of a scenario in virtual time; returns a dictionary, that of `sotto simulate
    --json`, with an entry of "runs" for each. The scenario is a file or, as a dictionary of tables or in
    `scenario_text`, what would stand in it; `seed` takes the place of its own. `equal="bytes"` or "time" also sets the runs beside
    each other where they had spent as much. With `seeds` every run is played with so many, and
    "over_seeds" has means, lowest and highest. With `upgrades` the dictionary has "upgrades", what each
    link, connection or node would be worth that was better. What a run warns of is a RuntimeWarning,
    and a run that failed is among "failed".

    It may take minutes. Ctrl-C ends it within a round of what is simulated; other threads run
    meanwhile."""
    settings = {
        **_where(scenario, scenario_text),
        "seed": seed,
        "threads": threads,
        "equal": equal,
        "seeds": seeds,
        "upgrades": upgrades,
    }
    result: dict[str, Any] = _studied("simulate", settings)
    for run in result["runs"]:
        for text in run["warnings"]:
            warnings.warn(f"{run['name']}: {text}", RuntimeWarning, stacklevel=2)
    return result


def plan(
    scenario: Scenario = None,
    *,
    scenario_text: Optional[str] = None,
    algorithm: Texts = None,
    compressor: Texts = None,
    topology: Texts = None,
    rank_by: Optional[str] = None,
    minimize: Optional[str] = None,
    codec: Optional[str] = None,
    budget: Optional[int] = None,
    seeds: Optional[int] = None,
    threads: Optional[int] = None,
    strategies: Optional[bool] = None,
    seed: Optional[int] = None,
) -> dict[str, Any]:
    """Finds which algorithm, how many bits and which graph are there first on a scenario's network;
    returns a dictionary, that of `sotto plan --json`: "winner", "verdict", "command", "runs", ….
    Arguments are the options of `sotto plan`: `algorithm`, `compressor` and `topology`, a text or
    several, restrict what is considered; `minimize="money"` looks for the cheapest run in place of the
    quickest; `strategies=True` adds "strategies", other ways to share out the model, each with its
    seconds, bytes and memory and what speaks against it; `codec="none"` leaves the time of encoding out, so that the
    result does not depend on this machine.

    It may take minutes. Ctrl-C ends it within a round of what is simulated; other threads run
    meanwhile."""
    settings = {
        **_where(scenario, scenario_text),
        "algorithm": _texts(algorithm),
        "compressor": _texts(compressor),
        "topology": _texts(topology),
        "rank_by": rank_by,
        "minimize": minimize,
        "codec": codec,
        "budget": budget,
        "seeds": seeds,
        "threads": threads,
        "strategies": strategies,
        "seed": seed,
    }
    result: dict[str, Any] = _studied("plan", settings)
    return result

"""Finds what would leave parameters untrained behind an optimizer's back."""

import gc
import weakref

import torch

from ._errors import Refused

_REPLACED = (
    "replaced (load_state_dict(assign=True)?) after the optimizer was made, so that steps would not "
    "reach it: make a new optimizer"
)


def plain_name(name):
    """A tensor's name without what torch.compile puts in front, so that nodes that compile and nodes
    that do not may train together."""
    return name.replace("_orig_mod.", "")


class Members:
    """The parameters that a module had when the optimizer was made."""

    def __init__(self, module, slots):
        self._module = module
        self._trained = {id(slot.parameter) for slot in slots}
        # Kept, so that no other object gets the id of one that is gone.
        self._known = {id(p): (p, p.requires_grad) for p in module.parameters()}
        if not self._trained <= self._known.keys():
            raise Refused(
                "module: the optimizer has parameters that are not the module's; give the module that "
                "all of them belong to"
            )

    def retaken(self, slots):
        """What watches once the optimizer has taken the parameters anew; what the module has got
        without the optimizer stays new."""
        self._trained = {id(slot.parameter) for slot in slots}
        self._known.update((id(slot.parameter), (slot.parameter, True)) for slot in slots)
        return self

    def require_same(self):
        """Raises RuntimeError unless all that were to be trained are there, and nothing new is."""
        seen = set()
        for name, parameter in self._module.named_parameters():
            seen.add(id(parameter))
            _, needed = self._known.get(id(parameter), (None, False))
            if parameter.requires_grad and not needed:
                raise RuntimeError(f"{name}: it was unfrozen, added or {_REPLACED}")
        if not self._trained <= seen:
            raise RuntimeError(
                "module: a parameter that the optimizer trains is no longer the module's: make a new "
                "optimizer"
            )


class Holders:
    """The modules that hold the trained parameters, where nobody says which: found among all that
    the program has."""

    def __init__(self, slots):
        self._slots = slots
        self._places = {id(slot.parameter): [] for slot in slots}  # modules, and the names in them
        for module in gc.get_objects():
            # Not isinstance, which asks proxies what they stand for.
            if issubclass(type(module), torch.nn.Module):
                for name, parameter in module.__dict__.get("_parameters", {}).items():
                    if id(parameter) in self._places:
                        self._places[id(parameter)].append((weakref.ref(module), name))

    def retaken(self, slots):
        """What watches once the optimizer has taken the parameters anew."""
        self.require_same()
        return Holders(slots)

    def require_same(self):
        """Raises RuntimeError where the modules that held a parameter have others in its place."""
        for slot in self._slots:
            there = [(at(), name) for at, name in self._places[id(slot.parameter)]]
            held = [
                at._parameters.get(name) is slot.parameter for at, name in there if at is not None
            ]
            if held and not any(held):
                raise RuntimeError(f"{slot.name}: it was {_REPLACED}")

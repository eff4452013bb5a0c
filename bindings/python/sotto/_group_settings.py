"""What the groups of a wrapped optimizer step with, and what the other nodes know of it."""

from __future__ import annotations

from ._local_optimizer import optimizer_settings, options_of, rates_of


def _sizes(optimizer):
    return [len(group["params"]) for group in optimizer.param_groups]


def group_options(optimizer):
    """Learning rates, and a text of all else that groups say."""
    groups = optimizer.param_groups
    return rates_of(groups), options_of(groups, optimizer.defaults)


class GroupSettings:
    """The settings at the start are what the nodes agree on as they meet; later changes are announced."""

    def __init__(self, optimizer):
        self._sizes = _sizes(optimizer)
        self.compared = optimizer_settings(optimizer)  # with the other nodes, as they meet
        self._agreed = self._announced = group_options(optimizer)
        self._announced_frozen = []

    def fit(self, optimizer):
        """Whether these settings are of as many groups, each as long."""
        return self._sizes == _sizes(optimizer)

    @property
    def rate(self):
        """The first group's learning rate, on which the nodes agree."""
        return self._agreed[0][0]

    def announce(self, optimizer, frozen, node):
        """Has `node` tell the others what this one steps with, where a scheduler or the caller changed
        it; `frozen` are the parameters that are frozen by now."""
        now = group_options(optimizer)
        if (now, frozen) == (self._announced, self._announced_frozen):
            return
        (rates, others), (agreed_rates, agreed_others) = now, self._agreed
        one_rate = len(set(rates)) == 1 and len(set(agreed_rates)) == 1
        rate_alone = others == agreed_others and not frozen and (rates == agreed_rates or one_rate)
        told = "" if rate_alone else f"{rates} {others} frozen {frozen}"
        node.announce_settings(rates[0], told)
        self._announced, self._announced_frozen = now, frozen

"""sotto for PyTorch modules on the CPU.

    optimizer = sotto.torch.DistributedOptimizer(module, compressor="quant:8", lr=0.05)
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss(module(inputs), targets).backward()
        optimizer.step()
    optimizer.finish()

As a context manager it finishes the run at the end of the block, or tells all nodes what the block
raised.
"""

import contextlib
import math

import torch

from ._optimizer import Optimizer


class DistributedOptimizer:
    """Trains the parameters of `module` that need gradients; settings are those of
    sotto.Optimizer, and lie in `optimizer`, the one that it holds.

    The parameters and their gradients become views of two flat tensors, so that nothing is copied
    at a step. Afterwards do not move the module or change its type. All nodes must start from the
    same values: seed PyTorch alike, or load one state. Buffers such as the means of batch
    normalization stay each node's own.
    """

    def __init__(self, module, *, store=None, **settings):
        if not isinstance(module, torch.nn.Module):
            raise TypeError(
                f"module: {type(module).__name__} is no torch.nn.Module; give the model, not its "
                "parameters"
            )
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        for name, parameter in named:
            if parameter.dtype != torch.float32 or parameter.device.type != "cpu":
                raise TypeError(
                    f"{name}: it holds {parameter.dtype} on {parameter.device}; sotto takes "
                    "torch.float32 on the CPU"
                )
        total = sum(parameter.numel() for _, parameter in named)
        self._flat = torch.empty(total)
        self._gradient = torch.zeros(total)
        self._slots = []  # (name, parameter, its part of the model, of the gradient)
        offset = 0
        with torch.no_grad():
            for name, parameter in named:
                end = offset + parameter.numel()
                values = self._flat[offset:end].view(parameter.shape)
                values.copy_(parameter)
                self._slots.append(
                    (name, parameter, values, self._gradient[offset:end].view(parameter.shape))
                )
                offset = end
        layout = [(name, tuple(parameter.shape)) for name, parameter in named]
        # Nothing of the module is changed when the settings are refused.
        self.optimizer = Optimizer(self._flat, layout=layout, store=store, **settings)
        for _, parameter, values, gradient in self._slots:
            parameter.data = values
            parameter.grad = gradient

    def zero_grad(self):
        """Sets all gradients to zero, in place, and lets algorithms that send the model itself
        (dpsgd) send it while the next gradient is computed."""
        self.optimizer.begin_step()
        self._gradient.zero_()
        for _, parameter, _, gradient in self._slots:
            parameter.grad = gradient

    def step(self):
        """One round with the gradients that backward() left; what has none counts as zero."""
        with torch.no_grad():
            for name, parameter, values, gradient in self._slots:
                if parameter.data_ptr() != values.data_ptr():
                    raise RuntimeError(f"{name}: the module was moved or changed its type")
                if parameter.grad is None:
                    gradient.zero_()
                elif parameter.grad.data_ptr() != gradient.data_ptr():
                    gradient.copy_(parameter.grad)  # made anew, e.g. after zero_grad of the module
                parameter.grad = gradient
            self.optimizer.step(self._gradient)
            self._tell_autograd()

    @contextlib.contextmanager
    def averaged(self):
        """Inside the block the module holds the mean of all nodes' models, to evaluate or save it;
        afterwards it is as it was. All nodes enter it after the same step, before zero_grad()."""
        mean = torch.empty_like(self._flat)
        self.optimizer.mean(mean)
        own = self._flat.clone()
        self._show(mean)
        try:
            yield
        finally:
            self._show(own)

    def _show(self, values):
        """Has the module hold other values."""
        with torch.no_grad():
            self._flat.copy_(values)
            self._tell_autograd()

    def _tell_autograd(self):
        """The parameters have changed: a graph of before cannot be used any more."""
        for _, parameter, _, _ in self._slots:
            parameter.view(-1)[:0].zero_()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.optimizer.__exit__(kind, error, trace)

    def evaluated(self, loss, accuracy=math.nan):
        """As Optimizer.evaluated: what the caller has found of its model, for who watches the run."""
        self.optimizer.evaluated(loss, accuracy)

    def give_up(self, reason):
        """As Optimizer.give_up. A block of `with` that raises does so by itself."""
        self.optimizer.give_up(reason)

    def report(self):
        """As Optimizer.report."""
        return self.optimizer.report()

    def finish(self):
        """Waits until all nodes have come this far. No step may follow. Where other nodes still take
        steps, the setting `join` says what happens."""
        self.optimizer.finish()
        with torch.no_grad():
            self._tell_autograd()

    def finish_with_mean(self):
        """As finish, and leaves the module with the mean of all nodes' models."""
        mean = torch.empty_like(self._flat)
        self.optimizer.finish_with_mean(mean)
        self._show(mean)

    def ask_to_stop(self):
        """As Optimizer.ask_to_stop."""
        self.optimizer.ask_to_stop()

    def close(self):
        """Leaves the run; the module keeps its parameters."""
        self.optimizer.close()

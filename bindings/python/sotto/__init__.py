"""sotto: decentralized and compressed training over slow links.

    import numpy, sotto

    parameters = numpy.zeros(1000, dtype=numpy.float32)
    with sotto.Optimizer(parameters, compressor="quant:8", lr=0.05) as optimizer:
        for batch in batches:
            optimizer.step(gradient_at(parameters, batch))  # in place of parameters -= lr * gradient

Arrays are NumPy arrays or PyTorch tensors on the CPU, contiguous and of 32-bit floats. Nothing is
copied: the parameters are changed where they lie.

Settings are keyword arguments under the names of the options of `sotto train`, with underscores:
`weight_decay=0.01`; `sotto.choices("settings")` lists them.

`sotto.Site` trains with sites that come and go, each with a folder and a key of its own.
`sotto.ElasticOptimizer` is one node of an all-reduce whose nodes come and go: one model at all.

`sotto.simulate` and `sotto.plan` say what runs would do on a network that need not be there.

Errors are sotto.Error and what is derived from it; the message says what is wrong and what would do.

Threads: calls let go of the interpreter's lock, so that other threads run meanwhile, other nodes
among them. An Optimizer or a Compressor takes one thread at a time, whichever it is; a second one
meanwhile gets sotto.Refused. A Store and a Topology may be shared. A call that waits for peers ends
after the setting `timeout` at the latest; Ctrl-C in the main thread ends it within a second.
"""

from ._arrays import floats
from ._elastic_optimizer import ElasticOptimizer, ElasticStep
from ._errors import (
    BudgetSpent,
    Deadline,
    Ended,
    Error,
    InputOutput,
    Internal,
    Malformed,
    NonFinite,
    PeerLost,
    Refused,
    Stopped,
    Unexpected,
)
from ._library import choices, version
from ._optimizer import Optimizer, Store
from ._parts import Compressor, Topology
from ._site import Site, SiteStep
from ._step_rule import StepRule
from ._study import plan, simulate

__version__: str = version()

__all__ = [
    "BudgetSpent",
    "Compressor",
    "Deadline",
    "ElasticOptimizer",
    "ElasticStep",
    "Ended",
    "Error",
    "InputOutput",
    "Internal",
    "Malformed",
    "NonFinite",
    "Optimizer",
    "PeerLost",
    "Refused",
    "Site",
    "SiteStep",
    "StepRule",
    "Stopped",
    "Store",
    "Topology",
    "Unexpected",
    "choices",
    "floats",
    "plan",
    "simulate",
    "version",
]

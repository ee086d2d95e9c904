"""kubesched: the Kubernetes scheduler in Python.

    from kubesched import Cluster

    Cluster.from_files("cluster.json.gz").why("web-1")

`Cluster`, `InputError` and what `Cluster` returns are the public Python API. `kubesched.testing`
and `kubesched.framework` are for authors of plugins.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesched.answers.cluster import Cluster
    from kubesched.inputs.errors import UserError as InputError

__all__ = ["Cluster", "InputError", "__version__"]

__version__ = "0.1.0"

# What is logged is for those who ask for it; without them nothing goes to stderr.
logging.getLogger(__name__).addHandler(logging.NullHandler())

_PUBLIC = {
    "Cluster": ("kubesched.answers.cluster", "Cluster"),
    "InputError": ("kubesched.inputs.errors", "UserError"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the command's `--help` needs none."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PUBLIC[name]
    return getattr(import_module(module), attribute)

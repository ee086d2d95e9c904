"""kubesched: the Kubernetes scheduler in Python.

    from kubesched import Cluster

    Cluster.from_files("cluster.json.gz").why("web-1")

The public Python API is this package's names and those of `kubesched.reports`, `kubesched.rl`,
`kubesched.testing` and, for authors of plugins, `kubesched.framework`. All else is private.
"""

import logging
from typing import TYPE_CHECKING

from kubesched.lazy import lazy_names

if TYPE_CHECKING:
    from kubesched.answers.cluster import Cluster
    from kubesched.answers.scenario_play import ScenarioPlay, compare
    from kubesched.api.codec import DecodeError
    from kubesched.api.errors import SetupError
    from kubesched.api.field_errors import ConfigError
    from kubesched.framework.plugin_error import PluginError
    from kubesched.inputs.errors import UserError
    from kubesched.inputs.sources import SchedulerArguments

__all__ = [
    "Cluster",
    "ConfigError",
    "DecodeError",
    "PluginError",
    "ScenarioPlay",
    "SchedulerArguments",
    "SetupError",
    "UserError",
    "__version__",
    "compare",
]

__version__ = "0.1.0"

# Without logging set up by the user, nothing is written to stderr.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__getattr__ = lazy_names(
    __name__,
    {
        "Cluster": "kubesched.answers.cluster",
        "ConfigError": "kubesched.api.field_errors",
        "DecodeError": "kubesched.api.codec",
        "PluginError": "kubesched.framework.plugin_error",
        "ScenarioPlay": "kubesched.answers.scenario_play",
        "SchedulerArguments": "kubesched.inputs.sources",
        "SetupError": "kubesched.api.errors",
        "UserError": "kubesched.inputs.errors",
        "compare": "kubesched.answers.scenario_play",
    },
)


def __dir__() -> list[str]:
    """Return the public names, also those that are not imported yet."""
    return __all__

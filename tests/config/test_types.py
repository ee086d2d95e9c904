"""The JSON names of the configuration are v1's, also where camelCase would be another."""

import msgspec
import pytest

from kubesched.config.types import (
    ClientConnection,
    ConfigStruct,
    Configuration,
    ExtenderConfiguration,
    ExtenderTLSConfig,
    LeaderElection,
    Plugins,
)


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (
            LeaderElection,
            (
                "leaderElect leaseDuration renewDeadline retryPeriod resourceLock resourceName "
                "resourceNamespace"
            ),
        ),
        (ClientConnection, "kubeconfig acceptContentTypes contentType qps burst"),
        (
            ExtenderConfiguration,
            (
                "urlPrefix filterVerb preemptVerb prioritizeVerb weight bindVerb enableHTTPS "
                "tlsConfig httpTimeout nodeCacheCapable managedResources ignorable"
            ),
        ),
        (
            ExtenderTLSConfig,
            "insecure serverName certFile keyFile caFile certData keyData caData",
        ),
        (
            Plugins,
            (
                "preEnqueue queueSort preFilter filter postFilter preScore score reserve permit "
                "preBind bind postBind multiPoint placementGenerate placementScore"
            ),
        ),
        (
            Configuration,
            (
                "apiVersion kind parallelism leaderElection clientConnection enableProfiling "
                "enableContentionProfiling percentageOfNodesToScore podInitialBackoffSeconds "
                "podMaxBackoffSeconds profiles extenders delayCacheUntilActive"
            ),
        ),
    ],
)
def test_json_names(cls: type[ConfigStruct], names: str) -> None:
    """Every field has v1's name."""
    assert names.split() == [field.encode_name for field in msgspec.structs.fields(cls)]

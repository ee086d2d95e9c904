"""/configz shows the configuration in effect, with every default.

Upstream: staging/src/k8s.io/component-base/configz/configz.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import msgspec

from kubesched.app.http_exchange import JSON, HttpAnswer, text_answer
from kubesched.config.load import encode_configuration
from kubesched.config.types import Configuration


def configz(configuration: Configuration) -> HttpAnswer:
    """Answer with a configuration, whatever the request."""
    body = msgspec.json.encode({"componentconfig": encode_configuration(configuration)})
    return text_answer(body.decode(), content_type=JSON)

"""kubesched: the Kubernetes scheduler in Python."""

import logging

__version__ = "0.1.0"

# What is logged is for those who ask for it; without them nothing goes to stderr.
logging.getLogger(__name__).addHandler(logging.NullHandler())

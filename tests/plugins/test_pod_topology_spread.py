from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.apps import ReplicaSet
from kubesched.api.core import Node, Pod, Service
from kubesched.api.scheme import *  # noqa: F403

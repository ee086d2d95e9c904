"""Selection says which objects of a kind are meant.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go, ListOptions (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

Query = tuple[tuple[str, str], ...]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects of a kind; empty texts select all.

    Attributes:
        namespace: Their namespace.
        field_selector: Such as `status.phase!=Failed`.
        label_selector: Such as `app=web`.
    """

    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""

    @property
    def query(self) -> Query:
        """The selectors that are there, as a request names them."""
        both = (("fieldSelector", self.field_selector), ("labelSelector", self.label_selector))
        return tuple((name, selector) for name, selector in both if selector)


EVERYTHING: Final = Selection()
UNFINISHED_PODS: Final = Selection(field_selector="status.phase!=Succeeded,status.phase!=Failed")

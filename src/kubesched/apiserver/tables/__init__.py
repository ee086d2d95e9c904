"""Tables: objects as rows of cells, which is what `kubectl get` prints."""

from kubesched.apiserver.tables.table import table_of

__all__ = ["table_of"]

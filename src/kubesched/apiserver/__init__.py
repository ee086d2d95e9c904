"""Be an API server: objects with versions, changes in order, watchers that fall behind or not."""

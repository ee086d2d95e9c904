"""The embedded API server: it stores, validates, lists, watches and prints objects."""

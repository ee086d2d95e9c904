"""Say why: from a cycle's trace to values, words and tables. Pure."""

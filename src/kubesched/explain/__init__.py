"""Explanations of scheduling decisions: values, sentences and tables, from the trace of a cycle."""

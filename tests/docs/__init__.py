"""Documents: the output of commands, links and claims."""

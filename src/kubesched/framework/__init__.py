"""The contract between the scheduler and its plugins: what may be asked, answered, asked back."""

"""Many simulations: inputs x configurations x plugins x parameters x seeds."""

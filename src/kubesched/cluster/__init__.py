"""A simulated cluster: nodes, kubelets, controllers, disruption budgets, and their store."""

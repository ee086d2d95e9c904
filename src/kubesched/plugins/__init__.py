"""The in-tree plugins, one file each, named as in kube-scheduler."""

"""Code of the volume plugins: claims, volumes, CSI drivers, and the nodes that can use them."""

"""What the volume plugins share: claims, volumes, CSI drivers, and how they fit to nodes."""

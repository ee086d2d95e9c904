"""Reports as one HTML page, which contains all that the browser needs and requests nothing."""

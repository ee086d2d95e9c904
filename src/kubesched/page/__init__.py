"""Reports as one HTML page: what the browser needs is in the file, which requests nothing."""

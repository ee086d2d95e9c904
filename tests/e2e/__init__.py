"""The whole scheduler as processes over sockets, against the embedded API server."""

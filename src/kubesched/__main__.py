"""`python -m kubesched` is the command `kubesched`; the entry points of the installed commands."""

import sys

try:
    from kubesched.cli.main import kubectl_why, main
except KeyboardInterrupt:
    # Ctrl-C while Python imports what would report it.
    sys.exit(130)

__all__ = ["kubectl_why", "main"]

if __name__ == "__main__":
    main()

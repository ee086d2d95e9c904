"""Fetch the browser libraries of the page as vendored.json names them; `--check` compares them.

`npm pack` fetches each package, whose SHA-512 must be the one written down. Of a package only the
files that the page uses are kept, each with its own digest, so that the check needs no network.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

VENDOR: Final = Path(__file__).resolve().parents[1] / "src" / "kubesched" / "page" / "vendor"
LIST: Final = VENDOR / "vendored.json"


def fetch(package: dict[str, Any], folder: Path) -> None:
    """Fetch a package, and write its files and their digests.

    Raises:
        SystemExit: It is not the package that was written down.
    """
    name = f"{package['name']}@{package['version']}"
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    archive = folder / done.stdout.split()[-1]
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if package["integrity"] != f"sha512-{digest}":
        sys.exit(f"{name}: its SHA-512 is {digest}, not that of {LIST.name}")
    with tarfile.open(archive) as tar:
        for file in package["files"]:
            member = tar.extractfile(f"package/{file['from']}")
            assert member is not None, file["from"]
            content = member.read()
            (VENDOR / file["to"]).write_bytes(content)
            file["sha256"] = hashlib.sha256(content).hexdigest()


def differences(packages: list[dict[str, Any]]) -> list[str]:
    """Return the files that are not as they were fetched, and those that no package has."""
    expected = {file["to"]: file["sha256"] for package in packages for file in package["files"]}
    found = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in VENDOR.iterdir()
        if file != LIST
    }
    return sorted(name for name in expected | found if expected.get(name) != found.get(name))


def main() -> None:
    """Fetch all packages, or compare the files with their digests."""
    packages = json.loads(LIST.read_text(encoding="utf-8"))
    if "--check" in sys.argv[1:]:
        changed = differences(packages)
        if changed:
            sys.exit(f"not as fetched, run tools/vendor.py: {', '.join(changed)}")
        return
    with tempfile.TemporaryDirectory() as folder:
        for package in packages:
            fetch(package, Path(folder))
    LIST.write_text(json.dumps(packages, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

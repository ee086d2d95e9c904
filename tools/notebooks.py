"""Run notebooks, and store what their cells show, or compare it with what is stored.

python tools/notebooks.py examples/notebooks/*.ipynb
python tools/notebooks.py --check examples/notebooks/*.ipynb
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

_METADATA: Final = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


async def shown(file: Path, directory: Path) -> str:
    """Return a notebook with the outputs that its cells have now.

    Args:
        file: The notebook.
        directory: For the sockets of its kernel.
    """
    notebook = nbformat.read(file, as_version=4)
    resources = {"metadata": {"path": str(file.parent)}}
    sockets = {"transport": "ipc", "ip": str(directory / file.stem)}
    config = Config({"KernelManager": sockets})
    client = NotebookClient(
        notebook, timeout=60, record_timing=False, resources=resources, config=config
    )
    await client.async_execute()
    # The version of Python and the like differ between machines.
    notebook.metadata = nbformat.from_dict(_METADATA)
    return str(nbformat.writes(notebook)) + "\n"


async def main(directory: Path) -> int:
    """Run the notebooks side by side; return 1 if one of them shows something else."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="Compare only.")
    parser.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    found = await asyncio.gather(*(shown(file, directory) for file in arguments.files))
    is_different = False
    for file, now in zip(arguments.files, found, strict=True):
        stored = file.read_text(encoding="utf-8")
        if not arguments.check:
            file.write_text(now, encoding="utf-8")
        elif stored != now:
            is_different = True
            lines = (text.splitlines(keepends=True) for text in (stored, now))
            sys.stderr.writelines(difflib.unified_diff(*lines, str(file), f"{file} run again", n=1))
    return int(is_different)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        # Kernels leave nothing in the home directory.
        os.environ |= {"IPYTHONDIR": name, "JUPYTER_RUNTIME_DIR": name}
        sys.exit(asyncio.run(main(Path(name))))

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from kubesched import Cluster
from kubesched.answers.why import PodState, WhyReport
from kubesched.page.render import render
from tests.page.clusters import cluster

ROOT = Path(__file__).resolve().parents[2]


def _small() -> str:
    return render([Cluster.from_objects(cluster(3, 4)).view()], "kubesched top")


def test_the_same_documents_give_the_same_bytes() -> None:
    """A page can be compared with an older one."""
    assert _small() == _small()


def test_only_scripts_and_styles_of_the_page_may_run() -> None:
    """The policy has the digest of every script and style, and allows nothing else."""
    page = _small()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    own = r'<(?:script|script type="module"|style)>(.*?)</(?:script|style)>'
    texts = re.findall(own, page, re.DOTALL)
    digests = {b64encode(sha256(text.encode()).digest()).decode() for text in texts}
    assert digests == set(re.findall(r"'sha256-([^']*)'", policy))
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_live_page_may_ask_its_own_server_only() -> None:
    """The policy is otherwise that of a file."""
    assert "connect-src 'self';" in render([], "ui", live=True)


def test_data_cannot_end_the_script_that_it_is_in() -> None:
    """A name that looks like markup stays a name."""
    name = "</script><script>alert(1)</script>"
    report = WhyReport(pod=name, state=PodState.GONE, sentence=name)
    page = render([report], "kubesched why")
    assert name not in page


def test_every_copy_of_a_library_has_its_licence() -> None:
    """The licence text is part of each bundled library."""
    page = _small()
    heads = re.findall(r"^<script>/\*! (\w+) ", page, re.MULTILINE)
    assert ["preact", "preact", "htm", "uplot"] == heads
    assert page.count("Permission is hereby granted") >= 2
    assert "Apache License" in page


def test_the_wheel_has_what_a_page_needs() -> None:
    """Every file of the room, assets and libraries included."""
    builder = WheelBuilder(str(ROOT))
    found = {file.distribution_path for file in builder.recurse_included_files()}
    room = ROOT / "src" / "kubesched" / "page"
    needed = {
        f"kubesched/page/{file.relative_to(room).as_posix()}"
        for folder in ("assets", "vendor")
        for file in (room / folder).iterdir()
    }
    assert needed <= found


def test_libraries_are_as_they_were_fetched() -> None:
    """A change by hand would be lost with the next version."""
    command = [sys.executable, "tools/vendor.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)  # noqa: S603 - ours
    assert (0, b"") == (done.returncode, done.stderr)

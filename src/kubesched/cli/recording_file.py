"""The file that `--record` names: the lines of a DecisionRecorder, without credentials."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubesched.cli.files import replacing
from kubesched.cli.snapshot_fields import FieldRules
from kubesched.cli.snapshot_file import GZIP, GZIP_LEVEL
from kubesched.scheduler.decision_recorder import DecisionRecorder, RecordedBy
from kubesched.snapshot.objects import KubernetesObject


@contextmanager
def recording_to(file: Path | None, recorded_by: RecordedBy) -> Iterator[DecisionRecorder | None]:
    """Yield a recorder, None without a file; the recording is complete at the end.

    Args:
        file: Compressed with gzip if its name ends in .gz; FILE.partial until the end.
        recorded_by: The command.

    Raises:
        OSError: It cannot be written.
    """
    if file is None:
        yield None
        return
    rules = FieldRules()

    def keep(item: KubernetesObject) -> KubernetesObject:
        return rules.apply(item)

    with replacing(file, keeps_part=True) as write:
        if file.suffix != ".gz":
            recorder = DecisionRecorder(recorded_by, write, keep)
            yield recorder
            recorder.end()
            return
        packing = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP)
        recorder = DecisionRecorder(recorded_by, lambda line: write(packing.compress(line)), keep)
        yield recorder
        recorder.end()
        write(packing.flush())

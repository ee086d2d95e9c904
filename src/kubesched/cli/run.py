"""`kubesched run`, from its flags to the end of the process, and the reports of a dry run."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

import click
import msgspec

from kubesched import __version__
from kubesched.api.field_errors import ConfigError, FieldError, forbidden
from kubesched.api.quantity import parse_quantity
from kubesched.api.yaml_syntax import dump
from kubesched.app.collector import tune_collector
from kubesched.app.environment import tls_of_extender
from kubesched.app.logs import LogOptions, Logs, parse_modules
from kubesched.app.metrics.exposure import exposure_of
from kubesched.app.options import (
    AccessOptions,
    DeprecatedOptions,
    ElectionOptions,
    Options,
    ProxyOptions,
    ServingOptions,
    version_errors,
    with_flags,
)
from kubesched.app.process import SchedulerProcess
from kubesched.app.signals import STOPPING
from kubesched.cli.files import check_outputs, write_file
from kubesched.cli.flags import shown_flags
from kubesched.cli.snapshot import recording_to
from kubesched.cli.streams import stdout
from kubesched.client.connect import find_settings, new_event_loop
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import encode_configuration
from kubesched.config.types import Configuration
from kubesched.framework.structured_log import V0, V2, write
from kubesched.inputs.loading import check_plugins, in_file, load_scheduler
from kubesched.inputs.sources import SchedulerOptions
from kubesched.scheduler.decision_recorder import DecisionRecorder, RecordedBy

log: Final = logging.getLogger(__name__)


def options_of(flags: dict[str, Any]) -> Options:
    """Return the options of the flags."""
    errors = [*version_errors(flags["emulated_version"], flags["min_compatibility_version"])]
    gates = FeatureGates.parse(flags["feature_gates"])
    if flags["requestheader_uid_headers"] and not gates.enabled("RemoteRequestHeaderUID"):
        words = 'requires the "RemoteRequestHeaderUID" feature to be enabled'
        errors.append(FieldError("", f"--requestheader-uid-headers {words}"))
    if errors:
        raise ConfigError(errors)
    proxies = ProxyOptions(**_taken(ProxyOptions, flags, "requestheader_"))
    return Options(
        **_taken(Options, {**flags, "feature_gates": gates}),
        election=ElectionOptions(**_taken(ElectionOptions, flags)),
        deprecated=DeprecatedOptions(**_taken(DeprecatedOptions, flags)),
        serving=ServingOptions(**_taken(ServingOptions, flags)),
        access=AccessOptions(**_taken(AccessOptions, flags), proxies=proxies),
        exposure=exposure_of(
            flags["disabled_metrics"],
            flags["allow_metric_labels"],
            flags["allow_metric_labels_manifest"],
        ),
    )


def _taken(
    options: type[msgspec.Struct], flags: Mapping[str, Any], prefix: str = ""
) -> dict[str, Any]:
    """Return the flags that are fields of options; the table of flags gives them their names."""
    names = options.__struct_fields__
    return {name: flags[prefix + name] for name in names if prefix + name in flags}


def run(**flags: Any) -> int | None:
    """Write the configuration, or run the process; return its exit code."""
    options = options_of(flags)
    scheduler = load_scheduler(
        SchedulerOptions(
            config=options.config_file,
            feature_gates=flags["feature_gates"],
            plugins=flags["plugin"],
        )
    )
    configuration = with_flags(scheduler.configuration, options)
    if flags["write_config_to"] is not None:
        check_plugins(scheduler, options.config_file)
        with in_file(options.config_file):
            _write_configuration(configuration, flags["write_config_to"])
        return None
    check_outputs({"--record": flags["record"]}, [options.config_file])
    settings = find_settings(
        kubeconfig=configuration.client_connection.kubeconfig, master=options.master
    )
    logs = Logs(_log_options(flags, options.feature_gates), sys.stderr, stdout())
    reports = ReportWriter(stdout())

    async def main(recorder: DecisionRecorder | None) -> int:
        process = SchedulerProcess(
            options,
            configuration,
            scheduler.registry,
            settings,
            report=reports.write if options.dry_run else None,
            logs=logs,
            flags=shown_flags(click.get_current_context()),
            recorder=recorder,
        )
        _log_start(configuration, options)
        reports.on_failure = process.stop
        if options.dry_run:
            reports.follow_reader()
        try:
            # Plugins check their arguments when they are created.
            with in_file(options.config_file):
                code = await process.run()
        finally:
            # The exit code is final: ignore signals from now on.
            for number in STOPPING:
                signal.signal(number, signal.SIG_IGN)
        reports.check()
        return code

    tune_collector()
    logs.start()
    try:
        with (
            recording_to(flags["record"], RecordedBy.RUN) as recorder,
            asyncio.Runner(loop_factory=new_event_loop) as runner,
        ):
            return runner.run(main(recorder))
    finally:
        logs.stop()


def _write_configuration(configuration: Configuration, file: Path) -> None:
    """Check what the plugins do not, and write the configuration; `-` is stdout."""
    for extender in configuration.extenders:
        tls_of_extender(extender)
    text = dump(encode_configuration(configuration))
    if str(file) == "-":
        stdout().write(text)
        return
    check_outputs({"--write-config-to": file}, ())
    write_file(file, text.encode())


def _log_start(configuration: Configuration, options: Options) -> None:
    write(log, V0, "Starting kubesched", version=__version__)
    if log.isEnabledFor(V2):
        shown = encode_configuration(configuration)
        for extender in shown.get("extenders", ()):
            # More people read logs than may read private keys.
            extender.get("tlsConfig", {}).pop("keyData", None)
        write(log, V2, "Using component config", config=dump(shown))
    if options.config_file is not None:
        for name, value in msgspec.structs.asdict(options.deprecated).items():
            if value is not None:
                log.warning("--%s has no effect beside --config", name.replace("_", "-"))


def _log_options(flags: dict[str, Any], gates: FeatureGates) -> LogOptions:
    errors = list(_log_errors(flags, gates))
    if errors:
        raise ConfigError(errors)
    logging_format = flags["logging_format"]
    return LogOptions(
        verbosity=flags["verbosity"],
        modules=parse_modules(flags["vmodule"]),
        logging_format=logging_format,
        splits_stream=flags[f"log_{logging_format}_split_stream"],
    )


def _log_errors(flags: dict[str, Any], gates: FeatureGates) -> Iterator[FieldError]:
    if flags["vmodule"] and flags["logging_format"] != "text":
        yield forbidden("vmodule", "Only supported for text log format")
    if gates.enabled("LoggingAlphaOptions"):
        return
    words = "Feature LoggingAlphaOptions is disabled"
    for form in ("text", "json"):
        if flags[f"log_{form}_split_stream"]:
            yield forbidden(f"options.{form}.splitStream", words)
        if parse_quantity(flags[f"log_{form}_info_buffer_size"]).sign:
            yield forbidden(f"options.{form}.infoBufferSize", words)


class ReportWriter:
    """Writes the reports of a dry run to stdout, one line of JSON each, until that fails.

    At the first failure, `on_failure` is called, instead of raising within the scheduler.
    """

    def __init__(self, output: TextIO) -> None:
        self.on_failure: Callable[[], object] = lambda: None
        self._output = output
        self._failure: OSError | None = None

    def write(self, report: dict[str, Any]) -> None:
        """Write a line."""
        if self._failure is not None:
            return
        try:
            self._output.write(msgspec.json.encode(report).decode() + "\n")
            self._output.flush()
        except OSError as error:
            self._fail(error)

    def follow_reader(self) -> None:
        """Notice that the reader of a pipe has closed it, also without reports."""
        try:
            pipe = self._output.fileno()
        except OSError:
            return
        if stat.S_ISFIFO(os.fstat(pipe).st_mode):
            loop = asyncio.get_running_loop()

            def gone() -> None:
                loop.remove_reader(pipe)
                self._fail(BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)))

            # A pipe whose reader is gone becomes readable.
            loop.add_reader(pipe, gone)

    def check(self) -> None:
        """Raise the OSError of the first report that was not written, if there is one."""
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: OSError) -> None:
        self._failure = error
        self.on_failure()

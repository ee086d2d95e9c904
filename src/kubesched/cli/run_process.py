"""`kubesched run` from its flags to the end of the process, and the reports of a dry run."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

from kubesched.api.quantity import parse_quantity
from kubesched.api.yaml_syntax import dump
from kubesched.app.logs import LogOptions, Logs, parse_modules
from kubesched.app.metrics.exposure import exposure_of
from kubesched.app.options import (
    AccessOptions,
    DeprecatedOptions,
    ElectionOptions,
    Options,
    ProxyOptions,
    ServingOptions,
    configuration_of,
    version_errors,
)
from kubesched.app.process import SchedulerProcess
from kubesched.app.signals import STOPPING
from kubesched.cli.files import check_outputs
from kubesched.cli.snapshot_file import recording_to
from kubesched.client.connect import find_settings, new_event_loop
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.field_errors import ConfigError, FieldError, forbidden
from kubesched.config.load import encode_configuration
from kubesched.config.types import Configuration
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import in_file, register_plugins, with_plugins
from kubesched.inputs.plugin_loading import load_entry_points
from kubesched.plugins.registry import in_tree_registry
from kubesched.scheduler.decision_recorder import DecisionRecorder, RecordedBy

_ELECTION: Final = {
    "leader_elect": "leader_elect",
    "leader_elect_lease_duration": "lease_duration_seconds",
    "leader_elect_renew_deadline": "renew_deadline_seconds",
    "leader_elect_retry_period": "retry_period_seconds",
    "leader_elect_resource_lock": "resource_lock",
    "leader_elect_resource_name": "resource_name",
    "leader_elect_resource_namespace": "resource_namespace",
}
_DEPRECATED: Final = (
    "kubeconfig",
    "kube_api_qps",
    "kube_api_burst",
    "profiling",
    "contention_profiling",
)


def options_of(flags: dict[str, Any]) -> Options:
    """Return the options of the flags.

    Raises:
        ConfigError: A feature gate, version or metric is unknown.
    """
    errors = [*version_errors(flags["emulated_version"], flags["min_compatibility_version"])]
    gates = FeatureGates.parse(",".join(flags["feature_gates"]))
    if flags["requestheader_uid_headers"] and not gates.enabled("RemoteRequestHeaderUID"):
        words = 'requires the "RemoteRequestHeaderUID" feature to be enabled'
        errors.append(FieldError("", f"--requestheader-uid-headers {words}"))
    if errors:
        raise ConfigError(errors)
    return Options(
        config_file=flags["config_file"],
        master=flags["master"],
        max_in_unschedulable_seconds=flags["max_in_unschedulable_seconds"],
        feature_gates=gates,
        election=ElectionOptions(**{ours: flags[theirs] for theirs, ours in _ELECTION.items()}),
        allow_removed_locks=flags["leader_elect_allow_removed_locks"],
        deprecated=DeprecatedOptions(**{name: flags[name] for name in _DEPRECATED}),
        serving=ServingOptions(**{name: flags[name] for name in ServingOptions.__struct_fields__}),
        access=AccessOptions(
            authentication_kubeconfig=flags["authentication_kubeconfig"],
            authentication_skip_lookup=flags["authentication_skip_lookup"],
            tolerate_lookup_failure=flags["authentication_tolerate_lookup_failure"],
            token_cache_seconds=flags["authentication_token_webhook_cache_ttl"],
            authorization_kubeconfig=flags["authorization_kubeconfig"],
            always_allow_paths=flags["authorization_always_allow_paths"],
            client_ca_file=flags["client_ca_file"],
            proxies=ProxyOptions(
                **{name: flags[f"requestheader_{name}"] for name in ProxyOptions.__struct_fields__}
            ),
            allowed_cache_seconds=flags["authorization_webhook_cache_authorized_ttl"],
            denied_cache_seconds=flags["authorization_webhook_cache_unauthorized_ttl"],
        ),
        exposure=exposure_of(
            flags["disabled_metrics"],
            flags["allow_metric_labels"],
            flags["allow_metric_labels_manifest"],
        ),
        dry_run=flags["dry_run"],
        seed=flags["seed"],
        decision_records=flags["decision_records"],
    )


def run_process(flags: dict[str, Any], shown: Mapping[str, str]) -> int | None:
    """Write the configuration, or run the process; return its exit code.

    Args:
        flags: The values by parameter name.
        shown: The same as text, by flag, for /flagz.

    Raises:
        UserError: The configuration file is invalid.
        ConfigError: A flag is invalid.
    """
    options = options_of(flags)
    configuration = _configuration(options)
    if flags["write_config_to"] is not None:
        _write(flags["write_config_to"], dump(encode_configuration(configuration)))
        return None
    check_outputs({"--record": flags["record"]}, [options.config_file])
    registry = in_tree_registry()
    added = register_plugins(registry, flags["plugin"])
    load_entry_points(registry, configuration)
    configuration = with_plugins(configuration, added)
    settings = find_settings(
        kubeconfig=configuration.client_connection.kubeconfig, master=options.master
    )
    logs = Logs(_log_options(flags, options.feature_gates), sys.stderr, sys.stdout)
    reports = ReportWriter(sys.stdout)

    async def main(recorder: DecisionRecorder | None) -> int:
        process = SchedulerProcess(
            options,
            configuration,
            registry,
            settings,
            report=reports.write if options.dry_run else None,
            logs=logs,
            flags=shown,
            recorder=recorder,
        )
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

    logs.start()
    try:
        with (
            recording_to(flags["record"], RecordedBy.RUN) as recorder,
            asyncio.Runner(loop_factory=new_event_loop) as runner,
        ):
            return runner.run(main(recorder))
    finally:
        logs.stop()


def _configuration(options: Options) -> Configuration:
    with in_file(options.config_file):
        return configuration_of(options)


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


def _write(path: Path, text: str) -> None:
    if str(path) == "-":
        sys.stdout.write(text)
    else:
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            reason = f"it cannot be written: {error.strerror}; name another file"
            raise UserError(f"--write-config-to {path}: {reason}") from None


class ReportWriter:
    """Writes the reports of a dry run to stdout, one line of JSON each, until that fails.

    Attributes:
        on_failure: Called on the first failure, instead of raising within the scheduler.
    """

    def __init__(self, output: TextIO) -> None:
        """Take the stream to write to."""
        self.on_failure: Callable[[], None] = _nothing
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
        """Check that all reports were written.

        Raises:
            OSError: Writing failed; BrokenPipeError if the reader closed the pipe.
        """
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: OSError) -> None:
        self._failure = error
        self.on_failure()


def _nothing() -> None:
    pass

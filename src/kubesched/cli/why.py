"""`kubesched why`: ask the cluster and the running scheduler, write the answer.

Rejects:  addresses that are not URLs; certificates that cannot be read.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from kubesched.answers.cluster import Cluster
from kubesched.answers.trial import ChangeKind, SuggestedChange
from kubesched.answers.why import Cause, PodState, WhyReport, outcome_of, why_gone, with_records
from kubesched.api.errors import ApiError
from kubesched.cli.asking import AnswerOptions, open_cluster
from kubesched.cli.errors import write_warnings
from kubesched.cli.explain import write_retry, write_unknown
from kubesched.cli.output import DETAIL, Writer, write_answer, write_page
from kubesched.client.connect import connect, new_event_loop
from kubesched.client.connection_settings import server_url
from kubesched.client.errors import without_request
from kubesched.client.requests import Request
from kubesched.explain.decision_records import (
    DecisionRecord,
    DecisionRecords,
    QueuePart,
    QueueState,
)
from kubesched.explain.document import Document
from kubesched.explain.sentences import count, grouped_by, names
from kubesched.inputs.errors import UserError
from kubesched.inputs.live_cluster import live_target
from kubesched.inputs.pod_names import pod_named
from kubesched.inputs.sources import ClusterSource
from kubesched.inputs.status_line import StatusLine

_CAUSES_MAX: Final = 5
_RECORDS_MAX: Final = 5
_PART_WORDS: Final = {
    QueuePart.ACTIVE: "ready to be tried, waiting",
    QueuePart.UNSCHEDULABLE: "waits for an event that may help,",
    QueuePart.GATED: "held back by a gate,",
    QueuePart.IN_FLIGHT: "being scheduled now, waiting",
}


def why(
    asked: AnswerOptions,
    source: ClusterSource,
    pod: str,
    namespace: str,
    top: int,
    scheduler_url: str,
    insecure_skip_tls_verify: bool,
) -> None:
    """Tell why a pod is pending, with at most `top` changes that would help.

    The scheduler at `scheduler_url` is asked too, unless that is "".
    """
    if scheduler_url and source.files:
        raise UserError("--scheduler asks about a live cluster, and there are files; leave out one")
    if insecure_skip_tls_verify and not scheduler_url:
        raise UserError("--insecure-skip-tls-verify is about --scheduler, which is not given")
    running = None
    if scheduler_url:
        running = RunningScheduler(source, scheduler_url, is_insecure=insecure_skip_tls_verify)
    with StatusLine() as status:
        cluster = open_cluster(source, asked)
        status.show(lambda: f"Asking about {pod}")
        has_page = asked.html is not None
        report, *more = _ask(cluster, pod, namespace, running, for_page=has_page)
        if has_page:
            status.show(lambda: "Drawing the cluster")
            write_page(asked.html, report, *more)
    write_answer(report, asked.output, partial(_write, top=top))


def _ask(
    cluster: Cluster,
    pod_name: str,
    namespace: str,
    running: RunningScheduler | None,
    *,
    for_page: bool,
) -> tuple[WhyReport, *tuple[Document, ...]]:
    """Return why a pod is pending, or who evicted it, and what a page shows beside that."""
    more: list[Document] = []
    try:
        if for_page:
            report, *more = cluster.why_page(pod_name, namespace)
        else:
            report = cluster.why(pod_name, namespace)
    except UserError:
        if running is None:
            raise
        gone = _ask_gone(running, pod_name, namespace or cluster.namespace)
        if gone is None:
            raise
        return (gone,)
    if running is not None and report.pod:
        records, problem = running.ask(report.pod)
        if records is None:
            report = replace(report, notes=(*report.notes, problem))
        else:
            report = with_records(report, records)
    return report, *more


def _ask_gone(running: RunningScheduler, pod_name: str, namespace: str) -> WhyReport | None:
    """Answer for a pod that the cluster does not have; None if the scheduler has no record."""
    named = pod_named(pod_name, namespace)
    if named is None:
        return None
    pod = "/".join(named)
    records, problem = running.ask(pod)
    if records is None:
        write_warnings([problem])
        return None
    return why_gone(pod, records)


def _write(writer: Writer, report: WhyReport, top: int) -> None:
    """Write the answer with at most `top` changes."""
    writer.headline(report.sentence)
    writer.notes(report.notes)
    write_unknown(writer, report.unknown)
    _write_changes(writer, report, top)
    writer.section("Nearly right", report.near_misses)
    if report.causes and (report.needs_changes or report.state is PodState.UNKNOWN):
        _write_causes(writer, report)
    if report.last_attempt is not None:
        since = report.last_attempt.time
        when = f", not scheduled since {since}" if since else ""
        writer.section(f"Last attempt{when}", [report.last_attempt.message])
    if report.queue is not None:
        _write_queue(writer, report.queue)
    records = [f"{one.time}  {_record_words(one, report.pod)}" for one in report.records]
    writer.section("Last decisions", records, _RECORDS_MAX, "-o json shows them")
    queued = report.queue.retry_after if report.queue is not None else ()
    write_retry(writer, queued or report.retry_after)


def _write_queue(writer: Writer, queue: QueueState) -> None:
    since = f" since {queue.since}" if queue.since else ""
    plugins = [entry.plugin for entry in queue.retry_after]
    rejected = [f"rejected by {names(plugins)}"] if plugins else []
    tried = f"tried {count(queue.attempts, 'time')}"
    writer.section("In the queue", [f"{_queue_words(queue)}{since}", tried, *rejected])


def _queue_words(queue: QueueState) -> str:
    match queue.part:
        case QueuePart.BACKOFF:
            return f"backs off until {queue.backoff_ends}, waiting"
        case QueuePart.WAITING_ON_PERMIT:
            return f"has {queue.node} and waits for permission by {names(queue.waits_for)},"
        case QueuePart.BINDING:
            return f"being bound to {queue.node}"
    return _PART_WORDS[queue.part]


def _record_words(record: DecisionRecord, pod: str) -> str:
    return f"evicted for {record.pod}" if record.evicts(pod) else outcome_of(record)


def _write_changes(writer: Writer, report: WhyReport, top: int) -> None:
    if not report.changes:
        if report.together:
            writer.heading("No single change makes it fit; these together do")
            for number, change in enumerate(report.together, 1):
                writer.item(f"{number}. {change.sentence}")
            writer.detail(f"then it goes to {report.together[0].node}")
        elif report.needs_changes:
            writer.line("No change that makes it fit was found.")
        return
    writer.heading("Any one of these makes it fit, the smallest first")
    # Changes that differ in their node only are one item.
    groups = grouped_by(report.changes, lambda one: (one.kind, _without_node(one)))
    for number, (change, *others) in enumerate(list(groups.values())[:top], 1):
        writer.item(f"{number}. {change.sentence}")
        more = f"; {names([_node_of(one) for one in others])} would do, too" if others else ""
        writer.detail(f"then it goes to {change.node}{more}")
    number = len(groups)
    writer.rest(number - top, f"--top {number} shows all")


def _without_node(change: SuggestedChange) -> str:
    return change.sentence.replace(_node_of(change), "", 1)


def _node_of(change: SuggestedChange) -> str:
    """Return the node that is changed, or is the model of a new one; "" for a change of a pod."""
    if change.kind is ChangeKind.ADD_NODE:
        return change.after
    return change.object.removeprefix("node ") if change.object.startswith("node ") else ""


def _write_causes(writer: Writer, report: WhyReport) -> None:
    writer.heading("Why not, the nearest misses first")
    for cause in report.causes[:_CAUSES_MAX]:
        _write_cause(writer, cause)
    left = report.causes[_CAUSES_MAX:]
    if left:
        nodes = count(sum(cause.count for cause in left), "node")
        writer.item(f"and {nodes} for {count(len(left), 'other combination')} of reasons")


def _write_cause(writer: Writer, cause: Cause) -> None:
    reasons = "; ".join(
        reason or plugin for plugin, reason in zip(cause.plugins, cause.reasons, strict=True)
    )
    writer.item(f"{count(cause.count, 'node')}: {reasons}")
    for example in cause.examples:
        details = "; ".join(example.details)
        listed = names(example.nodes)
        writer.detail(f"{listed}: {details}" if details else listed)
    shown = sum(len(example.nodes) for example in cause.examples)
    writer.rest(cause.count - shown, indent=DETAIL, dim=True)


# The running scheduler.

_PATH: Final = "/debug/decisions"
_SECONDS_MAX: Final = 5.0
_RECORDS_ASKED: Final = 20
_REASONS: Final = {
    401: "it does not accept your credentials",
    403: f"you may not get {_PATH}; ask for a ClusterRole with that nonResourceURL",
    404: "it keeps no decisions: it runs with --decision-records 0, or is not kubesched",
}


class RunningScheduler:
    """The secure port of a running scheduler, asked with the credentials of a live cluster."""

    def __init__(self, source: ClusterSource, url: str, *, is_insecure: bool) -> None:
        """Take a URL such as `https://127.0.0.1:10259`, and whether any certificate is accepted.

        Raises UserError if it is not a URL, and what `live_target` raises.
        """
        settings = live_target(source)[0]
        tls = replace(settings.tls, server_name="")
        if is_insecure:
            tls = tls.without_authority()
        try:
            server = server_url(url, tls=tls)
        except ValueError as error:
            raise UserError(f"--scheduler {url}: {error}") from None
        self._settings = replace(settings, server=server, tls=tls, proxy_url="")
        if not self._settings.may_carry_credentials:
            raise UserError(f"--scheduler {url}: credentials need https")

    def ask(self, pod: str) -> tuple[DecisionRecords | None, str]:
        """Return what it recorded of `namespace/name`, or None and a note why it did not answer.

        Raises SetupError if a certificate cannot be used.
        """
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                return runner.run(self._ask(pod)), ""
        except ApiError as error:
            reason = _REASONS.get(error.code) or _problem(error)
        except msgspec.DecodeError:
            reason = "its answer is not a DecisionRecords document"
        return None, f"The scheduler at {self._settings.server} was not asked: {reason}."

    async def _ask(self, pod: str) -> DecisionRecords:
        query = {"pod": pod, "limit": str(_RECORDS_ASKED)}
        connected = connect(self._settings, qps=-1, timeout_seconds=_SECONDS_MAX)
        async with aclosing(connected) as rest:
            body = await rest.send(Request(path=_PATH, query=query))
        return msgspec.json.decode(body, type=DecisionRecords)


def _problem(error: ApiError) -> str:
    text = without_request(str(error))
    if "certificate" in text:
        return f"{text}; --insecure-skip-tls-verify accepts any certificate"
    return text

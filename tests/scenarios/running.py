"""Scenario runs the commands of a transcript on the production scheduler, on virtual time.

    scheduler [hidden] ...     what it is made of, in YAML (`SchedulerSpec`); first, if at all
    log queue hint | log all   which lines are written from now on
    node NAME cpu=2 ...        create a node; `objects.node_patch` has the options
    pod NAME cpu=1 ...         create a pod; `objects.pod_patch` has the options
    create                     create objects, in YAML
    change KIND NAME ...       merge options and YAML into an object
    delete KIND NAME           delete; a pod on a node has its grace period
    remove KIND NAME           delete at once
    finish POD                 the pod has succeeded
    advance 5s                 let time pass
    say PLUGIN POINT [for POD] [on NODE]: ANSWER "reason"
    allow POD PLUGIN           of a pod that waits at Permit
    reject POD PLUGIN "why"    the same
    activate POD ...           as a plugin may ask
    refuse VERB [POD] CODE REASON "message" [times N]
    slow VERB [POD] 3s
    extender NAME VERB: ANSWER what an extender answers, in YAML
    lose KIND 5s [expired]     break the scheduler's watch
    show queue | nodes | nominations | waiting | pod NAME | group NAME | counts

Commands of one step are given at one moment; what follows is what happens until nothing more does.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Final

import msgspec
import yaml
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.errors import ApiError, NotFoundError
from kubesched.api.meta import KubeObject
from kubesched.cluster.server import kind_name
from kubesched.cluster.store import Key
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.config.types import API_VERSION, KIND, Configuration, ExtenderConfiguration
from kubesched.framework.registry import SchedulerSetup
from kubesched.plugins.registry import in_tree_registry
from kubesched.queue.backoff_queue import QueueOptions
from kubesched.scheduler.assembly import assemble, queue_options
from kubesched.scheduler.eventhandlers import EventHandlers
from kubesched.scheduler.loop import Scheduler
from kubesched.simulator.object_server import PODS, ObjectServer
from kubesched.simulator.simulated_api import SimulatedInformer
from kubesched.simulator.virtual_loop import run
from kubesched.simulator.world import watched_kinds
from kubesched.snapshot.pod_info import PodInfo
from tests.scheduler.fake_extender import FakeExtender

from .objects import (
    joined,
    kind_of_word,
    merged,
    node_of,
    node_patch,
    object_of,
    objects_of,
    patch_of,
    plain_of,
    pod_of,
    pod_patch,
)
from .recorder import Recorder
from .recording_api import RecordingApi, Trouble
from .scripted import Script, ScriptedSpec, answer_of, scripted_plugin
from .showing import Showing
from .transcript import Step

# Timers of one moment run in any order, so nothing that matters shares a moment: timers that are
# due come first, then commands, then their watch events, kind by kind.
_AFTER_TIMERS_SECONDS: Final = 1e-4
_AFTER_COMMANDS_SECONDS: Final = 1.5e-4
_BETWEEN_KINDS_SECONDS: Final = 1e-6


class SchedulerSpec(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The parts of a transcript's scheduler.

    Attributes:
        plugins: Scripted plugins by name; each runs at its points in every profile that has no
            `plugins` of its own.
        profiles: As in the configuration.
        extenders: As in the configuration, `urlPrefix` is the name.
        configuration: Other fields of the configuration.
        feature_gates: Those that differ from the defaults.
        max_in_unschedulable_pods_seconds: When pods are flushed.
    """

    plugins: dict[str, ScriptedSpec] = {}
    profiles: list[dict[str, Any]] = []
    extenders: list[dict[str, Any]] = []
    configuration: dict[str, Any] = {}
    feature_gates: dict[str, bool] = {}
    max_in_unschedulable_pods_seconds: float = 300.0

    def configured(self, gates: FeatureGates) -> Configuration:
        """Return the configuration."""
        raw = {"apiVersion": API_VERSION, "kind": KIND, **self.configuration}
        profiles = self.profiles or [{"schedulerName": "default-scheduler"}]
        raw["profiles"] = [{"plugins": self._points(), **profile} for profile in profiles]
        if self.extenders:
            raw["extenders"] = self.extenders
        return load_configuration(raw, gates)

    def _points(self) -> dict[str, Any]:
        points: dict[str, Any] = {}
        for name, plugin in self.plugins.items():
            for point in plugin.points:
                points.setdefault(point, {"enabled": []})["enabled"].append({"name": name})
        return points

    def options(self, setup: SchedulerSetup) -> QueueOptions:
        """Return the options of the queue."""
        seconds = self.max_in_unschedulable_pods_seconds
        options = queue_options(setup)
        return replace(options, max_in_unschedulable_pods_seconds=seconds)


class Scenario:
    """A cluster and its scheduler, on the running event loop."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._time = loop.time()
        self._recorder = Recorder()
        self._server = ObjectServer(loop.time)
        self._api = RecordingApi(self._server, self._recorder)
        self._script = Script(self._recorder.write, self._find)
        self._extenders: dict[str, FakeExtender] = {}
        self._informers: dict[str, SimulatedInformer] = {}
        self._scheduler: Scheduler | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._commands: dict[str, Callable[[list[str], str], None]] = {
            name.removeprefix("_do_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("_do_")
        }

    async def play(self, step: Step) -> Sequence[str]:
        """Run a step and return the lines that follow."""
        shown: list[str] = []
        for command in step.commands:
            verb, *words = shlex.split(command.line)
            if verb == "advance":
                await self._settle()
                await self._advance(float(words[0].removesuffix("s")))
            elif verb == "show":
                await self._settle()
                shown += [*self._recorder.take(), *Showing(self.scheduler, self._server).of(words)]
            else:
                self._commands[verb](words, command.body)
        await self._settle()
        return [*shown, *self._recorder.take()]

    async def _advance(self, seconds: float) -> None:
        self._time += seconds
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(self._time + _AFTER_TIMERS_SECONDS - now)

    async def _settle(self) -> None:
        await asyncio.sleep(_AFTER_COMMANDS_SECONDS)
        for task in self._tasks:
            if task.done():
                task.result()
        if self._scheduler is not None:
            self._scheduler.cache.check()
            self._scheduler.queue.check()

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler; the default one unless the transcript describes another."""
        if self._scheduler is None:
            self._scheduler = self._start(SchedulerSpec())
        return self._scheduler

    def _start(self, spec: SchedulerSpec) -> Scheduler:
        gates = FeatureGates(spec.feature_gates)
        configuration = spec.configured(gates)
        registry = in_tree_registry()
        for name, plugin in spec.plugins.items():
            registry.register(name, scripted_plugin(name, plugin, self._script))
        setup = SchedulerSetup(configuration, registry, gates)
        scheduler, handlers = assemble(
            setup,
            self._api,
            random=Random(0),
            options=spec.options(setup),
            observers=(self._recorder,),
            connect=self._extender_of,
        )
        self._recorder.follow(scheduler)
        self._connect(handlers)
        self._tasks.append(asyncio.ensure_future(scheduler.run()))
        return scheduler

    def _extender_of(self, configuration: ExtenderConfiguration) -> FakeExtender:
        name = configuration.url_prefix.removeprefix("http://")
        return self._extenders.setdefault(name, FakeExtender({}))

    def _connect(self, handlers: EventHandlers) -> None:
        *others, pods = watched_kinds()
        for at, kind in enumerate(others):
            self._follow(kind, handlers, partial(float, at * _BETWEEN_KINDS_SECONDS))
        self._follow(pods, handlers, partial(self._until_others_are_current, len(others)))

    def _follow(self, kind: str, handlers: EventHandlers, latency: Callable[[], float]) -> None:
        informer = SimulatedInformer(self._server.store, kind, handlers, latency)
        self._informers[kind] = informer
        informer.start()

    def _until_others_are_current(self, kinds: int) -> float:
        others = (each for each in self._informers.values() if each.kind != PODS)
        is_current = all(each.is_current for each in others)
        return 0.0 if is_current else kinds * _BETWEEN_KINDS_SECONDS

    # Objects.

    def _create(self, item: KubeObject) -> None:
        _ = self.scheduler
        self._server.create(item)

    def _pod(self, name: str) -> Pod:
        namespace, _, name = name.rpartition("/")
        pod = self._server.pod(namespace or "default", name)
        assert pod is not None, f"there is no pod {name}"
        return pod

    def _find(self, name: str) -> PodInfo | None:
        namespace, _, name = name.rpartition("/")
        pod = self._server.pod(namespace or "default", name)
        return None if pod is None else PodInfo(pod)

    def _object(self, word: str, name: str) -> KubeObject:
        kind = kind_of_word(word)
        namespace, _, name = name.rpartition("/")
        namespace = (namespace or "default") if kind.is_namespaced else ""
        found = self._server.store.find(Key(kind_name(kind.type), namespace, name))
        assert found is not None, f"there is no {word} {name}"
        return found

    def _do_scheduler(self, words: list[str], body: str) -> None:
        assert self._scheduler is None, "the scheduler runs already"
        self._scheduler = self._start(msgspec.convert(yaml.safe_load(body), SchedulerSpec))

    def _do_log(self, words: list[str], body: str) -> None:
        self._recorder.categories = frozenset(words) - {"all"}

    def _do_node(self, words: list[str], body: str) -> None:
        self._create(node_of(words[0], words[1:], body))

    def _do_pod(self, words: list[str], body: str) -> None:
        self._create(pod_of(words[0], words[1:], body))

    def _do_create(self, words: list[str], body: str) -> None:
        for item in objects_of(body):
            self._create(item)

    def _do_change(self, words: list[str], body: str) -> None:
        word, name, *options = words
        patch = patch_of(body)
        if options:
            patch = joined(patch, _PATCHES.get(word, pod_patch)(options))
        self._server.update(object_of(merged(plain_of(self._object(word, name)), patch)))

    def _do_delete(self, words: list[str], body: str) -> None:
        item = self._object(*words)
        if isinstance(item, Pod):
            self._server.delete_pod(item.metadata.namespace, item.metadata.name)
        else:
            self._server.delete(item)

    def _do_remove(self, words: list[str], body: str) -> None:
        self._server.delete(self._object(*words))

    def _do_finish(self, words: list[str], body: str) -> None:
        self._server.set_phase(self._pod(words[0]), "Succeeded")

    # The scheduler and its surroundings.

    def _do_say(self, words: list[str], body: str) -> None:
        plugin, point, *rest = words
        targets: dict[str, str] = {"for": "", "on": ""}
        while rest and rest[0] in targets:
            targets[rest[0]] = rest[1]
            rest = rest[2:]
        self._script.say(plugin, point, answer_of(rest), targets["for"], targets["on"])

    def _do_allow(self, words: list[str], body: str) -> None:
        waiting = self.scheduler.waiting_pods.get(PodInfo(self._pod(words[0])).uid)
        assert waiting is not None, f"{words[0]} does not wait"
        waiting.allow(words[1])

    def _do_reject(self, words: list[str], body: str) -> None:
        waiting = self.scheduler.waiting_pods.get(PodInfo(self._pod(words[0])).uid)
        assert waiting is not None, f"{words[0]} does not wait"
        waiting.reject(words[1], words[2])

    def _do_activate(self, words: list[str], body: str) -> None:
        self.scheduler.activate([PodInfo(self._pod(name)) for name in words])

    def _do_refuse(self, words: list[str], body: str) -> None:
        verb, *rest = words
        pod = "" if rest[0].isdigit() else rest.pop(0)
        code, reason, message, *more = rest
        times = int(more[1]) if more else 1_000
        error = ApiError(int(code), reason, message)
        if error.code == 404:
            error = NotFoundError(message)
        self._api.troubles.insert(0, Trouble(verb, pod, error, times=times))

    def _do_slow(self, words: list[str], body: str) -> None:
        verb, *pod, seconds = words
        trouble = Trouble(verb, "".join(pod), seconds=float(seconds.removesuffix("s")))
        self._api.troubles.insert(0, trouble)

    def _do_relent(self, words: list[str], body: str) -> None:
        self._api.troubles.clear()

    def _do_extender(self, words: list[str], body: str) -> None:
        name, verb, *rest = words
        answer = yaml.safe_load(body)
        extender = self._extenders.setdefault(name, FakeExtender({}))
        seconds = float(rest[0].removesuffix("s")) if rest else 0.0

        async def say(question: Mapping[str, Any]) -> object:
            self._recorder.write("extender", f"{name} {verb} {_asked(question)}")
            await asyncio.sleep(seconds)
            return answer

        extender.answers[verb] = say

    def _do_lose(self, words: list[str], body: str) -> None:
        kind = kind_name(kind_of_word(words[0]).type)
        seconds = float(words[1].removesuffix("s"))
        self._informers[kind].lose(seconds, expired="expired" in words)


def _asked(question: Mapping[str, Any]) -> str:
    """Return a request to an extender as short text."""
    if "PodName" in question:
        return f"{question['PodName']} to {question['Node']}"
    names = question.get("NodeNames") or sorted(question.get("NodeNameToMetaVictims") or ())
    return f"{question['Pod']['metadata']['name']} on {' '.join(names)}"


_PATCHES: Final = {"node": node_patch, "pod": pod_patch}


def played(steps: Sequence[Step]) -> list[Sequence[str]]:
    """Play all steps of a transcript and return the lines that follow each."""

    async def main() -> list[Sequence[str]]:
        scenario = Scenario()
        return [await scenario.play(step) for step in steps]

    return run(main())

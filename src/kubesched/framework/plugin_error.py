"""PluginError: an exception of a plugin, with the extension point, the pod and the source line."""

from __future__ import annotations

import inspect
import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from kubesched.framework.plugin_answers import WrongAnswerError
from kubesched.framework.structured_log import V4, write

log: Final = logging.getLogger(__name__)

# kubesched and its dependencies; code of any other module belongs to a plugin.
_OUR_MODULES: Final = frozenset(
    (
        *("kubesched", "aiohttp", "click", "msgspec", "numpy", "prometheus_client", "rich"),
        *("uvloop", "yaml", "yarl"),
    )
)


class SourceLine(msgspec.Struct, frozen=True):
    """A line of a plugin's code."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, in {self.function}"


class PluginError(Exception):
    """A plugin raised `__cause__`.

    Attributes:
        plugin: The plugin's name.
        extension_point: The extension point that was called, such as `PreFilter`.
        pod: `namespace/name` of the pod; "" if the call was about a group of pods.
        places: The plugin's own lines in the traceback, the innermost last. If there are none, the
            line of its class; empty for kubesched's own plugins.
    """

    def __init__(
        self,
        plugin: str,
        extension_point: str,
        pod: str,
        error: BaseException,
        origin: Callable[..., object] | None = None,
    ) -> None:
        """Describe an exception; `origin` is the plugin's class or hint, if known."""
        self.plugin = plugin
        self.extension_point = extension_point
        self.pod = pod
        method = error.method if isinstance(error, WrongAnswerError) else ""
        self.places = tuple(places_outside(error)) or tuple(_definition(origin, method))
        self.__cause__ = error
        about = f" for pod {pod}" if pod else ""
        did = "answered wrongly" if method else "raised"
        super().__init__(
            f"plugin {plugin} {did} in {self.extension_point}{about}: {error_text(error)}"
        )


def extension_point_of(method: Callable[..., object]) -> str:
    """Return the extension point of a plugin's method: `PreFilter` for `pre_filter`.

    `filter_row` and `score_row` are of Filter and Score.
    """
    name = str(getattr(method, "__name__", "")).removesuffix("_row")
    return "".join(part.capitalize() for part in name.split("_"))


ReportPluginError = Callable[[PluginError], None]


def log_plugin_error(error: PluginError) -> None:
    """Log one line with the source line; at verbosity 4 also the traceback."""
    place = {"place": str(error.places[-1])} if error.places else {}
    write(log, logging.ERROR, "A plugin raised an error", err=str(error), **place)
    log.log(V4, "Traceback of plugin %s", error.plugin, exc_info=error.__cause__)


def places_outside(error: BaseException) -> Iterator[SourceLine]:
    """Yield the lines of a traceback that are neither kubesched's nor a library's."""
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if not _is_ours(module):
            yield SourceLine(frame.f_code.co_filename, line, frame.f_code.co_qualname)


def error_text(error: BaseException) -> str:
    """Return the type and the text of an exception; only the text of a wrong answer."""
    if isinstance(error, WrongAnswerError) or not str(error):
        return str(error) or type(error).__name__
    return f"{type(error).__name__}: {error}"


def _definition(origin: Callable[..., object] | None, method: str) -> Iterator[SourceLine]:
    """Yield the line of the method of a class outside kubesched; of the class if it has none.

    Of a function outside kubesched, it is the function's line.
    """
    if origin is None or is_in_tree(origin):
        return
    found = inspect.unwrap(getattr(origin, method, origin))
    if is_in_tree(found):
        found = origin
    try:
        file, line = inspect.getsourcefile(found), inspect.getsourcelines(found)[1]
    except (OSError, TypeError):
        # The class has no source file.
        return
    if file is not None:
        yield SourceLine(file, line, found.__qualname__)


def is_in_tree(origin: Callable[..., object]) -> bool:
    """Whether a class or function is kubesched's or a library's."""
    return _is_ours(origin.__module__)


def _is_ours(module: str) -> bool:
    root = module.partition(".")[0]
    return root in _OUR_MODULES or root in sys.stdlib_module_names

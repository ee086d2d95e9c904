"""The configuration of Sphinx for the API reference: `make docs`."""

from __future__ import annotations

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import kubesched

project = "kubesched"
author = "the authors of kubesched"
release = kubesched.__version__
html_theme = "furo"
html_title = f"kubesched {release}"
html_copy_source = False
html_show_copyright = False
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon"]

default_role = "code"
nitpicky = True
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
add_module_names = False
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
napoleon_use_rtype = False
maximum_signature_line_length = 88
smartquotes = False
nitpick_ignore_regex = [
    # Other projects' types are not looked up: the build needs no network.
    ("py:.*", r"(collections|gymnasium|msgspec|numpy|os|pathlib|random|typing)\..*"),
    # Type variables.
    ("py:class", r"kubesched\..*\.[A-Z]"),
    # Parts of Kubernetes' objects, whose fields are those of Kubernetes in snake_case.
    ("py:class", r"kubesched\.api\..*"),
    ("py:class", r"(kubesched\.snapshot\.objects\.)?KubeObject"),
    # What only plugins of kube-scheduler use of tables, templates and handles.
    ("py:class", r"([a-z_.]*\.)?(AffinityTerms|FilterReads|GateSpec|HostPort|ImageStates)"),
    ("py:class", r"([a-z_.]*\.)?(LabelGroups?|Marker|Nominator|PodCounts|PodFields)"),
    ("py:class", r"([a-z_.]*\.)?(PodGroupStates|RowView|Services|UsedPorts)"),
    # A type of the official client, which need not be installed.
    ("py:class", "ApiClient"),
]


def _resolve(
    _app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Return a link from the name of a class, or of its private module, to its public place.

    Public classes have a name of their own, so the last part of a name suffices.
    """
    name = node["reftarget"].rpartition(".")[2]
    domain = env.domains.python_domain
    for target, entry in domain.objects.items():
        if target.rpartition(".")[2] == name and entry.objtype in ("class", "exception"):
            place = env.app.builder.get_relative_uri(node["refdoc"], entry.docname)
            link = nodes.reference("", "", internal=True, refuri=f"{place}#{entry.node_id}")
            link += content
            return link
    return None


def _without_constructor(
    _app: Sphinx, what: str, _name: str, found: object, *_: object
) -> tuple[str, None] | None:
    """Hide the constructor's arguments where classmethods are there to be called instead."""
    hides = what == "class" and any(name.startswith("from_") for name in vars(found))
    return ("", None) if hides else None


def setup(app: Sphinx) -> None:
    """Connect the handlers."""
    app.connect("autodoc-process-signature", _without_constructor)
    app.connect("missing-reference", _resolve)

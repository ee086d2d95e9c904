"""Label and node selectors against tables of upstream's facts and slow twins."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Affinity, Node, NodeAffinity, PodSpec
from kubesched.api.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    PreferredSchedulingTerm,
)
from kubesched.api.requirements import (
    EVERYTHING,
    NOTHING,
    Requirement,
    SelectorError,
    parse_int64,
    selector_of,
)
from kubesched.api.selectors import (
    compile_label_selector,
    label_selector_error,
    matches_label_selector,
    matches_node_selector,
    matches_node_selector_term,
    matches_required_node_affinity,
    node_selector_errors,
    node_selector_term_errors,
    preferred_term_errors,
    selector_from_set,
)

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def _expression(key: str, operator: str, *values: str) -> LabelSelector:
    requirement = LabelSelectorRequirement(key=key, operator=operator, values=values)
    return LabelSelector(match_expressions=(requirement,))


@pytest.mark.parametrize(
    ("selector", "matched"),
    [
        pytest.param(None, "", id="none matches nothing"),
        pytest.param(LabelSelector(), "abc", id="empty matches everything"),
        pytest.param(LabelSelector(match_labels={"k": "1"}), "a", id="label"),
        pytest.param(_expression("k", "In", "1", "3"), "a", id="in"),
        pytest.param(_expression("k", "NotIn", "1"), "bc", id="not in counts absence"),
        pytest.param(_expression("k", "Exists"), "ab", id="exists"),
        pytest.param(_expression("k", "DoesNotExist"), "c", id="does not exist"),
        pytest.param(_expression("k", "In"), "", id="in without values is refused"),
        pytest.param(_expression("k", "Exists", "1"), "", id="exists with values is refused"),
        pytest.param(_expression("k", "Gt", "0"), "", id="comparisons are for nodes"),
        pytest.param(_expression("k", "NotIn", "!"), "", id="a value in a wrong format"),
    ],
)
def test_label_selector(selector: LabelSelector | None, matched: str) -> None:
    """The selector matches these of three label sets."""
    objects: dict[str, dict[str, str]] = {"a": {"k": "1"}, "b": {"k": "2"}, "c": {"q": "1"}}
    found = (name for name, labels in objects.items() if matches_label_selector(selector, labels))
    assert matched == "".join(found)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        pytest.param(None, None, id="none"),
        pytest.param(LabelSelector(match_labels={"a.b/c": ""}), None, id="well formed"),
        pytest.param(
            _expression("k", "Gt", "1"), '"Gt" is not a valid pod selector operator', id="operator"
        ),
        pytest.param(
            _expression("k", "In"),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="no values",
        ),
        pytest.param(
            _expression("k", "Exists", "a"),
            'values: Invalid value: ["a"]: values set must be empty for exists and does not exist',
            id="values too many",
        ),
        pytest.param(
            LabelSelector(match_labels={"k!": "v"}),
            f'key: Invalid value: "k!": name part {NAME_RULE}',
            id="key",
        ),
        pytest.param(
            _expression("k", "In", "a", "b" * 64),
            f'values[1][k]: Invalid value: "{"b" * 64}": must be no more than 63 bytes',
            id="value too long",
        ),
        pytest.param(
            _expression("", "In"),
            f'[key: Invalid value: "": name part must be non-empty; name part {NAME_RULE}, '
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty]",
            id="two errors",
        ),
    ],
)
def test_label_selector_errors_are_upstreams(
    selector: LabelSelector | None, message: str | None
) -> None:
    """Invalid selectors raise with upstream's message."""
    assert message == label_selector_error(selector)
    if message is not None:
        with pytest.raises(SelectorError):
            compile_label_selector(selector)


def test_compiled_selectors_are_values() -> None:
    """Equal selectors have equal hashes; the empty selector and NOTHING differ."""
    first = compile_label_selector(LabelSelector(match_labels={"a": "1", "b": "2"}))
    second = compile_label_selector(LabelSelector(match_labels={"b": "2", "a": "1"}))
    assert {first} == {second}
    assert (True, False, False) == (EVERYTHING.is_empty, NOTHING.is_empty, first.is_empty)
    assert selector_from_set({"a": "1", "b": "2"}) == first
    assert str(first) == "a=1,b=2"


def test_requirements_are_added_in_order_of_keys() -> None:
    """Added requirements are sorted; NOTHING stays NOTHING."""
    more = (Requirement("a", "In", ("1",)),)
    selector = selector_from_set({"b": "2"}).with_requirements(more)
    assert ["a", "b"] == [requirement.key for requirement in selector.requirements]
    assert NOTHING == NOTHING.with_requirements(more)


_keys = st.sampled_from(["a", "b", "x/y"])
_values = st.sampled_from(["", "1", "2", "v"])
_labels = st.dictionaries(_keys, _values)
_label_requirements = st.builds(
    LabelSelectorRequirement,
    key=_keys,
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    values=st.lists(_values, min_size=1, max_size=2).map(tuple),
)


def _holds(key: str, operator: str, values: tuple[str, ...], labels: Mapping[str, str]) -> bool:
    """The specification, word by word."""
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) == (operator == "Exists")
    if key not in labels or not labels[key].lstrip("-").isdecimal():
        return False
    bound, number = int(values[0]), int(labels[key])
    return number > bound if operator == "Gt" else number < bound


@given(_labels, st.lists(_label_requirements, max_size=3), _labels)
def test_label_selector_equals_its_twin(
    wanted: dict[str, str], expressions: list[LabelSelectorRequirement], labels: dict[str, str]
) -> None:
    """A selector matches if all requirements do, or it is invalid."""
    selector = LabelSelector(match_labels=wanted, match_expressions=tuple(expressions))
    is_refused = any(e.values and "Exist" in e.operator for e in expressions)
    holds = all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(e.key, e.operator, e.values, labels) for e in expressions
    )
    assert (holds and not is_refused) == matches_label_selector(selector, labels)


@given(st.lists(_label_requirements.filter(lambda one: "Exist" not in one.operator)), _labels)
def test_selector_as_difference(
    expressions: list[LabelSelectorRequirement], labels: dict[str, str]
) -> None:
    """What the first matches and the second does not; the second is looked up by labels."""
    selector = compile_label_selector(LabelSelector(match_expressions=tuple(expressions)))
    operators = {one.operator for one in expressions}
    difference = selector.as_difference
    assert ("NotIn" in operators and "In" not in operators) == (difference is not None)
    if difference is not None:
        whole, excluded = difference
        assert excluded.needed_labels
        assert selector.matches(labels) == whole.matches(labels) - excluded.matches(labels)


def test_selector_that_excludes_many_values_is_no_difference() -> None:
    """Looking up hundreds of labels takes longer than comparing all; a shorter list is found."""
    many = Requirement("a", "NotIn", tuple(map(str, range(500))))
    few = Requirement("b", "NotIn", ("1", "2"))
    assert selector_of([many]).as_difference is None
    difference = selector_of([many, few]).as_difference
    assert difference is not None
    assert difference[0] == selector_of([many])


def test_narrow_selectors() -> None:
    """The shortest list counts; a selector without a list is neither narrow nor wide."""
    ten, eleven = (Requirement("a", "In", tuple(map(str, range(size)))) for size in (10, 11))
    exists = Requirement("b", "Exists", ())
    assert selector_of([ten, eleven]).is_narrow
    assert selector_of([eleven, exists]).is_narrow is False
    assert selector_of([exists]).is_narrow is None
    assert NOTHING.is_narrow


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5),
        ("+5", 5),
        ("-05", -5),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(2**63)),
        ("", None),
        ("1_0", None),
        (" 1", None),
        ("\u0661", None),
        ("1.0", None),
        ("9" * 10_000, None),
    ],
)
def test_integers_are_gos(text: str, number: int | None) -> None:
    """Base 10, one sign, 64 bits."""
    assert number == parse_int64(text)


def _term(
    *requirements: tuple[str, str, tuple[str, ...]], fields: bool = False
) -> NodeSelectorTerm:
    built = tuple(
        NodeSelectorRequirement(key=key, operator=operator, values=values)
        for key, operator, values in requirements
    )
    return (
        NodeSelectorTerm(match_fields=built)
        if fields
        else NodeSelectorTerm(match_expressions=built)
    )


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param(NodeSelectorTerm(), False, id="empty"),
        pytest.param(_term(("n", "Gt", ("4",))), True, id="greater"),
        pytest.param(_term(("n", "Lt", ("5",))), False, id="not less"),
        pytest.param(_term(("z", "Gt", ("4",))), False, id="label is not an integer"),
        pytest.param(_term(("n", "Gt", ("x",))), False, id="bound is not an integer"),
        pytest.param(_term(("n", "Gt", ("1", "2"))), False, id="two bounds"),
        pytest.param(_term(("q", "NotIn", ("1",))), True, id="absent"),
        pytest.param(_term(("metadata.name", "In", ("node",)), fields=True), True, id="name"),
        pytest.param(_term(("metadata.name", "NotIn", ("node",)), fields=True), False, id="not"),
        pytest.param(_term(("metadata.name", "In", ("a", "b")), fields=True), False, id="two"),
        pytest.param(_term(("metadata.name", "Exists", ()), fields=True), False, id="operator"),
        pytest.param(_term(("spec.x", "NotIn", ("a",)), fields=True), True, id="unknown field"),
        pytest.param(_term(("spec.x", "In", ("",)), fields=True), True, id="missing is empty"),
    ],
)
def test_node_selector_term(term: NodeSelectorTerm, expected: bool) -> None:
    """Whether it holds for one node."""
    assert expected == matches_node_selector_term(term, {"n": "5", "z": "a"}, "node")


def test_node_without_a_name_has_no_fields() -> None:
    """For a node without a name, fields are ignored."""
    term = _term(("metadata.name", "In", ("node",)), fields=True)
    assert matches_node_selector_term(term, {}, "")


def test_terms_are_alternatives() -> None:
    """An invalid term does not affect the others; without terms no node matches."""
    good, bad = _term(("n", "Exists", ())), _term(("n", "Gt", ("x",)))
    assert matches_node_selector(NodeSelector(node_selector_terms=(bad, good)), {"n": "1"}, "a")
    assert not matches_node_selector(NodeSelector(), {"n": "1"}, "a")


def test_node_selector_errors_are_upstreams() -> None:
    """Every error has the path of its field."""
    integer = "for 'Gt', 'Lt' operators, the value must be an integer"
    gt, word = _term(("n", "Gt", ("x",))), _term(("n", "Foo", ()))
    field = _term(("metadata.name", "In", ()), fields=True)
    assert (f'matchExpressions[0].values[0]: Invalid value: "x": {integer}',) == (
        node_selector_term_errors(gt)
    )
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(), gt, word, field))
    path = "nodeSelectorTerms"
    supported = 'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
    assert (
        f'nodeSelectorTerms[1].matchExpressions[0].values[0]: Invalid value: "x": {integer}',
        f'{path}[2].matchExpressions[0].operator: Unsupported value: "Foo": {supported}',
        "nodeSelectorTerms[3].matchFields[0].values: Invalid value: null: must have one element",
    ) == node_selector_errors(selector)
    preferred = (
        PreferredSchedulingTerm(preference=gt),
        PreferredSchedulingTerm(weight=1, preference=gt),
    )
    assert (f'[1].matchExpressions[0].values[0]: Invalid value: "x": {integer}',) == (
        preferred_term_errors(preferred)
    )


@pytest.mark.parametrize(
    ("labels", "selector", "expected"),
    [
        pytest.param(None, None, True, id="nothing asked"),
        pytest.param({}, None, True, id="nothing asked, empty"),
        pytest.param({"n": "5"}, None, True, id="label"),
        pytest.param({"n": "4"}, None, False, id="other value"),
        pytest.param({"n!": "5"}, None, False, id="labels are not validated"),
        pytest.param(None, NodeSelector(), False, id="no terms"),
        pytest.param(
            {"n": "5"},
            NodeSelector(node_selector_terms=(_term(("n", "Lt", ("5",))),)),
            False,
            id="both must hold",
        ),
    ],
)
def test_required_node_affinity(
    labels: dict[str, str] | None, selector: NodeSelector | None, expected: bool
) -> None:
    """A pod's nodeSelector and required affinity must both match."""
    affinity = NodeAffinity(required_during_scheduling_ignored_during_execution=selector)
    spec = PodSpec(node_selector=labels, affinity=Affinity(node_affinity=affinity))
    node = Node(metadata=ObjectMeta(name="node", labels={"n": "5"}))
    assert expected == matches_required_node_affinity(spec, node)
    if selector is None:
        assert expected == matches_required_node_affinity(PodSpec(node_selector=labels), node)


_node_requirements = st.builds(
    NodeSelectorRequirement,
    key=_keys,
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    values=st.lists(_values, max_size=2).map(tuple),
)


def _is_well_formed(requirement: NodeSelectorRequirement) -> bool:
    if requirement.operator in ("In", "NotIn"):
        return bool(requirement.values)
    if requirement.operator in ("Exists", "DoesNotExist"):
        return not requirement.values
    return len(requirement.values) == 1 and requirement.values[0].isdecimal()


@given(st.lists(st.lists(_node_requirements, max_size=2), max_size=3), _labels)
def test_node_selector_equals_its_twin(
    terms: list[list[NodeSelectorRequirement]], labels: dict[str, str]
) -> None:
    """Some term is valid, not empty, and all its expressions match."""
    selector = NodeSelector(
        node_selector_terms=tuple(NodeSelectorTerm(match_expressions=tuple(t)) for t in terms)
    )
    expected = any(
        term
        and all(_is_well_formed(r) for r in term)
        and all(_holds(r.key, r.operator, r.values, labels) for r in term)
        for term in terms
    )
    assert expected == matches_node_selector(selector, labels, "node")

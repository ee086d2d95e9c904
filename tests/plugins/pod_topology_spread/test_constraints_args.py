from __future__ import annotations

import pytest

from kubesched.api.field_errors import ConfigError

from .spreading import ZONE, Json, constraint, make_plugin

PLACE = "args.defaultingType"
NEVER = 'Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"'
SELECTOR = "Forbidden: constraint must not define a selector, as they deduced for each pod"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param(
            {"defaultingType": "Own"},
            ['args.defaultingType: Unsupported value: "Own": supported values: "System", "List"'],
            id="unknown-type",
        ),
        pytest.param(
            {"defaultConstraints": [constraint(ZONE, selector=None)]},
            [f'{PLACE}: Invalid value: "System": when .defaultConstraints are not empty'],
            id="system-with-list",
        ),
        pytest.param(
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": ""},
                    constraint(ZONE, whenUnsatisfiable="Never"),
                    constraint(ZONE, selector=None, whenUnsatisfiable="Never"),
                ],
            },
            [
                "args.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
                "args.defaultConstraints[0].topologyKey: Required value: can not be empty",
                "args.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
                f"args.defaultConstraints[1].whenUnsatisfiable: {NEVER}",
                f"args.defaultConstraints[1].labelSelector: {SELECTOR}",
                f"args.defaultConstraints[2].whenUnsatisfiable: {NEVER}",
                f'args.defaultConstraints[2]: Duplicate value: "{{{ZONE}, Never}}"',
            ],
            id="everything-wrong",
        ),
    ],
)
def test_args(args: Json, expected: list[str]) -> None:
    """All field errors are reported at once, with upstream's messages."""
    with pytest.raises(ConfigError) as caught:
        make_plugin(args)
    assert expected == [str(field_error) for field_error in caught.value.errors]

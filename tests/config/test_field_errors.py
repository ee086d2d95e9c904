"""A ConfigError has all field errors."""

from kubesched.config.field_errors import ConfigError, required


def test_config_error_has_a_line_per_field_error() -> None:
    """The error carries the field errors and prints one line for each."""
    error = ConfigError([required("a"), required("b")])
    expected = "a: Required value\nb: Required value"
    assert expected == str(error)
    assert len(error.errors) == 2

from kubesched.config.decoding import parse_duration


def test_a_duration_is_a_number_of_seconds() -> None:
    """Fractions of a second count."""
    assert 90.25 == parse_duration("1m30s250ms")

"""Addresses and ranges of them at the ends of a prefix."""

import pytest

from kubestow.cel import CelError, Environment, Value

ENVIRONMENT = Environment({})


def evaluate(expression: str) -> Value:
    return ENVIRONMENT.compile(expression).evaluate({})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("cidr('10.0.0.0/8').containsIP('10.255.255.255')", True),
        ("cidr('10.0.0.0/8').containsIP('11.0.0.0')", False),
        ("cidr('10.0.0.0/8').containsIP('9.255.255.255')", False),
        ("cidr('10.0.0.0/0').containsIP('1.1.1.1')", True),
        ("cidr('10.0.0.1/32').containsIP('10.0.0.1')", True),
        ("cidr('10.0.0.1/32').containsIP('10.0.0.0')", False),
        ("cidr('10.0.0.0/8').containsCIDR('10.0.0.0/8')", True),
        ("cidr('10.0.0.0/8').containsCIDR('10.0.0.0/7')", False),
        ("cidr('10.0.0.0/8').containsCIDR(cidr('11.0.0.0/9'))", False),
        ("cidr('::/0').containsCIDR('10.0.0.0/8')", False),
        ("string(cidr('10.1.2.3/9').masked())", "10.0.0.0/9"),
        ("string(cidr('10.1.2.3/32').masked())", "10.1.2.3/32"),
        ("cidr('10.1.2.3/8') == cidr('10.1.2.3/8')", True),
        ("cidr('10.1.2.3/8') == cidr('10.1.2.3/9')", False),
        ("cidr('10.1.2.3/8') == cidr('10.1.2.4/8')", False),
        ("isCIDR('10.0.0.0/32')", True),
        ("isCIDR('10.0.0.0/33')", False),
        ("isCIDR('::/128')", True),
        ("isCIDR('::/129')", False),
        ("isCIDR('10.0.0.0/08')", False),
        ("isCIDR('10.0.0/8')", False),
        ("isCIDR('10.0.0.0')", False),
        ("isIP('fe80::1%eth0')", False),
        ("isIP('1.2.3')", False),
        ("ip.isCanonical('FE80::1')", False),
        ("ip('0.0.0.0').isUnspecified()", True),
        ("ip('0.0.0.0').isGlobalUnicast()", False),
        ("ip('255.255.255.255').isGlobalUnicast()", False),
        ("ip('127.0.0.1').isGlobalUnicast()", False),
        ("ip('224.0.0.1').isGlobalUnicast()", False),
        ("ip('169.254.0.1').isGlobalUnicast()", False),
        ("ip('10.0.0.1').isGlobalUnicast()", True),
        ("ip('255.255.255.254').isGlobalUnicast()", True),
        ("ip('224.0.0.255').isLinkLocalMulticast()", True),
        ("ip('224.0.1.0').isLinkLocalMulticast()", False),
        ("ip('ff02::1').isLinkLocalMulticast()", True),
        ("ip('ff12::1').isLinkLocalMulticast()", True),
        ("ip('ff03::1').isLinkLocalMulticast()", False),
        ("ip('fe02::1').isLinkLocalMulticast()", False),
        ("isURL('https://')", False),
        ("isURL('1a://b')", False),
        ("isURL('a+b.c-1://d')", True),
        ("isURL('http://a\\x7f')", False),
        ("isURL('http://a\\x1f')", False),
        ("isURL('http://a:b')", False),
        ("isURL('http://a:1')", True),
        ("isURL('http://[::1')", False),
        ("url('https://e.com/a?b=').getQuery()['b']", ("",)),
        ("url('https://e.com').getScheme()", "https"),
        ("url('https://u@e.com').getHost()", "e.com"),
        ("url('https://e.com').getPort()", ""),
        ("url('https://e.com/a?b=1') == url('https://e.com/a?b=1')", True),
        ("url('https://e.com/a?b=1') == url('https://e.com/a?b=2')", False),
        ("url('https://e.com/é').getEscapedPath()", "/%C3%A9"),
    ],
)
def test_addresses_have_the_value(expression: str, value: Value) -> None:
    result = evaluate(expression)
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("ip('a')", 'IP Address "a" parse error during conversion from string'),
        ("ip('::ffff:1.2.3.4')", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
        ("ip('fe80::1%eth0')", 'IP address "fe80::1%eth0" with zone value is not allowed'),
        (
            "cidr('10.0.0.0/33')",
            'network address parse error during conversion from string: "10.0.0.0/33"',
        ),
        ("cidr('a/8')", 'network address parse error during conversion from string: "a/8"'),
    ],
)
def test_addresses_end_with_the_error(expression: str, error: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluate(expression)
    assert str(caught.value) == error

"""Certificates made for tests: an authority, and what it signs."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_NOW = datetime.now(UTC)  # noqa: TID251 - TLS always uses the real clock


class Authority:
    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def client(self, name: str, *groups: str) -> "Pair":
        """A client certificate, as kubeadm makes them."""
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
                x509.NameAttribute(NameOID.COMMON_NAME, name),
            ]
        )
        return self._sign(subject)

    def server(self, *names: str) -> "Pair":
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        return self._sign(subject, x509.SubjectAlternativeName(list(map(x509.DNSName, names))))

    def _sign(self, subject: x509.Name, *extensions: x509.ExtensionType) -> "Pair":
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._name, key)
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return Pair(builder.sign(self._key, hashes.SHA256()), key)


class Pair:
    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.der = certificate.public_bytes(serialization.Encoding.DER)
        self.pem = certificate.public_bytes(serialization.Encoding.PEM)
        self.key_pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOW - timedelta(days=1))
        .not_valid_after(_NOW + timedelta(days=1))
    )


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority("cluster authority")


@pytest.fixture(scope="session")
def proxy_authority() -> Authority:
    return Authority("front proxy authority")


@pytest.fixture(scope="session")
def stranger() -> Authority:
    return Authority("another authority")

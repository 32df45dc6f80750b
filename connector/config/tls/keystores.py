"""Java's key stores and PEM files, read into PEM texts.

In: a path and passwords. Out: certificates and private keys as PEM, in memory only. JKS is parsed here (it is Sun's own
format); PKCS12 and PEM by the cryptography package, which is loaded with the first store that needs it: most
configurations name none. The kind of a file is told by its first bytes, never by its name.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connector.config.contents import why_unreadable
from connector.config.secret import Secret

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import pkcs12

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_JCEKS_MAGIC = b"\xce\xce\xce\xce"
_PEM_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_PEM_KEY = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----.*?-----END (?:[A-Z0-9]+ )*PRIVATE KEY-----", re.DOTALL
)
#: The object identifier of Sun's key protection, 1.3.6.1.4.1.42.2.17.1.1, as it stands in the key's envelope.
_SUN_PROTECTION = bytes.fromhex("060a2b060104012a02110101")
_DIGEST = 20
#: Stores have kilobytes; a device has no end.
_MOST_BYTES = 16 * 2**20

_TLS12_NAME = re.compile(r"TLS_(?:(\w+?)_)?WITH_(\w+)")


class KeystoreError(ValueError):
    """A store cannot be used. ``about`` is ``location``, ``password`` or ``key``; the message holds no secret."""

    def __init__(self, message: str, about: str = "location", remedy: str | None = None) -> None:
        super().__init__(message)
        self.about = about
        self.remedy = remedy


@dataclass(frozen=True, slots=True, repr=False)
class Identity:
    """A client's certificate chain and its private key, unencrypted, as PEM texts."""

    certificates: str
    key: str

    def __repr__(self) -> str:
        return "Identity(…)"


def why_invalid_now(identity: Identity) -> str | None:
    """What clients will object to the certificate today; None where its time is right."""
    from cryptography import x509

    certificate = x509.load_pem_x509_certificates(identity.certificates.encode())[0]
    now, begins, ends = datetime.now(UTC), certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if begins <= now <= ends:
        return None
    return f"has expired on {ends:%Y-%m-%d}" if now > ends else f"is valid from {begins:%Y-%m-%d} on only"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One alias of a JKS: certificates in DER, and the protected key, if it has one."""

    alias: str
    certificates: tuple[bytes, ...]
    key: bytes | None = None


def _plain(password: str | Secret | None) -> str | None:
    return password.reveal() if isinstance(password, Secret) else password


def _load(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise KeystoreError(f"{path} cannot be read: {why_unreadable(error)}") from None
    except ValueError as error:
        raise KeystoreError(f"{path!r} cannot be read: {error}") from None
    if len(content) > _MOST_BYTES:
        raise KeystoreError(f"{path} is no key store: it has more than {_MOST_BYTES // 2**20} MiB")
    return content


@contextmanager
def _foreign(problem: str) -> Iterator[None]:
    """Whatever the cryptography package has to say of a file's content becomes one ``KeystoreError``.

    Its exceptions have no common root (ValueError, TypeError, UnsupportedAlgorithm, InvalidVersion, a panic of its own
    in Rust), and differ from version to version.
    """
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        yield
    except (KeystoreError, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except UnsupportedAlgorithm as error:
        raise KeystoreError(f"{problem}: it is of a kind that is not supported ({error})") from None
    except BaseException as error:  # its PanicException is no Exception
        raise KeystoreError(f"{problem}: {type(error).__name__}: {error}") from None


def read_certificates(path: str, password: str | Secret | None = None) -> str:
    """The trusted certificates of a JKS, PKCS12 or PEM file, as one PEM text."""
    content, secret = _load(path), _plain(password)
    if content.startswith(_JKS_MAGIC):
        ders = [der for entry in parse_jks(content, secret) for der in entry.certificates]
    elif b"-----BEGIN" in content:
        found = _PEM_CERTIFICATE.findall(content)
        if not found:
            raise KeystoreError(f"{path} holds no certificate")
        return "\n".join(part.decode("ascii", "replace") for part in found) + "\n"
    else:
        return _pkcs12_certificates(path, content, secret)
    if not ders:
        raise KeystoreError(f"{path} holds no certificate")
    return "".join(_pem_of(der, path) for der in ders)


def read_identity(
    path: str, password: str | Secret | None = None, key_password: str | Secret | None = None
) -> Identity:
    """The client's certificate chain and key. The key's password defaults to the store's."""
    content, secret = _load(path), _plain(password)
    key_secret = _plain(key_password) or secret
    if content.startswith(_JKS_MAGIC):
        entry = next((entry for entry in parse_jks(content, secret) if entry.key is not None), None)
        if entry is None or entry.key is None:
            raise KeystoreError(f"{path} holds no private key")
        if key_secret is None:
            raise KeystoreError(f"{path} needs a password", "password")
        key = _private_pem(unprotect_key(entry.key, key_secret), None, path)
        return Identity("".join(_pem_of(der, path) for der in entry.certificates), key)
    if b"-----BEGIN" in content:
        return pem_identity(content, content, key_secret, path)
    return _pkcs12_identity(path, content, secret)


def read_pem_identity(chain_path: str, key_path: str, key_password: str | Secret | None = None) -> Identity:
    """A certificate chain and a key that stand in two PEM files."""
    return pem_identity(_load(chain_path), _load(key_path), _plain(key_password), key_path)


def pem_identity(chain: bytes, key: bytes, password: str | None, path: str) -> Identity:
    """A certificate chain and a key in PEM, the key decrypted."""
    certificates = _PEM_CERTIFICATE.findall(chain)
    keys = _PEM_KEY.findall(key)
    if not certificates or not keys:
        raise KeystoreError(f"{path} holds no {'private key' if certificates else 'certificate'}")
    text = "\n".join(part.decode("ascii", "replace") for part in certificates) + "\n"
    return Identity(text, _private_pem(keys[0], password, path))


def parse_jks(content: bytes, password: str | None) -> list[_Entry]:
    """The entries of a JKS. With a password its integrity is checked, without one (trust stores) it is not."""
    if content.startswith(_JCEKS_MAGIC):
        raise KeystoreError("JCEKS is not supported", "location", "convert it with keytool -importkeystore to PKCS12")
    if password is not None:
        # Sun's check: SHA-1 over the password in UTF-16, a fixed phrase, and everything before the digest.
        expected = hashlib.sha1(_utf16(password) + b"Mighty Aphrodite" + content[:-_DIGEST]).digest()
        if not hmac.compare_digest(expected, content[-_DIGEST:]):
            raise KeystoreError("The password is wrong, or the file is damaged", "password")
    reader = _Reader(content)
    try:
        reader.skip(4)
        version, count = reader.number(), reader.number()
        return [_entry(reader, version) for _ in range(count)]
    except (struct.error, IndexError, UnicodeDecodeError):
        raise KeystoreError("The file is damaged") from None


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


class _Reader:
    """Java's DataInput over bytes."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def skip(self, count: int) -> bytes:
        part = self._content[self._at : self._at + count]
        if len(part) < count:
            raise IndexError
        self._at += count
        return part

    def number(self) -> int:
        found: int = struct.unpack(">I", self.skip(4))[0]
        return found

    def text(self) -> str:
        length: int = struct.unpack(">H", self.skip(2))[0]
        return self.skip(length).decode("utf-8")

    def block(self) -> bytes:
        return self.skip(self.number())


def _entry(reader: _Reader, version: int) -> _Entry:
    tag = reader.number()
    alias = reader.text()
    reader.skip(8)
    key = reader.block() if tag == 1 else None
    count = reader.number() if tag == 1 else 1
    certificates = []
    for _ in range(count):
        if version == 2:
            reader.text()
        certificates.append(reader.block())
    return _Entry(alias, tuple(certificates), key)


def unprotect_key(protected: bytes, password: str) -> bytes:
    """A JKS key, decrypted: salt, the key XORed with a chain of SHA-1 over password and salt, and a check digest."""
    if _SUN_PROTECTION not in protected:
        raise KeystoreError("The key's encryption is not supported", "location", "convert the store to PKCS12")
    start = protected.index(_SUN_PROTECTION) + len(_SUN_PROTECTION)
    if protected[start : start + 2] == b"\x05\x00":
        start += 2
    # What follows is one OCTET STRING that reaches to the end.
    if len(protected) < start + 2:
        raise KeystoreError("The file is damaged")
    first = protected[start + 1]
    body = protected[start + 2 + (first & 0x7F if first & 0x80 else 0) :]
    salt, encrypted, check = body[:_DIGEST], body[_DIGEST:-_DIGEST], body[-_DIGEST:]
    secret = _utf16(password)
    plain = bytearray()
    chain = salt
    while len(plain) < len(encrypted):
        chain = hashlib.sha1(secret + chain).digest()
        part = encrypted[len(plain) : len(plain) + _DIGEST]
        plain += bytes(left ^ right for left, right in zip(part, chain, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + bytes(plain)).digest(), check):
        raise KeystoreError("The key's password is wrong", "password")
    return bytes(plain)


def _pkcs12(path: str, content: bytes, password: str | None) -> pkcs12.PKCS12KeyAndCertificates:
    from cryptography.hazmat.primitives.serialization import pkcs12

    secret = _encoded(password)
    with _foreign(f"{path} holds something that cannot be read"):
        try:
            return pkcs12.load_pkcs12(content, secret)
        except ValueError as error:
            if "password" in str(error).lower() or "mac" in str(error).lower():
                raise KeystoreError("The password is wrong, or the file is damaged", "password") from None
            raise KeystoreError(f"{path} is neither JKS, nor PKCS12, nor PEM") from None


def _encoded(password: str | None) -> bytes | None:
    try:
        return None if password is None else password.encode()
    except UnicodeEncodeError:
        raise KeystoreError("The password is no text", "password") from None


def _pkcs12_certificates(path: str, content: bytes, password: str | None) -> str:
    store = _pkcs12(path, content, password)
    found = [held.certificate for held in store.additional_certs]
    if store.cert is not None:
        found.insert(0, store.cert.certificate)
    if not found:
        raise KeystoreError(f"{path} holds no certificate")
    return _pem_texts(found, path)


def _pem_texts(certificates: Iterable[x509.Certificate], path: str) -> str:
    from cryptography.hazmat.primitives import serialization

    with _foreign(f"{path} holds a certificate that cannot be read"):
        return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in certificates)


def _pkcs12_identity(path: str, content: bytes, password: str | None) -> Identity:
    store = _pkcs12(path, content, password)
    if store.key is None or store.cert is None:
        raise KeystoreError(f"{path} holds no private key")
    chain = [store.cert.certificate, *(held.certificate for held in store.additional_certs)]
    with _foreign(f"{path} holds a private key that cannot be read"):
        return Identity(_pem_texts(chain, path), _key_text(store.key))


def _pem_of(der: bytes, path: str) -> str:
    from cryptography import x509

    with _foreign(f"{path} holds a certificate that cannot be read"):
        return _pem_texts([x509.load_der_x509_certificate(der)], path)


def _private_pem(content: bytes, password: str | None, path: str) -> str:
    from cryptography.hazmat.primitives import serialization

    load: Callable[..., Any] = (
        serialization.load_pem_private_key if content.startswith(b"-----") else serialization.load_der_private_key
    )
    encrypted = b"ENCRYPTED" in content[:200]
    secret = _encoded(password) if password and encrypted else None
    with _foreign(f"{path} holds a private key that cannot be read"):
        try:
            return _key_text(load(content, secret))
        except TypeError:
            raise KeystoreError(f"The key in {path} is encrypted: it needs a password", "password") from None
        except ValueError as error:
            if "password" in str(error).lower() or "decrypt" in str(error).lower():
                raise KeystoreError("The key's password is wrong", "password") from None
            raise


def _key_text(key: Any) -> str:
    from cryptography.hazmat.primitives import serialization

    text: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return text.decode()


def openssl_cipher_name(name: str) -> str:
    """The OpenSSL name of Java's ``TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`` is ``ECDHE-RSA-AES128-GCM-SHA256``."""
    match = _TLS12_NAME.fullmatch(name.strip())
    if not match:
        return name.strip()
    exchange, cipher = (match.group(1) or "RSA"), match.group(2)
    cipher = re.sub(r"AES_(128|256)_CBC", r"AES\1", cipher)
    cipher = re.sub(r"AES_(128|256)_", r"AES\1_", cipher)
    cipher = cipher.replace("3DES_EDE_CBC", "DES_CBC3").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    prefix = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    return prefix + cipher.replace("_", "-")

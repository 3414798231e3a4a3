#!/usr/bin/env python3
"""Computes expected.json: what a vault with fixed keys stores, by another implementation.

Needs python3-cryptography 40 or newer. Run it in this directory when the format changes:
    ./make_fixtures.py > expected.json
"""
import base64
import hashlib
import hmac
import json
import struct

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def recovery_key(secret):
    number = int.from_bytes(secret, "big") << 4
    digits = "".join(CROCKFORD[number >> (5 * i) & 31] for i in reversed(range(52)))
    return "-".join(digits[i:i + 4] for i in range(0, 52, 4))


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def siv(key, plaintext, associated):
    return AESSIV(key).encrypt(plaintext, [associated])


SECRET = bytes(range(0, 256, 8))
PASSWORD = recovery_key(SECRET)
ENCRYPTION_SALT = bytes.fromhex("0001020304050607")
HMAC_SALT = bytes.fromhex("f8f9fafbfcfdfeff")
VAULT_ID = bytes.fromhex("00112233445566778899aabbccddeeff")
DIRECTORY_ID = bytes.fromhex("0f0e0d0c0b0a09080706050403020100")


def rncryptor_key(salt):
    return hashlib.pbkdf2_hmac("sha1", PASSWORD.encode(), salt, 10000, 32)


def purpose_key(purpose, length):
    source = rncryptor_key(ENCRYPTION_SALT) + rncryptor_key(HMAC_SALT)
    return HKDF(hashes.SHA256(), length, VAULT_ID, f"photovault/1/{purpose}".encode()).derive(source)


NAMES = purpose_key("names", 64)
XATTRS = purpose_key("xattrs", 64)
CHUNKS = purpose_key("chunks", 32)
CONFIG = purpose_key("config", 32)


def superblock(names):
    values = [b"1", VAULT_ID, names.encode(), ENCRYPTION_SALT, HMAC_SALT]
    message = b"".join(struct.pack(">I", len(value)) + value for value in values)
    return (
        '{"format":1,"id":"%s","names":"%s","encryptionSalt":"%s","hmacSalt":"%s","mac":"%s"}\n'
        % (VAULT_ID.hex(), names, ENCRYPTION_SALT.hex(), HMAC_SALT.hex(),
           hmac.new(CONFIG, message, hashlib.sha256).hexdigest()))


def stored(raw, text, kind, escape):
    suffix = ".securedData" if kind == "blob" else ""
    if len(text) + len(suffix) <= 255 and not escape:
        return (text + suffix.encode()).hex(), None
    digest = b64(hashlib.sha256(raw).digest())
    return (digest + ".long" + suffix).encode().hex(), (digest + ".long.name").encode().hex()


def name_case(mode, name, escape_blob=False, escape_other=False):
    raw = siv(NAMES, name, DIRECTORY_ID) if mode == "encrypted" else name
    text = b64(raw).encode() if mode == "encrypted" else name
    blob, blob_companion = stored(raw, text, "blob", escape_blob)
    other, other_companion = stored(raw, text, "other", escape_other)
    return {"mode": mode, "name": name.hex(), "text": text.hex(), "blob": blob,
            "blobCompanion": blob_companion, "other": other, "otherCompanion": other_companion}


every_byte = bytes(byte for byte in range(1, 256) if byte != ord("/"))
long_form = b"A" * 43 + b".long"
encrypted = [b"a", "Köln.jpg".encode(), b"IMG_0001.JPG", b"\xff\xfe", b" ", b"a\nb", every_byte]
encrypted += [bytes([byte]) for byte in every_byte if byte != ord(".")]
encrypted += [b"x" * count for count in (165, 166, 167, 174, 175, 176, 254, 255)]
plain = [b"a", "Köln.jpg".encode(), b"\xff\xfe", every_byte[:243]]
plain += [b"x" * count for count in (242, 243, 244, 254, 255)]
names = [name_case("encrypted", name) for name in encrypted]
names += [name_case("plain", name) for name in plain]
names += [name_case("plain", name, escape_other=True) for name in (
    b"a.securedData", b".securedData", b"a.long.name", b"directory.id", b".photovault-aB3xYz.tmp")]
names += [name_case("plain", long_form, escape_blob=True, escape_other=True)]
names += [name_case("plain", b"A" * 42 + b".long"), name_case("plain", b"vault.json")]

LINK = b"photovault/1/link"
links = [{"target": target.hex(), "stored": b64(siv(NAMES, target, LINK)).encode().hex()}
         for target in (b"a", b"../b/c.jpg", every_byte, b"y" * 3055)]

attributes = []
nonce = bytes(range(100, 116))
for name, value in ((b"user.comment", b"sunset"), (b"user.empty", b""),
                    (b"user." + b"n" * 156, every_byte)):
    sealed = nonce + siv(XATTRS, b"\x01" + value, b"photovault/1/xattr/value" + nonce + name)
    attributes.append({
        "name": name.hex(), "value": value.hex(), "nonce": nonce.hex(), "storedValue": sealed.hex(),
        "storedName": ("user.photovault.x."
                       + b64(siv(XATTRS, name, b"photovault/1/xattr/name"))).encode().hex()})

IV = bytes(range(200, 216))
HEADER = bytes([3, 1]) + ENCRYPTION_SALT + HMAC_SALT + IV
places = [
    {"mode": mode, "iv": IV.hex(), "name": name.hex(),
     "size": size, "modified": modified,
     "seal": (hmac.new(CHUNKS, b"place" + HEADER + directory + name, hashlib.sha256).digest()[:16]
              + size.to_bytes(8, "little") + modified.to_bytes(8, "little", signed=True)).hex()}
    for mode, directory in (("encrypted", DIRECTORY_ID), ("plain", bytes(16)))
    for name, size, modified in ((b"a", 0, 0), ("Köln.jpg".encode(), 5_000_000_000, 1_700_000_000_123_456_789),
                                 (b"x" * 255, 1, -1))]

print(json.dumps({
    "secret": SECRET.hex(), "recoveryKey": PASSWORD,
    "encryptionSalt": ENCRYPTION_SALT.hex(), "hmacSalt": HMAC_SALT.hex(),
    "vaultID": VAULT_ID.hex(), "directoryID": DIRECTORY_ID.hex(),
    "keys": {"names": NAMES.hex(), "xattrs": XATTRS.hex(),
             "chunks": CHUNKS.hex(), "config": CONFIG.hex()},
    "superblocks": {"encrypted": superblock("encrypted"), "plain": superblock("plain")},
    "names": names, "links": links, "attributes": attributes,
    "places": places}, indent=1))

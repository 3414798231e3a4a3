#!/usr/bin/env python3
"""A second implementation of RNCryptor v3 in password mode, over hashlib and openssl.

rncryptor.py open FILE PASSWORD          prints the plaintext
rncryptor.py make FILE PASSWORD <INPUT   writes a message
"""
import hashlib
import hmac
import os
import subprocess
import sys


def derive(password, salt):
    return hashlib.pbkdf2_hmac("sha1", password, salt, 10000, 32)


def aes(direction, key, iv, data):
    """AES-256-CBC with PKCS#7."""
    return subprocess.run(
        ["openssl", "enc", direction, "-aes-256-cbc", "-K", key.hex(), "-iv", iv.hex()],
        input=data, stdout=subprocess.PIPE, check=True).stdout


verb, path, password = sys.argv[1], sys.argv[2], os.fsencode(sys.argv[3])
if verb == "open":
    with open(path, "rb") as file:
        message = file.read()
    body, tag = message[:-32], message[-32:]
    assert body[:2] == b"\x03\x01"
    assert hmac.compare_digest(
        hmac.digest(derive(password, body[10:18]), body, "sha256"), tag)
    sys.stdout.buffer.write(
        aes("-d", derive(password, body[2:10]), body[18:34], body[34:]))
else:
    salts, iv = os.urandom(16), os.urandom(16)
    body = b"\x03\x01" + salts + iv + aes(
        "-e", derive(password, salts[:8]), iv, sys.stdin.buffer.read())
    with open(path, "wb") as file:
        file.write(body + hmac.digest(derive(password, salts[8:]), body, "sha256"))

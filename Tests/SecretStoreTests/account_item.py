#!/usr/bin/env python3
"""A second implementation of account items, over hashlib and openssl.

account_item.py open FILE PASSWORD                     prints the secret
account_item.py make FILE USER VAULT PASSWORD SECRET   writes an item
"""
import base64
import hashlib
import hmac
import json
import os
import subprocess
import sys


def keys(password, salt, n, r, p):
    both = hashlib.scrypt(
        password, salt=salt, n=n, r=r, p=p, maxmem=1 << 30, dklen=64)
    return both[:32], both[32:]


def aes(direction, key, iv, data):
    """AES-256-CBC with PKCS#7."""
    return subprocess.run(
        ["openssl", "enc", direction, "-aes-256-cbc", "-K", key.hex(), "-iv", iv.hex()],
        input=data, stdout=subprocess.PIPE, check=True).stdout


def open_item(path, password):
    with open(path) as file:
        item = json.load(file)
    assert item["format"] == 1
    kdf = item["kdf"]
    assert kdf["name"] == "scrypt"
    encryption_key, hmac_key = keys(
        password, base64.b64decode(kdf["salt"]), kdf["n"], kdf["r"], kdf["p"])
    message = base64.b64decode(item["secret"])
    assert message[:2] == b"\x03\x00", "an RNCryptor v3 message in key mode"
    body, tag = message[:-32], message[-32:]
    if not hmac.compare_digest(hmac.digest(hmac_key, body, "sha256"), tag):
        sys.exit("authentication failed")
    sys.stdout.buffer.write(aes("-d", encryption_key, body[2:18], body[18:]))


def make_item(path, user, vault, password, secret):
    salt, iv = os.urandom(24), os.urandom(16)
    encryption_key, hmac_key = keys(password, salt, 1 << 15, 8, 2)
    body = b"\x03\x00" + iv + aes("-e", encryption_key, iv, secret)
    message = body + hmac.digest(hmac_key, body, "sha256")
    item = {
        "format": 1,
        "account": user,
        "vault": {"id": base64.b64encode(os.urandom(16)).decode(), "path": vault},
        "thisDeviceOnly": True,
        "kdf": {
            "name": "scrypt", "n": 1 << 15, "r": 8, "p": 2,
            "salt": base64.b64encode(salt).decode()},
        "secret": base64.b64encode(message).decode(),
    }
    with open(path, "w") as file:
        json.dump(item, file, indent=2)


if __name__ == "__main__":
    if sys.argv[1] == "open":
        open_item(sys.argv[2], os.fsencode(sys.argv[3]))
    else:
        make_item(*sys.argv[2:5], os.fsencode(sys.argv[5]), os.fsencode(sys.argv[6]))

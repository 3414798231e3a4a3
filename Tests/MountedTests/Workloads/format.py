"""Compares Sources/FORMAT.md with what the program wrote: the example in it, an account item, extended attributes,
chunk indexes and place seals. Written from that page alone; names and contents are scripts/share/read-vault.py's part.

usage: format.py FORMAT.md KEY VAULT ACCOUNT-ITEM PASSWORD
KEY and PASSWORD are files. Prints the attributes, and how many indexes and seals it found right.
"""
import base64
import hashlib
import hmac
import json
import os
import re
import sys

from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

LEAF = 65536


def mac(key, message):
    return hmac.digest(key, message, "sha256")


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def unbase64url(text):
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))


class Keys:
    def __init__(self, password, head):
        self.id = bytes.fromhex(head["id"])
        self.root = b"".join(hashlib.pbkdf2_hmac("sha1", password, bytes.fromhex(head[salt]), 10000, 32)
                             for salt in ("encryptionSalt", "hmacSalt"))
        self.names, self.xattrs = self.key(b"names", 64), self.key(b"xattrs", 64)
        self.chunks, self.config = self.key(b"chunks", 32), self.key(b"config", 32)

    def key(self, purpose, size):
        return HKDF(hashes.SHA256(), size, self.id, b"photovault/1/" + purpose).derive(self.root)


def check_example(page):
    block = re.search(r"```\n(recovery key .*?)```", page, re.S)[1]
    example = dict(re.split(r"  +", line, maxsplit=1) for line in block.splitlines())
    number = int.from_bytes(bytes(range(0, 256, 8)), "big") << 4
    digits = "".join("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[number >> 5 * place & 31] for place in reversed(range(52)))
    recovery_key = "-".join(digits[at:at + 4] for at in range(0, 52, 4))
    head = json.loads(example["vault.json"])
    keys = Keys(recovery_key.encode(), head)
    fields = [b"1", keys.id, head["names"].encode(), bytes.fromhex(head["encryptionSalt"]),
              bytes.fromhex(head["hmacSalt"])]
    head_mac = mac(keys.config, b"".join(len(field).to_bytes(4, "big") + field for field in fields))
    names, xattrs = AESSIV(keys.names), AESSIV(keys.xattrs)
    directory = bytes.fromhex(example["directory.id"])
    nonce, name = bytes(range(100, 116)), b"user.comment"
    value = nonce + xattrs.encrypt(b"\1sunset", [b"photovault/1/xattr/value" + nonce + name])
    computed = {
        "recovery key": recovery_key, "vault.json": json.dumps({**head, "mac": head_mac.hex()}, separators=(",", ":")),
        "names key": keys.names.hex(), "directory.id": directory.hex(),
        "file": base64url(names.encrypt(b"IMG_0001.JPG", [directory])).decode() + ".securedData",
        "link target": base64url(names.encrypt(b"../b/c.jpg", [b"photovault/1/link"])).decode(),
        "xattr name": "user.photovault.x." + base64url(xattrs.encrypt(name, [b"photovault/1/xattr/name"])).decode(),
        "xattr value": value.hex(),
    }
    assert computed == example, (computed, example)


def check_account(path, password, recovery_key):
    with open(path) as file:
        item = json.load(file)
    assert item["format"] == 1 and item["kdf"]["name"] == "scrypt", item
    kdf, secret = item["kdf"], base64.b64decode(item["secret"], validate=True)
    both = hashlib.scrypt(password, salt=base64.b64decode(kdf["salt"], validate=True), n=kdf["n"], r=kdf["r"], p=kdf["p"],
                          maxmem=1 << 30, dklen=64)
    assert secret[:2] == b"\3\0" and mac(both[32:], secret[:-32]) == secret[-32:], "the item's secret"
    decryptor, unpadder = Cipher(algorithms.AES(both[:32]), modes.CBC(secret[2:18])).decryptor(), padding.PKCS7(128).unpadder()
    assert unpadder.update(decryptor.update(secret[18:-32])) + unpadder.finalize() == recovery_key, "the account item"
    return base64.b64decode(item["vault"]["id"], validate=True)


def check_seal(path, keys, encrypted):
    folder, stem = os.path.dirname(path), os.path.basename(path).removesuffix(".securedData")
    if stem.endswith(".long"):
        with open(os.path.join(folder, stem + ".name")) as file:
            stem = file.read()
    directory, name, value = bytes(16), os.fsencode(stem), os.getxattr(path, "user.photovault.place")
    if encrypted:
        with open(os.path.join(folder, "directory.id"), "rb") as file:
            directory = file.read()
        name = AESSIV(keys.names).decrypt(unbase64url(name), [directory])
    with open(path, "rb") as file:
        seal = mac(keys.chunks, b"place" + file.read(34) + directory + name)[:16]
    sealed, size, modified = value[:16], int.from_bytes(value[16:24], "little"), int.from_bytes(value[24:], "little", signed=True)
    assert len(value) == 32 and modified == os.stat(path).st_mtime_ns and 66 + 16 * (size // 16 + 1) == os.path.getsize(path), f"the size of {name}"
    assert sealed == seal, f"the seal of {name}"


def check_index(path, keys):
    """Returns the level of a blob's chunk index."""
    with open(path, "rb") as file:
        blob = file.read()
    index = os.getxattr(path, "user.photovault.chunks")
    header, body = blob[:34], index[:-16]
    assert mac(keys.chunks, b"index" + header + body)[:16] == index[-16:], "the index's MAC"
    assert body[0] == 1 and body[2:4] == b"\0\0" and body[12:28] == blob[18:34] and body[28:60] == blob[-32:], "its fields"
    assert 66 + 16 * (int.from_bytes(body[4:12], "little") // 16 + 1) == len(blob), "its size"
    level, ciphertext = body[1], len(blob) - 66
    gmac = AESGCM(mac(keys.chunks, b"leaf" + header))
    leaves = [gmac.encrypt(bytes(4) + number.to_bytes(8, "big"), b"",
                           blob[34 + LEAF * number - 16:min(34 + LEAF * (number + 1), len(blob) - 32)])
              for number in range(-(-ciphertext // LEAF))]
    assert level == next(level for level in range(64) if -(-len(leaves) // 2 ** level) <= 186), "its level"
    tags = leaves
    if level > 0:
        groups = [leaves[at:at + 2 ** level] for at in range(0, len(leaves), 2 ** level)]
        tags = [mac(keys.chunks, b"chunk" + header + bytes([level]) + number.to_bytes(8, "little") + b"".join(group))[:16]
                for number, group in enumerate(groups)]
    assert body[60:] == b"".join(tags), "its tags"
    prefix, pieces = "user.photovault.leaves.", 0
    while level > 0 and (name := f"{prefix}{pieces}") in os.listxattr(path):
        assert os.getxattr(path, name) == b"".join(leaves[512 * pieces:512 * (pieces + 1)]), name
        pieces += 1
    assert pieces in (0, -(-len(leaves) // 512)), "the tags of some leaves only"
    assert len([name for name in os.listxattr(path) if name.startswith(prefix)]) == pieces, "other tags of leaves"
    return level


def check_attributes(path, keys):
    """Returns the names and values of an entry's extended attributes."""
    siv, found = AESSIV(keys.xattrs), {}
    for stored in os.listxattr(path, follow_symlinks=False):
        if stored.startswith("user.photovault.x."):
            name = siv.decrypt(unbase64url(stored[18:].encode()), [b"photovault/1/xattr/name"])
            value = os.getxattr(path, stored)
            opened = siv.decrypt(value[16:], [b"photovault/1/xattr/value" + value[:16] + name])
            assert opened[:1] == b"\1", "the mark"
            found[name] = opened[1:]
    return found


def main():
    page, key, vault, account, password = sys.argv[1:]
    with open(page) as file:
        check_example(file.read())
    with open(key, "rb") as file:
        recovery_key = file.readline().rstrip(b"\n")
    with open(os.path.join(vault, "vault.json")) as file:
        head = json.load(file)
    keys = Keys(recovery_key, head)
    with open(password, "rb") as file:
        assert check_account(account, file.readline().rstrip(b"\n"), recovery_key) == keys.id, "the account's vault"
    levels, attributes, seals = [], [], 0
    for folder, _, files in os.walk(vault):
        attributes += check_attributes(folder, keys).items()
        for name in files:
            path = os.path.join(folder, name)
            if name.endswith(".securedData"):
                attributes += check_attributes(path, keys).items()
                check_seal(path, keys, head["names"] == "encrypted")
                seals += 1
                if os.path.getsize(path) > LEAF + 66:
                    levels.append(check_index(path, keys))
    for name, value in sorted(attributes):
        print(os.fsdecode(name), value.hex())
    print(f"{len(levels)} indexes, levels {sorted(set(levels))}; {seals} seals")


main()

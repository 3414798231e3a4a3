#!/usr/bin/env python3
"""Opens .securedData files without photovault: only Python's standard library and the openssl command.

usage: decrypt-blob.py [--password-file FILE] [-o OUT] BLOB
       decrypt-blob.py [--password-file FILE] -o FOLDER VAULT

The password is the vault's recovery key as it was shown, dashes included (for blobs of other programs: their
RNCryptor password). It is read from FILE's first line, else asked for on the terminal, else it is
the first line of standard input. The photo goes to OUT, or to standard output; nothing is written unless the
whole blob is authentic. Reads versions 1, 2 and 3 of the RNCryptor format in password mode.

Of a whole vault (the folder that holds vault.json) all photos go to the new folder FOLDER, with names,
folders, links, modes and times. Encrypted names need python3-cryptography.
"""
import argparse
import base64
import getpass
import hashlib
import hmac
import json
import os
import re
import stat
import subprocess
import sys

ROUNDS = 10_000
HEADER_SIZE = 34  # version, options, encryption salt 8, HMAC salt 8, IV 16
HMAC_SIZE = 32
PIECE = 1 << 20


class Damaged(Exception):
    """The file is not a blob, was altered, or the password is another one: these can't be told apart."""


def read_password(path):
    if path is None and sys.stdin.isatty():
        return getpass.getpass("recovery key: ").encode()
    with open(path, "rb") if path else sys.stdin.buffer as file:
        return file.readline().rstrip(b"\n")


def parse_header(header):
    version, options = header[0], header[1]
    if version not in (1, 2, 3):
        raise Damaged(f"not an RNCryptor message of version 1 to 3 (first byte {version})")
    if version > 1 and options != 1:
        raise Damaged("not a message in password mode")
    return version, header[2:10], header[10:18], header[18:34]


def pieces(file, start, end):
    file.seek(start)
    while start < end:
        piece = file.read(min(PIECE, end - start))
        if not piece:
            raise Damaged("the file became shorter while it was read")
        start += len(piece)
        yield piece


def decrypt(path, password, output):
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        end = size - HMAC_SIZE
        if end < HEADER_SIZE + 16 or (end - HEADER_SIZE) % 16:
            raise Damaged(f"{size} bytes can't be a whole blob")
        version, encryption_salt, hmac_salt, iv = parse_header(file.read(HEADER_SIZE))
        if version == 2:
            # Version 2 cut the password to as many bytes as it has UTF-16 units.
            password = password[:len(password.decode().encode("utf-16-le")) // 2]
        code = hmac.new(hashlib.pbkdf2_hmac("sha1", password, hmac_salt, ROUNDS, 32), digestmod="sha256")
        for piece in pieces(file, HEADER_SIZE if version == 1 else 0, end):
            code.update(piece)
        file.seek(end)
        if not hmac.compare_digest(code.digest(), file.read(HMAC_SIZE)):
            raise Damaged("the password is wrong or the file was altered")

        # openssl derives the key itself, so that neither password nor key is among its arguments: the first
        # 32 bytes of PBKDF2 are the same however many are asked for.
        read_end, write_end = os.pipe()
        with open(read_end, "rb"), open(write_end, "wb") as secret:
            openssl = subprocess.Popen(
                ["openssl", "enc", "-d", "-aes-256-cbc", "-pbkdf2", "-md", "sha1", "-iter", str(ROUNDS),
                 "-S", encryption_salt.hex(), "-iv", iv.hex(), "-pass", f"fd:{read_end}"],
                stdin=subprocess.PIPE, stdout=output, pass_fds=[read_end])
            secret.write(password + b"\n")
        with openssl.stdin:
            for piece in pieces(file, HEADER_SIZE, end):
                openssl.stdin.write(piece)
        if openssl.wait() != 0:
            raise Damaged("openssl could not decrypt it")


class Vault:
    """Names and links of a vault. Its format is in Sources/VaultStorage: Superblock, BlobName, LinkTarget."""

    def __init__(self, path, password):
        with open(os.path.join(path, b"vault.json")) as file:
            superblock = json.load(file)
        if superblock["format"] != 1:
            raise Damaged(f"vaults of format {superblock['format']} are not known here")
        self.encrypted = superblock["names"] == "encrypted"
        if self.encrypted:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV
            keys = b"".join(hashlib.pbkdf2_hmac("sha1", password, bytes.fromhex(superblock[salt]), ROUNDS, 32)
                            for salt in ("encryptionSalt", "hmacSalt"))
            self.not_authentic = InvalidTag
            self.siv = AESSIV(hkdf(keys, bytes.fromhex(superblock["id"]), b"photovault/1/names", 64))

    def decode(self, text, associated):
        try:
            return self.siv.decrypt(base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4)), [associated])
        except (ValueError, self.not_authentic):
            raise Damaged("its name was not made with this key") from None

    def name(self, folder, entry, is_blob):
        """The name that an entry of a folder stands for, None for what is the vault's own or a stranger."""
        stem = entry
        if is_blob:
            if not entry.endswith(b".securedData"):
                return None
            stem = entry.removesuffix(b".securedData")
        elif entry.startswith(b".photovault-") and entry.endswith((b".tmp", b"-damaged")):
            return None
        long = re.fullmatch(rb"([A-Za-z0-9_-]{43})\.long(.*)", stem, re.DOTALL)
        text, rest = stem, b""
        if long:
            with open(os.path.join(folder, long[1] + b".long.name"), "rb") as file:
                text, rest = file.read(), long[2]
        if not self.encrypted:
            return text + rest
        # What a sync program put behind the encrypted name stays behind the name.
        split = re.match(rb"([A-Za-z0-9_-]*)(.*)", text, re.DOTALL)
        with open(os.path.join(folder, b"directory.id"), "rb") as file:
            return self.decode(split[1], file.read()) + split[2] + rest

    def link_target(self, stored):
        return self.decode(stored, b"photovault/1/link") if self.encrypted else stored


def hkdf(key, salt, information, size):
    """HKDF-SHA256, RFC 5869."""
    extracted = hmac.digest(salt, key, "sha256")
    result = block = b""
    while len(result) < size:
        block = hmac.digest(extracted, block + information + bytes([len(result) // 32 + 1]), "sha256")
        result += block
    return result[:size]


def restore(vault, folder, target, password, links):
    """Restores one folder of a vault and all below; returns how many entries could not be."""
    failures = 0
    for entry in sorted(os.listdir(folder)):
        path = os.path.join(folder, entry)
        status = os.lstat(path)
        kind = stat.S_IFMT(status.st_mode)
        try:
            name = vault.name(folder, entry, kind == stat.S_IFREG)
            if name is None:
                continue
            if not name or b"/" in name or b"\0" in name or name in (b".", b".."):
                raise Damaged("its name is not a name")
            out = os.path.join(target, name)
            if kind == stat.S_IFDIR:
                os.mkdir(out, 0o700)
                failures += restore(vault, path, out, password, links)
            elif kind == stat.S_IFLNK:
                os.symlink(vault.link_target(os.readlink(path)), out)
            elif status.st_ino in links:
                os.link(links[status.st_ino], out)
            elif kind == stat.S_IFREG:
                decrypt_to(path, password, out)
                links[status.st_ino] = out
            else:
                continue
            if kind != stat.S_IFLNK:
                os.chmod(out, stat.S_IMODE(status.st_mode))
            os.utime(out, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)
        except (Damaged, OSError) as error:
            report(path, error)
            failures += 1
    return failures


def decrypt_to(path, password, out):
    # Opened as new: nothing is overwritten, and a photo is nobody else's business.
    output = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        decrypt(path, password, output)
    except BaseException:
        os.unlink(out)
        raise
    finally:
        os.close(output)


def report(path, error):
    print(f"decrypt-blob: error: {os.fsdecode(path)}: {error}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("--password-file", metavar="FILE")
    parser.add_argument("-o", "--output", metavar="OUT")
    parser.add_argument("path", metavar="BLOB")
    arguments = parser.parse_args()
    path = os.fsencode(arguments.path)
    if os.path.isdir(path) and arguments.output is None:
        parser.error("a vault needs -o FOLDER")
    try:
        password = read_password(arguments.password_file)
        if os.path.isdir(path):
            vault = Vault(path, password)
            os.mkdir(arguments.output, 0o700)
            return min(1, restore(vault, path, os.fsencode(arguments.output), password, {}))
        if arguments.output is None:
            decrypt(path, password, sys.stdout.buffer)
        else:
            decrypt_to(path, password, arguments.output)
    except (Damaged, OSError) as error:
        report(path, error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

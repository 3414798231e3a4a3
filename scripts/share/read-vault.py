#!/usr/bin/env python3
"""Reads a vault without photovault, as Sources/FORMAT.md describes it. Needs python3-cryptography. usage:
read-vault.py KEY VAULT NEW-FOLDER, or read-vault.py KEY BLOB NEW-FILE; in KEY's first line is the recovery key."""
import base64, functools, hashlib, hmac, json, os, pathlib, re, sys
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
derive = functools.cache(lambda password, salt: hashlib.pbkdf2_hmac("sha1", password, salt, 10000, 32))
def pieces(file, start, end):
    file.seek(start)
    for at in range(start, end, 1 << 20): yield file.read(min(1 << 20, end - at))
def save(blob, out):
    with blob.open("rb") as file:
        (version, options), end = file.read(2), blob.stat().st_size - 32
        count = len(password) if version == 3 else len(password.decode().encode("utf-16-le")) // 2
        keys, iv = [derive(password[:count], file.read(8)) for _ in range(2)], file.read(16)
        mac = hmac.new(keys[1], digestmod="sha256")
        for piece in pieces(file, 34 if version == 1 else 0, end): mac.update(piece)
        if not (0 < version < 4 and options == 1 and mac.digest() == file.read()): raise ValueError("altered, or another key")
        cbc, unpad = Cipher(algorithms.AES(keys[0]), modes.CBC(iv)).decryptor(), padding.PKCS7(128).unpadder()
        with out.open("xb") as new:
            for piece in pieces(file, 34, end): new.write(unpad.update(cbc.update(piece)))
            new.write(unpad.finalize())
def small(path): return open(os.open(path, os.O_NONBLOCK | os.O_NOFOLLOW), "rb").read(4096)
def unsiv(text, to): return os.fsdecode(siv.decrypt(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), [to]))
def restore(folder, out):
    out.mkdir()
    for path in sorted(set(folder.iterdir()) - {folder / ".photovault-damaged"}):
        info, stem = path.lstat(), path.name.removesuffix(".securedData")
        link = path.is_symlink() and os.readlink(path)
        if path.match(".photovault-*.tmp") or not (link or path.is_dir() or path.is_file() and stem != path.name): continue
        try:
            long, name = re.fullmatch(r"([\w-]{43})\.long(.*)", stem, re.A | re.S), stem
            if long and (siv or not long[2]): name = os.fsdecode(small(folder / f"{long[1]}.long.name"))
            if siv:  # what another program put behind an encrypted name stays behind the name
                code, rest = re.fullmatch(r"([\w-]*)(.*)", name, re.A | re.S).groups()
                name = unsiv(code, small(folder / "directory.id")) + rest + (long[2] if long else "")
            if "/" in name or name in ("", ".", ".."): raise ValueError("its name is none")
            while os.path.lexists(new := out / name): name += "~"
            if link: new.symlink_to(unsiv(link, b"photovault/1/link") if siv else link)
            elif path.is_dir(): restore(path, new)
            elif info.st_ino in links: os.link(links[info.st_ino], new)
            else: links[info.st_ino] = save(path, new) or new
            if not link: new.chmod(info.st_mode & 0o777)
            os.utime(new, ns=(info.st_atime_ns, info.st_mtime_ns), follow_symlinks=False)
        except Exception as error: failed.append(print(f"{path}: {error!r}", file=sys.stderr))
def open_vault(head):
    id, *salts = [bytes.fromhex(head[name]) for name in ("id", "encryptionSalt", "hmacSalt")]
    both = b"".join(derive(password, salt) for salt in salts)
    key = lambda use, size: HKDF(hashes.SHA256(), size, id, b"photovault/1/" + use).derive(both)
    values = b"%d" % head["format"], id, head["names"].encode(), *salts
    mac = hmac.digest(key(b"config", 32), b"".join(len(it).to_bytes(4, "big") + it for it in values), "sha256")
    if mac.hex() != head["mac"]: sys.exit("vault.json: altered, or another key")
    return aead.AESSIV(key(b"names", 64)) if head["names"] == "encrypted" else None
if len(sys.argv) != 4: sys.exit(__doc__)
key, source, target = map(pathlib.Path, sys.argv[1:])
password, links, failed, sys.tracebacklimit = key.read_bytes().split(b"\n")[0], {}, [], 0
os.umask(0o077)  # photos are nobody else's business
siv = open_vault(json.loads(small(source / "vault.json"))) if source.is_dir() else None
sys.exit((restore if source.is_dir() else save)(source, target) or len(failed) > 0)

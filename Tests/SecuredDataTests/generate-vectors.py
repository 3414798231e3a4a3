#!/usr/bin/env python3
"""A second implementation of RNCryptor's versions 1 to 3, from its specification.

It shares no code with the Swift one: keys and HMACs come from Python's hashlib and hmac, AES-256-CBC
from the openssl command line. The keys here are those of tests and no secrets.

  generate-vectors.py generate    write every file in Vectors anew
  generate-vectors.py verify F..  decrypt the message in each file and compare the plaintext

A file is lines of `name: value`, an empty line and the message's raw bytes. Large messages are left
out and stand there as size and SHA-256. A plaintext of `plaintext-size` bytes follows a rule, see
plaintext().
"""

import base64
import hashlib
import hmac
import pathlib
import subprocess
import sys

VECTORS = pathlib.Path(__file__).resolve().parent / "Vectors"
PASSWORD = "correct horse battery staple".encode()
ENCRYPTION_SALT = bytes(range(0x10, 0x18))
HMAC_SALT = bytes(range(0x20, 0x28))
IV = bytes(range(0x30, 0x40))
ENCRYPTION_KEY = bytes(range(0x80, 0xA0))
HMAC_KEY = bytes(range(0xC0, 0xE0))
LARGEST_STORED = 8192


def plaintext(size):
    return bytes((i * 31 + (i >> 8) * 17 + 7) & 0xFF for i in range(size))


def aes_cbc(direction, key, iv, data):
    return subprocess.run(
        ["openssl", "enc", direction, "-aes-256-cbc", "-nopad", "-K", key.hex(), "-iv", iv.hex()],
        input=data, stdout=subprocess.PIPE, check=True).stdout


def pad(data):
    count = 16 - len(data) % 16
    return data + bytes([count]) * count


def password_key(password, salt, version):
    if version < 3:
        # These took the number of UTF-16 units for the number of bytes.
        password = password[:len(password.decode().encode("utf-16-le")) // 2]
    return hashlib.pbkdf2_hmac("sha1", password, salt, 10000, 32)


class Keys:
    """A message's two keys and how its header shows them."""

    def __init__(self, password=None, version=3, encryption_salt=ENCRYPTION_SALT,
                 hmac_salt=HMAC_SALT):
        self.version = version
        self.fields = {"version": str(version)}
        if password is None:
            self.encryption, self.hmac, self.salts, self.options = ENCRYPTION_KEY, HMAC_KEY, b"", 0
            self.fields["encryption-key"] = self.encryption.hex()
            self.fields["hmac-key"] = self.hmac.hex()
        else:
            self.encryption = password_key(password, encryption_salt, version)
            self.hmac = password_key(password, hmac_salt, version)
            self.salts, self.options = encryption_salt + hmac_salt, 1
            self.fields["password"] = password.hex()
            self.fields["encryption-salt"] = encryption_salt.hex()
            self.fields["hmac-salt"] = hmac_salt.hex()

    def header(self, iv):
        return bytes([self.version, self.options]) + self.salts + iv

    def seal(self, header, ciphertext):
        covered = ciphertext if self.version == 1 else header + ciphertext
        return header + ciphertext + hmac.new(self.hmac, covered, hashlib.sha256).digest()

    def message(self, data, iv=IV, padded=None):
        ciphertext = aes_cbc("-e", self.encryption, iv, pad(data) if padded is None else padded)
        return self.seal(self.header(iv), ciphertext)


def write(name, comment, expect, message, fields):
    lines = {"comment": comment, "expect": expect, **fields}
    lines["message-size"] = str(len(message))
    lines["message-sha256"] = hashlib.sha256(message).hexdigest()
    text = "".join(f"{key}: {value}\n" for key, value in lines.items()).encode()
    stored = message if len(message) <= LARGEST_STORED else b""
    (VECTORS / f"{name}.vector").write_bytes(text + b"\n" + stored)


def write_good(name, comment, keys, size, iv=IV):
    data = plaintext(size)
    fields = {**keys.fields, "iv": iv.hex(), "plaintext-size": str(size),
              "plaintext-sha256": hashlib.sha256(data).hexdigest()}
    write(name, comment, "plaintext", keys.message(data, iv), fields)


def good():
    v3 = Keys(PASSWORD)
    mebi = 1 << 20
    for size in [0, 1, 15, 16, 17, 4095, 4096, 4097, mebi - 1, mebi, mebi + 1]:
        write_good(f"v3-size-{size}", f"{size} bytes", v3, size)
    for size in [0, 1, 16, 4097, mebi + 1]:
        write_good(f"v3-keys-size-{size}", f"{size} bytes, key mode", Keys(), size)
    for version in [1, 2]:
        for size in [0, 1, 16, 4097, mebi + 1]:
            keys = Keys(PASSWORD, version)
            write_good(f"v{version}-size-{size}", f"{size} bytes, version {version}", keys, size)
        write_good(f"v{version}-keys", "key mode", Keys(version=version), 33)
    passwords = {
        "two-byte": ("Zürich übermäßig", "letters of two bytes"),
        "three-byte": ("中文密码", "letters of three bytes"),
        "non-bmp": ("🔑 photo 📷", "letters of four bytes, two UTF-16 units each"),
        "combining": ("e\u0301te\u0301", "a letter and its accent; nothing is normalised"),
        "one-byte": ("a", "one letter"),
        "hash-block": ("p" * 64, "as long as a block of SHA-1"),
        "over-hash-block": ("p" * 65, "one byte longer than a block of SHA-1"),
        "long": ("It was the best of times. " * 100, "2,600 bytes"),
    }
    for version in [1, 2, 3]:
        for label, (password, comment) in passwords.items():
            keys = Keys(password.encode(), version)
            write_good(f"v{version}-password-{label}", f"password: {comment}", keys, 33)
    zero = Keys(b"a", encryption_salt=bytes(8), hmac_salt=bytes(8))
    write_good("v3-zero-salts-and-iv", "all fields zero", zero, 0, bytes(16))
    full = Keys(PASSWORD, encryption_salt=b"\xff" * 8, hmac_salt=b"\xff" * 8)
    write_good("v3-full-salts-and-iv", "all fields 0xFF", full, 17, b"\xff" * 16)
    like_picture = Keys(PASSWORD, encryption_salt=b"\0\0ftypav", hmac_salt=b"if\0\0\0\0\0\0")
    write_good("v3-salt-like-a-picture", "the salts read as an AVIF picture", like_picture, 17)


def flipped(message, offset, bit):
    changed = bytearray(message)
    changed[offset] ^= 1 << bit
    return bytes(changed)


def altered():
    fields = {"version": {0: 0}, "options": {1: 0}, "encryption-salt": {2: 0, 9: 7},
              "hmac-salt": {10: 0, 17: 7}, "iv": {18: 0, 33: 7}, "ciphertext": {34: 0, -33: 7},
              "hmac": {-32: 0, -1: 7}}
    good = Keys(PASSWORD).message(plaintext(50))
    known = Keys(PASSWORD).fields
    for field, places in fields.items():
        for offset, bit in places.items():
            place = f"{field} at byte {offset}" if offset >= 0 else f"{field} at byte n{offset}"
            expect = "wrongMode" if field == "options" else "notAuthenticated"
            label = "first" if offset == min(places, key=lambda o: o % len(good)) else "last"
            write(f"bad-bit-in-{field}-{label}", f"bit {bit} flipped in the {place}", expect,
                  flipped(good, offset, bit), known)
    write("bad-version-3-to-1", "version 1 would leave the header out of the HMAC",
          "notAuthenticated", flipped(good, 0, 1), known)
    good = Keys().message(plaintext(50))
    known = Keys().fields
    for field, offset, expect in [
            ("options", 1, "wrongMode"), ("iv", 2, "notAuthenticated"),
            ("ciphertext", 18, "notAuthenticated"), ("hmac", -1, "notAuthenticated")]:
        write(f"bad-keys-bit-in-{field}", f"key mode, a bit flipped in the {field}", expect,
              flipped(good, offset, 0), known)
    good = Keys(PASSWORD, 2).message(plaintext(50))
    write("bad-v2-bit-in-iv", "version 2's HMAC covers the header", "notAuthenticated",
          flipped(good, 18, 0), Keys(PASSWORD, 2).fields)

    v1 = Keys(PASSWORD, 1)
    good = v1.message(plaintext(50))
    write("bad-v1-bit-in-ciphertext", "version 1", "notAuthenticated", flipped(good, 34, 0),
          v1.fields)
    write("bad-v1-bit-in-hmac-salt", "version 1", "notAuthenticated", flipped(good, 10, 0),
          v1.fields)
    write("bad-v1-bit-in-encryption-salt",
          "version 1's HMAC leaves the header out: only the padding tells", "notAuthenticated",
          flipped(good, 2, 0), v1.fields)
    changed = flipped(plaintext(50), 0, 0)
    write("v1-bit-in-iv", "version 1's HMAC leaves the IV out: the weakness that ended it",
          "plaintext", flipped(good, 18, 0), {**v1.fields, "plaintext": changed.hex()})


def wrong_keys():
    good = Keys(PASSWORD).message(plaintext(50))
    write("bad-wrong-password", "another password", "notAuthenticated", good,
          {"password": b"incorrect".hex()})
    write("bad-password-with-newline", "nothing is trimmed", "notAuthenticated", good,
          {"password": (PASSWORD + b"\n").hex()})
    key_mode = Keys().message(plaintext(50))
    write("bad-wrong-keys", "the two keys exchanged", "notAuthenticated", key_mode,
          {"encryption-key": HMAC_KEY.hex(), "hmac-key": ENCRYPTION_KEY.hex()})
    write("bad-password-for-key-mode", "made with keys, opened with a password", "wrongMode",
          key_mode, {"password": PASSWORD.hex()})
    write("bad-keys-for-password-mode", "made with a password, opened with keys", "wrongMode",
          good, Keys().fields)
    cut = Keys("中文密码".encode(), 2)
    whole = Keys(PASSWORD, 2)
    whole.hmac = hashlib.pbkdf2_hmac("sha1", "中文密码".encode(), HMAC_SALT, 10000, 32)
    write("bad-v2-whole-password", "version 2 under the whole password", "notAuthenticated",
          whole.message(plaintext(50)), cut.fields)


def bad_padding():
    keys = Keys(PASSWORD)
    body = plaintext(16)
    paddings = {
        "zero": body[:15] + b"\0",
        "seventeen": b"\x11" * 16,
        "255": body[:15] + b"\xff",
        "first-byte-wrong": body[:11] + b"\x04\x05\x05\x05\x05",
        "inner-byte-wrong": body[:12] + b"\x04\x03\x04\x04",
        "whole-block-wrong": b"\x0f" + b"\x10" * 15,
    }
    for label, last in paddings.items():
        for prefix, comment in [(b"", "the only block"), (plaintext(96), "the seventh block")]:
            place = "only" if not prefix else "last"
            write(f"bad-padding-{label}-{place}",
                  f"a right HMAC over wrong padding in {comment}", "notAuthenticated",
                  keys.message(b"", padded=prefix + last), keys.fields)
    write("bad-padding-keys", "key mode", "notAuthenticated",
          Keys().message(b"", padded=body[:15] + b"\0"), Keys().fields)
    write("bad-padding-v1", "version 1", "notAuthenticated",
          Keys(PASSWORD, 1).message(b"", padded=body[:15] + b"\0"), Keys(PASSWORD, 1).fields)


def sizes():
    keys = Keys(PASSWORD)
    good = keys.message(plaintext(50))
    for size in [0, 1, 2, 17, 18, 33, 34, 65, 66, 81]:
        write(f"bad-truncated-to-{size}", f"the first {size} bytes", "wrongSize", good[:size],
              keys.fields)
    write("bad-truncated-by-1", "the last byte is missing", "wrongSize", good[:-1], keys.fields)
    write("bad-truncated-by-block", "the last 16 bytes are missing", "notAuthenticated",
          good[:-16], keys.fields)
    write("bad-truncated-to-82", "as short as a message can be", "notAuthenticated", good[:82],
          keys.fields)
    write("bad-extended-by-1", "a byte behind the end", "wrongSize", good + b"\0", keys.fields)
    write("bad-extended-by-block", "16 bytes behind the end", "notAuthenticated",
          good + bytes(16), keys.fields)
    write("bad-first-byte-missing", "options are taken for the version", "unknownOptions 16",
          good[1:], keys.fields)
    header = keys.header(IV)
    write("bad-no-ciphertext", "a right HMAC over a header alone", "wrongSize",
          keys.seal(header, b""), keys.fields)
    short = Keys().message(plaintext(50))
    write("bad-keys-truncated-to-65", "key mode, one byte less than the least message",
          "wrongSize", short[:65], Keys().fields)
    write("bad-keys-no-ciphertext", "key mode, a right HMAC over a header alone", "wrongSize",
          Keys().seal(Keys().header(IV), b""), Keys().fields)
    write("bad-text", "a short text", "wrongSize", b"hello\n", keys.fields)


def foreign():
    known = Keys(PASSWORD).fields
    good = Keys(PASSWORD).message(plaintext(50))
    rest = plaintext(200)
    write("bad-version-4-draft", "the draft's magic, options, salt and validator", "version4Draft",
          b"RNC\x04\x01" + rest, known)
    write("bad-version-4-draft-short", "the draft's magic alone", "version4Draft", b"RNC\x04",
          known)
    for version in [0, 4, 5, 83, 255]:
        write(f"bad-version-{version}", "an unknown version", f"unknownVersion {version}",
              bytes([version]) + good[1:], known)
    write("bad-all-zero", "a file of zeros, as after a crash", "unknownVersion 0", bytes(200),
          known)
    for options in [2, 3, 128, 255]:
        write(f"bad-options-{options}", "bits that no version defines",
              f"unknownOptions {options}", good[:1] + bytes([options]) + good[2:], known)
    texts = {
        "base64": base64.b64encode(good),
        "base64-lines": base64.encodebytes(good),
        "base64-leading-newline": b"\r\n" + base64.b64encode(good),
        "base64-url": base64.urlsafe_b64encode(good),
        "base64-keys": base64.b64encode(Keys().message(plaintext(50))),
        "base64-v2": base64.b64encode(Keys(PASSWORD, 2).message(plaintext(50))),
        "base64-v1": base64.b64encode(Keys(PASSWORD, 1).message(plaintext(50))),
        "base64-v4": base64.b64encode(b"RNC\x04\x01" + rest),
    }
    for label, text in texts.items():
        write(f"bad-{label}", "a message in base64", "base64Text", text, known)
    write("bad-long-text", "text that begins like base64", "unknownVersion 65",
          b"AwESOME! " * 20, known)
    pictures = {
        "jpeg": (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01", "JPEG"),
        "jpeg-exif": (b"\xff\xd8\xff\xe1\x2d\xdeExif\x00\x00", "JPEG"),
        "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG"),
        "gif": (b"GIF89a\x01\x00\x01\x00", "GIF"),
        "webp": (b"RIFF\x24\x10\x00\x00WEBPVP8 ", "WebP"),
        "avi": (b"RIFF\x24\x10\x00\x00AVI LIST", "AVI"),
        "tiff": (b"II*\x00\x08\x00\x00\x00", "TIFF or raw"),
        "tiff-big-endian": (b"MM\x00*\x00\x00\x00\x08", "TIFF or raw"),
        "heic": (b"\0\0\0\x28ftypheic\0\0\0\0mif1heic", "HEIF"),
        "avif": (b"\0\0\0\x20ftypavif\0\0\0\0", "AVIF"),
        "mp4": (b"\0\0\0\x20ftypisom\0\0\x02\0", "MP4"),
        "quicktime": (b"\0\0\0\x14ftypqt  \0\0\0\0", "QuickTime"),
        "quicktime-old": (b"\0\0\0\x08wide\0\0\x10\0mdat", "QuickTime"),
        "cr3": (b"\0\0\0\x18ftypcrx \0\0\0\1", "Canon CR3"),
        "orf": (b"IIRO\x08\x00\x00\x00", "Olympus ORF"),
        "rw2": (b"IIU\x00\x18\x00\x00\x00", "Panasonic RW2"),
        "raf": (b"FUJIFILMCCD-RAW 0201", "Fujifilm RAF"),
        "jpeg-xl": (b"\xff\x0a\xfa\x1f", "JPEG XL"),
        "jpeg-xl-box": (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
        "jpeg-2000": (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
        "bmp": (b"BM\x36\x10\0\0\0\0\0\0\x36\0\0\0", "BMP"),
        "photoshop": (b"8BPS\0\1", "Photoshop"),
        "matroska": (b"\x1a\x45\xdf\xa3\x01", "Matroska or WebM"),
    }
    for label, (start, kind) in pictures.items():
        write(f"bad-picture-{label}", "never encrypted", f"plainPicture {kind}", start + rest,
              known)
    write("bad-picture-tiny", "shorter than any message", "plainPicture GIF", b"GIF89a\1\0\1\0;",
          known)


def generate():
    VECTORS.mkdir(exist_ok=True)
    for old in VECTORS.glob("*.vector"):
        old.unlink()
    for part in [good, altered, wrong_keys, bad_padding, sizes, foreign]:
        part()
    print(f"{len(list(VECTORS.glob('*.vector')))} files in {VECTORS.name}")


def verify(path):
    """Raises unless the file's message is one that decrypts to its plaintext."""
    text, message = pathlib.Path(path).read_bytes().split(b"\n\n", 1)
    fields = dict(line.split(": ", 1) for line in text.decode().splitlines())
    version, options = message[0], message[1]
    assert 1 <= version <= 3 and options in (0, 1), "version or options"
    size = 34 if options else 18
    header, ciphertext, tag = message[:size], message[size:-32], message[-32:]
    if options:
        password = bytes.fromhex(fields["password"])
        encryption_key = password_key(password, header[2:10], version)
        hmac_key = password_key(password, header[10:18], version)
    else:
        encryption_key = bytes.fromhex(fields["encryption-key"])
        hmac_key = bytes.fromhex(fields["hmac-key"])
    covered = ciphertext if version == 1 else header + ciphertext
    assert hmac.compare_digest(tag, hmac.new(hmac_key, covered, hashlib.sha256).digest()), "HMAC"
    padded = aes_cbc("-d", encryption_key, header[-16:], ciphertext)
    count = padded[-1]
    assert 1 <= count <= 16 and padded.endswith(bytes([count]) * count), "padding"
    data = padded[:-count]
    if "plaintext" in fields:
        assert data == bytes.fromhex(fields["plaintext"]), "plaintext"
    else:
        assert data == plaintext(int(fields["plaintext-size"])), "plaintext"


def main():
    if sys.argv[1:] == ["generate"]:
        generate()
    elif sys.argv[1:2] == ["verify"] and sys.argv[2:]:
        for path in sys.argv[2:]:
            verify(path)
            print(f"{pathlib.Path(path).name}: ok")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

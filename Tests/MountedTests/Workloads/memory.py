#!/usr/bin/env python3
"""Looks for the secrets of an account in the memory of processes, as root.

usage: memory.py SETUP now PID...                all threads go on; a line for each secret found, and where
       memory.py SETUP at-end PID READY          waits for the end of a process (READY is made when it can
                                                 begin to end), and looks just before its memory goes
       memory.py SETUP run STATUS COMMAND...     runs a command, looks at its end; STATUS gets its exit code

SETUP is a JSON file: "account" and "vault" (paths of the item and of vault.json), "password", "newPassword" and
"recoveryKeyCommand", which prints it. What isn't there yet at the beginning is read at the process's end.
Prints `NAME ADDRESS FLAGS MAPPING` for each finding, FLAGS as VmFlags in proc_pid_smaps(5), and `looked MIB`.
"""
import array
import base64
import ctypes
import hashlib
import hmac
import json
import os
import signal
import struct
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
TRACEME, CONT, SEIZE, SETOPTIONS = 0, 7, 0x4206, 0x4200  # sys/ptrace.h
TRACE_EXIT, EVENT_EXIT, EXIT_KILL = 0x40, 6, 0x100000


def ptrace(request, process, data=0):
    if LIBC.ptrace(request, process, None, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request} of {process}")


# MARK: What to look for

def hkdf(key, salt, information, size):
    """HKDF-SHA256, RFC 5869."""
    extracted = hmac.digest(salt, key, "sha256")
    result = block = b""
    while len(result) < size:
        block = hmac.digest(extracted, block + information + bytes([len(result) // 32 + 1]), "sha256")
        result += block
    return result[:size]


def compressed(block):
    """SHA-256's state behind one block, as it lies in memory. Source: FIPS 180-4."""
    def primes(count):
        found, number = [], 2
        while len(found) < count:
            if all(number % other for other in found):
                found.append(number)
            number += 1
        return found

    def root(number, degree):
        """The first 32 bits behind the point of a root."""
        low, high = 0, 1 << 40
        while high - low > 1:
            middle = (low + high) // 2
            if middle ** degree <= number << (32 * degree):
                low = middle
            else:
                high = middle
        return low & 0xFFFFFFFF

    def turned(word, count):
        return (word >> count | word << (32 - count)) & 0xFFFFFFFF

    constants = [root(prime, 3) for prime in primes(64)]
    state = [root(prime, 2) for prime in primes(8)]
    words = list(struct.unpack(">16I", block))
    for index in range(16, 64):
        first, second = words[index - 15], words[index - 2]
        words.append((words[index - 16] + (turned(first, 7) ^ turned(first, 18) ^ first >> 3) + words[index - 7]
                      + (turned(second, 17) ^ turned(second, 19) ^ second >> 10)) & 0xFFFFFFFF)
    a, b, c, d, e, f, g, h = state
    for index in range(64):
        first = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + (e & f ^ ~e & g) + constants[index]
                 + words[index]) & 0xFFFFFFFF
        second = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + (a & b ^ a & c ^ b & c)) & 0xFFFFFFFF
        a, b, c, d, e, f, g, h = (first + second) & 0xFFFFFFFF, a, b, c, (d + first) & 0xFFFFFFFF, e, f, g
    return struct.pack("=8I", *((old + new) & 0xFFFFFFFF for old, new in zip(state, (a, b, c, d, e, f, g, h))))


def xored(key, byte):
    return bytes(one ^ byte for one in key.ljust(64, b"\0"))


def patterns(setup):
    """Names, and bytes that give the secret away: both halves of each key (an AES key schedule begins with
    one, turned round it ends with it), and what HMAC makes of its key."""
    with open(setup["account"]) as file:
        account = json.load(file)
    with open(setup["vault"]) as file:
        vault = json.load(file)
    for password in (setup["password"], setup["newPassword"]):
        with open(setup["account"] + ".tried", "w") as file:
            file.write(password + "\n")
        asked = subprocess.run([*setup["recoveryKeyCommand"], "--password-file", file.name], check=False,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        os.unlink(file.name)
        if asked.returncode == 0:
            break
    password, recovery = password.encode(), asked.stdout.splitlines()[0]
    assert len(recovery) == 64
    kdf = account["kdf"]
    made = hashlib.scrypt(password, salt=base64.b64decode(kdf["salt"]), n=kdf["n"], r=kdf["r"], p=kdf["p"],
                          maxmem=1 << 30, dklen=64)
    encryption, authentication = (
        hashlib.pbkdf2_hmac("sha1", recovery, bytes.fromhex(vault[salt]), 10_000, 32)
        for salt in ("encryptionSalt", "hmacSalt"))
    keys = {"scrypt-encryption": made[:32], "scrypt-hmac": made[32:],
            "encryption": encryption, "hmac": authentication}
    for purpose, size in (("names", 64), ("xattrs", 64), ("chunks", 32), ("config", 32)):
        key = hkdf(encryption + authentication, bytes.fromhex(vault["id"]), f"photovault/1/{purpose}".encode(), size)
        for part in range(0, size, 32):
            keys[f"{purpose}-{part}" if size > 32 else purpose] = key[part:part + 32]
    digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    number = 0
    for character in recovery.decode().replace("-", ""):
        number = number << 5 | digits.index(character)
    keys["recovery-bytes"] = (number >> 4).to_bytes(32, "big")
    texts = {"password": setup["password"].encode(), "new-password": setup["newPassword"].encode(),
             "recovery-key": recovery}
    result = {}
    for name, key in texts.items():
        result[name] = key[:24]
        result[f"{name}-end"] = key[-16:]
    for name, key in keys.items():
        result[name], result[f"{name}-end"] = key[:16], key[16:]
    for name, key in (texts | keys).items():
        for pad in (0x36, 0x5C):  # RFC 2104
            result[f"{name}-pad-{pad:x}"] = xored(key, pad)[:16]
            result[f"{name}-state-{pad:x}"] = compressed(xored(key, pad)[:64])[:16]
    return result


# MARK: Looking

def touched(pagemap, begin, end):
    """The runs of pages that hold something, in memory or in swap. Source: proc_pid_pagemap(5)."""
    size = os.sysconf("SC_PAGESIZE")
    pagemap.seek(begin // size * 8)
    try:
        entries = array.array("Q", pagemap.read((end - begin) // size * 8))
    except OSError:
        return []
    runs = []
    for number, entry in enumerate(entries):
        if entry >> 62:
            address = begin + number * size
            if runs and runs[-1][1] == address:
                runs[-1][1] += size
            else:
                runs.append([address, address + size])
    return runs


def look(process, wanted):
    flags, mappings = {}, []
    with open(f"/proc/{process}/smaps") as file:
        for line in file:
            if "-" in line.split(" ")[0] and not line[0].isupper():
                fields = line.split()
                begin, end = (int(part, 16) for part in fields[0].split("-"))
                mappings.append((begin, end, fields[5] if len(fields) > 5 else "anonymous"))
            elif line.startswith("VmFlags:"):
                flags[mappings[-1][0]] = "+".join(line.split()[1:])
    looked = 0
    with open(f"/proc/{process}/mem", "rb", buffering=0) as memory, \
            open(f"/proc/{process}/pagemap", "rb", buffering=0) as pagemap:
        for begin, end, name in mappings:
            if name in ("[vvar]", "[vsyscall]", "[vvar_vclock]"):
                continue
            for start, stop in touched(pagemap, begin, end):
                rest = b""
                for address in range(start, stop, 1 << 24):
                    try:
                        memory.seek(address)
                        data = rest + memory.read(min(1 << 24, stop - address))
                    except OSError:
                        break  # nobody may read it
                    looked += len(data) - len(rest)
                    for secret, bytes_ in wanted.items():
                        at = data.find(bytes_)
                        while at >= 0:
                            print(secret, f"{address - len(rest) + at:x}", flags.get(begin, "-"), name)
                            at = data.find(bytes_, at + 1)
                    rest = data[-63:]
    print("looked", looked >> 20, flush=True)


def at_end(process, setup, wanted):
    """Of a process that is traced: goes along to its end. Its exit code."""
    while True:
        _, status = os.waitpid(process, 0x40000000)  # __WALL
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            return os.waitstatus_to_exitcode(status)
        number, event = os.WSTOPSIG(status), status >> 16
        if event == EVENT_EXIT:
            # What it has made.
            look(process, wanted | {f"{name}'": value for name, value in patterns(setup).items()
                                    if value not in wanted.values()})
        ptrace(CONT, process, 0 if event or number == signal.SIGTRAP else number)


def main():
    with open(sys.argv[1]) as file:
        setup = json.load(file)
    wanted = patterns(setup) if os.path.exists(setup["account"]) else {}
    action, rest = sys.argv[2], sys.argv[3:]
    if action == "now":
        for process in rest:
            look(int(process), wanted)
    elif action == "at-end":
        process = int(rest[0])
        ptrace(SEIZE, process, TRACE_EXIT)
        open(rest[1], "w").close()
        at_end(process, setup, wanted)
    elif action == "run":
        child = os.fork()
        if child == 0:
            ptrace(TRACEME, 0)
            os.execvp(rest[1], rest[1:])
        os.waitpid(child, 0)
        ptrace(SETOPTIONS, child, TRACE_EXIT | EXIT_KILL)
        ptrace(CONT, child)
        status = at_end(child, setup, wanted)
        with open(rest[0], "w") as file:
            file.write(f"{status}\n")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

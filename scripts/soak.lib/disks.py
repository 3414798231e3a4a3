"""The disks that a vault may lie on: made in files or on this machine, mounted, and gone at the end.

`Disk.missing` says why a kind can't be tried here.
"""
import atexit
import errno
import os
import pathlib
import shutil
import socket
import subprocess
import time

import soak

LINKS, SYMLINKS, FIFOS = "hard links", "symbolic links", "fifos"
ATTRIBUTES, MODES, CASES = "attributes", "modes", "upper and lower case"
ALL = frozenset([LINKS, SYMLINKS, FIFOS, ATTRIBUTES, MODES, CASES])


class Disk:
    """`has`: what programs find on a vault on it."""

    kind, has = "", ALL
    full = (errno.ENOSPC, errno.EDQUOT)  # what programs hear of a full disk
    every = []

    def __init__(self, folder):
        self.folder = folder
        self.place = folder / "disk"
        self.place.mkdir(parents=True)
        Disk.every.append(self)

    missing = None

    def attach(self):
        raise NotImplementedError

    def detach(self):
        for _ in range(100):
            if not soak.is_mounted(self.place):
                return
            if soak.run("umount", self.place, check=False, limit=60).returncode != 0:
                time.sleep(0.1)
        raise RuntimeError(f"{self.kind} stays busy")

    def turn(self, how):
        """`ro` or `rw`; False where it can't be turned."""
        done = soak.run("mount", "-i", "-o", f"remount,{how}", self.place, check=False, limit=60)
        if done.returncode != 0:
            soak.say(f"{self.kind}: {done.stdout}")
        return done.returncode == 0

    def break_down(self):
        """As after an error of the hardware, under who uses it; False where that can't be had. What programs
        hear then: `broken`. Taken away, mended and attached again it works."""
        return False

    broken = ()

    def mend(self):
        pass

    def fill(self, left):
        """Leaves `left` bytes."""
        free = os.statvfs(self.place)
        if free.f_bavail * free.f_frsize > 1 << 30:
            raise RuntimeError(f"{self.kind}: that is no small disk")
        file = os.open(self.place / "filler", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            for size in (1 << 20, 1 << 16, 1 << 12):
                try:
                    while True:
                        os.write(file, b"\0" * size)
                except OSError:
                    pass
            os.fsync(file)
            os.ftruncate(file, max(0, os.fstat(file).st_size - left))
        except OSError:
            pass
        finally:
            os.close(file)
        os.sync()

    def empty(self):
        (self.place / "filler").unlink()

    def end(self):
        soak.run("umount", "-l", self.place, check=False, limit=60)


@atexit.register
def end_all():
    for disk in reversed(Disk.every):
        disk.end()


# First the vaults, which lie on them.
atexit.unregister(soak.end_all)
atexit.register(soak.end_all)


def kernel_has(kind):
    if shutil.which("modprobe"):
        soak.run("modprobe", kind, check=False)
    return any(line.split()[-1] == kind for line in pathlib.Path("/proc/filesystems").read_text().splitlines())


class Image(Disk):
    """A file on a loop device."""

    make, megabytes, mount = (), 400, ()

    def __init__(self, folder):
        super().__init__(folder)
        self.file, self.loop = folder / "image", None
        with open(self.file, "wb") as file:
            file.truncate(self.megabytes << 20)
        soak.run(*self.make, self.file)

    def attach(self):
        self.loop = soak.run("losetup", "--find", "--show", self.file).stdout.strip()
        soak.run(*(self.mount or ("mount", "-t", self.kind)), self.loop, self.place)

    def detach(self):
        super().detach()
        for _ in range(100):
            # A driver in user space lets go of it a moment later.
            if soak.run("losetup", "--detach", self.loop, check=False).returncode == 0:
                break
            time.sleep(0.1)
        soak.wait_until(lambda: not soak.run("losetup", "--associated", self.file).stdout.strip(), 30, "the loop's end")
        self.loop = None

    def end(self):
        super().end()
        if self.loop:
            soak.run("losetup", "--detach", self.loop, check=False)


def image(name, make, has=ALL, mount=(), type=None, megabytes=400):
    class Kind(Image):
        kind = type or name
        missing = None if mount or kernel_has(kind) else f"this kernel has no {kind}"
    Kind.make, Kind.has, Kind.mount, Kind.megabytes, Kind.label = tuple(make.split()), frozenset(has), mount, megabytes, name
    return Kind


class Memory(Disk):
    kind = label = "tmpfs"

    def attach(self):
        # It would forget all if it were taken away.
        if not soak.is_mounted(self.place):
            soak.run("mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", self.place)

    def detach(self):
        pass


class Process:
    """A server of ours, ended by its number."""

    def __init__(self, *command, log):
        with open(log, "ab") as output:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=output, start_new_session=True)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()


def free_port():
    with socket.socket() as any_socket:
        any_socket.bind(("127.0.0.1", 0))
        return any_socket.getsockname()[1]


def answers(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class OverSSH(Disk):
    """A folder of this machine by way of an SSH server with keys of its own. Attributes don't pass."""

    kind = label = "sshfs"
    has = ALL - {ATTRIBUTES, FIFOS, LINKS}  # links can be made, but each has a number of its own
    full = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # its protocol has no word for it
    server, had_run = None, True

    def __init__(self, folder):
        super().__init__(folder)
        self.small = Ext4(folder / "far")
        self.small.attach()
        self.far = self.small.place
        self.port = free_port()
        for key in ("host", "user"):
            soak.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key)
        (folder / "sshd.conf").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nPermitRootLogin prohibit-password\n"
            "PasswordAuthentication no\nSubsystem sftp internal-sftp\n")
        self.had_run = os.path.isdir("/run/sshd")
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        self.server = Process("/usr/sbin/sshd", "-D", "-e", "-f", folder / "sshd.conf", log=folder / "sshd.log")
        soak.wait_until(lambda: answers(self.port), 20, "sshd")

    def attach(self):
        soak.run("sshfs", f"root@127.0.0.1:{self.far}", self.place, "-p", self.port, "-o",
                 f"IdentityFile={self.folder}/user,StrictHostKeyChecking=no,UserKnownHostsFile=/dev/null,"
                 "ServerAliveInterval=5")

    def end(self):
        super().end()
        if self.server:
            self.server.end()
        if not self.had_run and os.path.isdir("/run/sshd"):
            os.rmdir("/run/sshd")
        self.small.end()


BRICK = """volume posix
  type storage/posix
  option directory {brick}
end-volume
volume locks
  type features/locks
  subvolumes posix
end-volume
volume index
  type features/index
  option index-base {brick}/.glusterfs/indices
  subvolumes locks
end-volume
volume brick
  type performance/io-threads
  subvolumes index
end-volume
volume server
  type protocol/server
  option transport-type tcp
  option transport.address-family inet
  option transport.socket.bind-address 127.0.0.1
  option transport.socket.listen-port {port}
  option auth.addr.brick.allow 127.0.0.1
  subvolumes brick
end-volume
"""
CLIENT = """volume client-{number}
  type protocol/client
  option transport-type tcp
  option transport.address-family inet
  option remote-host 127.0.0.1
  option remote-port {port}
  option remote-subvolume brick
  option ping-timeout 5
end-volume
"""
REPLICATE = """volume replicate
  type cluster/replicate
  option afr-pending-xattr client-0,client-1,client-2
  option quorum-type auto
  subvolumes client-0 client-1 client-2
end-volume
"""


class Gluster(Disk):
    """A volume in three copies on this machine, without the management daemon: bricks and client by files that say
    what they are. `lose` ends one brick."""

    kind = label = "GlusterFS"
    # Two copies that can't be written are, to it, copies that it can't reach.
    full = (errno.ENOSPC, errno.EDQUOT, errno.ENOTCONN)

    def __init__(self, folder):
        super().__init__(folder)
        self.ports, self.bricks, self.small = [], {}, []
        self.client = None
        for number in range(3):
            self.small.append(Ext4(folder / f"brick{number}"))
            self.small[-1].attach()
            (self.small[-1].place / "brick/.glusterfs/indices").mkdir(parents=True)
            self.ports.append(free_port())
            (folder / f"brick{number}.vol").write_text(
                BRICK.format(brick=self.small[number].place / "brick", port=self.ports[number]))
            self.start(number)
        (folder / "client.vol").write_text("".join(
            CLIENT.format(number=number, port=port) for number, port in enumerate(self.ports)) + REPLICATE)

    def start(self, number):
        self.bricks[number] = Process(
            "glusterfsd", "--no-daemon", "-f", self.folder / f"brick{number}.vol", "-l",
            self.folder / f"brick{number}.log", "-p", self.folder / f"brick{number}.pid", log=self.folder / "out")
        soak.wait_until(lambda: answers(self.ports[number]), 20, "a brick")

    def lose(self):
        self.bricks.pop(1).kill()

    def attach(self):
        if 1 not in self.bricks:
            self.start(1)
        self.client = Process("glusterfs", "--no-daemon", "-f", self.folder / "client.vol", "-l",
                              self.folder / "client.log", self.place, log=self.folder / "out")
        soak.wait_until(lambda: soak.is_mounted(self.place), 20, "the volume")
        # Until two of three are found it is read-only.
        probe = self.place / "probe"

        def ready():
            try:
                probe.write_bytes(b"")
                probe.unlink()
                return True
            except OSError:
                return False
        soak.wait_until(ready, 30, "the volume's quorum")

    def detach(self):
        super().detach()
        self.client.end()

    def end(self):
        super().end()
        for process in [self.client, *self.bricks.values()]:
            if process:
                process.end()
        for disk in self.small:
            disk.end()


class Ext4(image("ext4", "mkfs.ext4 -q -F -e remount-ro")):
    broken = (errno.EROFS,)

    def break_down(self):
        os.sync()
        pathlib.Path(f"/sys/fs/ext4/{os.path.basename(self.loop)}/trigger_fs_error").write_text("broken by a test")
        return True

    def mend(self):
        # 1: it found the error that was noted, and corrected it.
        if soak.run("e2fsck", "-f", "-y", self.file, check=False).returncode not in (0, 1):
            raise RuntimeError("e2fsck could not mend the disk")


class XFS(image("xfs", "mkfs.xfs -q -f")):
    broken = (errno.EIO,)

    def break_down(self):
        os.sync()
        soak.run("xfs_io", "-x", "-c", "shutdown", self.place)
        return True


KINDS = [
    Ext4,
    XFS,
    image("btrfs", "mkfs.btrfs -q -f -M"),
    image("f2fs", "mkfs.f2fs -q -f"),
    Memory,
    image("vfat", "mkfs.vfat -F 32", {}),
    image("exfat, FUSE", "mkfs.exfat", {}, ("mount.exfat-fuse",), "exfat"),
    image("NTFS, FUSE", "mkfs.ntfs -Q -F", ALL - {MODES}, ("ntfs-3g",), "ntfs-3g"),
    OverSSH,
    Gluster,
]

"""What the parts of scripts/soak share: settings, result rows, vaults, commands with time limits.

A part gets its settings from the environment:

  SOAK_PROGRAM  the program to try            SOAK_RESULTS  where its rows go, one JSON object a line
  SOAK_WORK     an empty folder of its own    SOAK_QUICK    "1": about half a minute, not long
  SOAK_HOURS    how long mixed work lasts     SOAK_SOURCES  folder with git repositories of outside suites
  SOAK_SEED     for what is drawn by lot      SOAK_KEEP     folder for what a failure left, made if needed
"""
import atexit
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

top = pathlib.Path(__file__).resolve().parents[2]
program = os.environ.get("SOAK_PROGRAM", str(top / ".build/release/photovault"))
work = pathlib.Path(os.environ.get("SOAK_WORK", "/tmp"))
quick = os.environ.get("SOAK_QUICK") == "1"
hours = float(os.environ.get("SOAK_HOURS", "1"))
keep = pathlib.Path(os.environ.get("SOAK_KEEP", work / "kept"))  # what a failure left, for who looks into it
seed = int(os.environ.get("SOAK_SEED", "1"))

# A hang of the mount must not hang what tries it.
signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))


def say(text):
    print(time.strftime("%H:%M:%S"), text, flush=True)


def times(in_quick, an_hour):
    """How often to do something: it grows with --hours."""
    return in_quick if quick else max(in_quick, round(an_hour * hours))


def row(test, tried, failed=0, lost=0, limits=()):
    """One line of the table. `limits`: what is known not to hold, and why."""
    line = {"test": test, "tried": str(tried), "failed": failed, "lost": lost, "limits": list(limits)}
    if path := os.environ.get("SOAK_RESULTS"):
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\n")
    say(f"{test}: tried {tried}, failed {failed}, lost {lost}")


def run(*command, limit=600, check=True, quiet=True, **options):
    """A command under a time limit, with all that it started; its output is in the result."""
    if quiet:
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.STDOUT)
        options.setdefault("text", True)
        options.setdefault("errors", "replace")
    command = ["timeout", "--kill-after=10", str(limit), *map(str, command)]
    done = subprocess.run(command, stdin=options.pop("stdin", subprocess.DEVNULL), **options)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[3:])}: exit {done.returncode}\n{done.stdout or ''}")
    return done


def wait_until(condition, seconds=30, what="it"):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"{what} did not happen within {seconds} s")
        time.sleep(0.01)


def is_mounted(folder):
    octal = re.sub(r"[\s\\]", lambda match: f"\\{ord(match[0]):03o}", str(folder))
    with open("/proc/self/mounts") as mounts:
        return any(line.split()[1] == octal for line in mounts)


class Vault:
    """An account of its own with a vault, and the mount of it."""

    every = []

    def __init__(self, folder, user="alice", vault=None, names="encrypted", run_as=None, variables=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.user = user
        self.home = self.folder / "home"
        self.vault = pathlib.Path(vault or self.folder / "vault")
        self.mount_point = self.folder / "mnt"
        self.mount_point.mkdir(exist_ok=True)
        self.password_file = self.folder / "password"
        self.log = self.folder / "log"
        self.daemon = None
        self.identity = {}
        self.variables = variables or {}  # while it is made
        if run_as is not None:
            self.identity = {"user": run_as[0], "group": run_as[1], "extra_groups": []}
        if not self.password_file.exists():
            self.password_file.write_text("correct horse battery staple\n")
            self.password_file.chmod(0o600)
            if run_as is not None:
                for path in (self.folder, self.mount_point, self.password_file):
                    os.chown(path, *run_as)
            self.do("create", user, "--vault", self.vault, "--names", names)
            self.variables = {}
        Vault.every.append(self)

    def command(self, *arguments):
        return [program, *map(str, arguments), "--home", str(self.home)]

    def do(self, *arguments, limit=120, check=True, password=True, **options):
        more = ("--password-file", self.password_file) if password else ()
        return run(*self.command(*arguments, *more), limit=limit, check=check, env=self.environment,
                   **self.identity, **options)

    @property
    def environment(self):
        """What the program keeps for a user stays in the vault's folder."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        return {**kept, "HOME": str(self.folder), **self.variables}

    def mount(self, *options, environment=None):
        """In the foreground, as a child: its process is known and can be killed."""
        with open(self.log, "ab") as log:
            self.daemon = subprocess.Popen(
                self.command("mount", self.user, self.mount_point, "--foreground", "--idle", "0",
                             "--password-file", self.password_file, *options),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**self.environment, **(environment or {})}, **self.identity)

        def ready():
            if self.daemon.poll() is not None:
                raise RuntimeError(f"the mount failed:\n{self.log.read_text(errors='replace')[-2000:]}")
            return is_mounted(self.mount_point)

        wait_until(ready, 30, "the mount")
        return self

    def unmount(self, limit=60):
        """Orderly; a program that just closed its file may hold the folder for a moment."""
        for _ in range(100):
            done = self.do("unmount", self.mount_point, check=False, password=False, limit=limit)
            if done.returncode != 17:
                break
            time.sleep(0.1)
        if done.returncode != 0:
            raise RuntimeError(f"unmount: exit {done.returncode}\n{done.stdout}\n{self.threads()}")
        self.daemon.wait(30)
        if self.daemon.returncode != 0:
            raise RuntimeError(f"the daemon ended with {self.daemon.returncode}")

    def threads(self):
        """What the daemon's threads wait for, when it hangs."""
        lines = []
        for task in pathlib.Path(f"/proc/{self.daemon.pid}/task").glob("*"):
            try:
                stack = (task / "stack").read_text().splitlines()
                lines.append(f"{(task / 'comm').read_text().strip()}: {'; '.join(stack[:6])}")
            except OSError as error:
                lines.append(str(error))
        return "\n".join(lines)

    def kill(self):
        """kill -9, and what follows it: the watcher takes the dead mount away."""
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()
        wait_until(lambda: not is_mounted(self.mount_point), 10, "the dead mount's end")

    def check(self, limit=1200):
        """What `photovault check` reports, without what the next mount removes anyway."""
        done = self.do("check", self.user, "--json", check=False, limit=limit, stderr=subprocess.DEVNULL)
        if done.returncode not in (0, 15):
            raise RuntimeError(f"check: exit {done.returncode}\n{done.stdout[-2000:]}")
        report = json.loads(done.stdout)
        return report

    def end(self):
        if self.daemon is not None and self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait()
        for _ in range(20):
            if not is_mounted(self.mount_point):
                break
            subprocess.run(["umount", "-l", str(self.mount_point)], stderr=subprocess.DEVNULL)
            time.sleep(0.05)


@atexit.register
def end_all():
    for vault in Vault.every:
        vault.end()


class Image:
    """A disk in a file: made, mounted, and gone at the end."""

    every = []

    def __init__(self, file, folder, kind=None, megabytes=0, label=None):
        self.file, self.folder, self.kind, self.loop = pathlib.Path(file), pathlib.Path(folder), kind, None
        self.folder.mkdir(parents=True, exist_ok=True)
        if megabytes:
            with open(file, "wb") as image:
                image.truncate(megabytes << 20)
            options = {"ext4": ["-q", "-F"], "xfs": ["-q", "-f"], "btrfs": ["-q", "-f", "-M"]}[kind]
            run(f"mkfs.{kind}", *options, file)
        Image.every.append(self)

    def attach(self, options="noatime"):
        self.loop = run("losetup", "--find", "--show", self.file).stdout.strip()
        run("mount", "-t", self.kind, "-o", options, self.loop, self.folder)
        return self

    def detach(self, check=True):
        for _ in range(100):
            # A loop device lets go of its file a moment after it was told to.
            if not is_mounted(self.folder) or run("umount", self.folder, check=False, limit=60).returncode == 0:
                break
            time.sleep(0.1)
        if check and is_mounted(self.folder):
            raise RuntimeError(f"{self.folder} stays busy")
        if self.loop:
            run("losetup", "--detach", self.loop, check=check)
            self.loop = None


@atexit.register
def detach_all():
    for image in reversed(Image.every):
        if image.loop:
            run("umount", "-l", image.folder, check=False, limit=30)
            image.detach(check=False)


# Runs first (last in, first out): a vault may lie on an image.
atexit.unregister(end_all)
atexit.register(end_all)


def known(name):
    """The list of known failures of an outside suite: what fails, and why."""
    result = {}
    path = top / "scripts" / "suites" / (name + ".known")
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            test, _, reason = line.partition("\t")
            result[test.strip()] = reason.strip()
    return result


def source(name, url):
    """The newest commit of an outside suite, from $SOAK_SOURCES or from the net; where it is."""
    folder = work / name
    for place in [f"{os.environ['SOAK_SOURCES']}/{name}"] if os.environ.get("SOAK_SOURCES") else [url]:
        run("git", "clone", "--quiet", "--depth", "1", place if "://" in place else f"file://{place}", folder,
            limit=300)
    commit = run("git", "-C", folder, "log", "-1", "--format=%h of %cs").stdout.strip()
    say(f"{name} {commit}")
    return folder, commit

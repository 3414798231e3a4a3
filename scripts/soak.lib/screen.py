"""A desktop session of its own: a virtual screen, a window manager, a session bus, a throw-away home."""
import atexit
import os
import pathlib
import re
import subprocess
import time

import soak


class Screen:
    """`folder` becomes the home; `identity`: user and group that everything runs as."""

    every = []

    def __init__(self, folder, identity):
        self.folder, self.processes = pathlib.Path(folder), []
        self.identity = {"user": identity[0], "group": identity[1], "extra_groups": []}
        self.run_folder = self.folder.with_name(f"run-{self.folder.name}")
        for path in (self.folder, self.run_folder):
            path.mkdir(mode=0o700, exist_ok=True)
            os.chown(path, *identity)
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "XDG_RUNTIME_DIR": str(self.run_folder),
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.run_folder}/bus", "LC_ALL": "C.UTF-8", "NO_AT_BRIDGE": "1",
            "GDK_BACKEND": "x11", "GTK_THEME": "Adwaita", "GTK_A11Y": "none", "GSETTINGS_BACKEND": "memory",
            "GSK_RENDERER": "cairo", "LIBGL_ALWAYS_SOFTWARE": "1", "QT_QPA_PLATFORM": "xcb", "TMPDIR": str(self.folder),
        }
        Screen.every.append(self)
        read_end, write_end = os.pipe()
        self.start("Xvfb", "-displayfd", write_end, "-screen", "0", "1280x800x24", "-nolisten", "tcp",
                   pass_fds=[write_end])
        os.close(write_end)
        with open(read_end) as pipe:
            self.environment["DISPLAY"] = ":" + pipe.readline().strip()
        self.start("dbus-daemon", "--session", "--nofork", f"--address=unix:path={self.run_folder}/bus")
        soak.wait_until((self.run_folder / "bus").exists, 30, "the session bus")
        manager = None

        def managed():
            nonlocal manager
            if manager is None or manager.poll() is not None:
                manager = self.start("openbox")
                time.sleep(0.5)
            return self.run("wmctrl", "-m", check=False).returncode == 0

        soak.wait_until(managed, 90, "the window manager")

    def start(self, *command, **options):
        with open(self.folder / "programs.log", "ab") as log:
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env=self.environment, cwd="/", start_new_session=True, **self.identity, **options)
        self.processes.append(process)
        return process

    def run(self, *command, **options):
        return soak.run(*command, env=self.environment, cwd="/", **self.identity, **{"limit": 60, **options})

    def windows(self):
        """Number and title of every window that the window manager knows."""
        lines = self.run("wmctrl", "-l", check=False).stdout.splitlines()
        return [(fields[0], fields[3] if len(fields) > 3 else "")
                for fields in (line.split(None, 3) for line in lines) if fields and fields[0].startswith("0x")]

    def window(self, title, seconds=60):
        """The window whose title matches, once it is there."""
        end = time.monotonic() + seconds
        while True:
            found = [number for number, name in self.windows() if re.search(title, name)]
            if found:
                return found[-1]
            if time.monotonic() > end:
                raise RuntimeError(f"no window '{title}' within {seconds} s; there are {self.windows()}")
            time.sleep(0.1)

    def keys(self, window, *keys):
        self.run("xdotool", "windowactivate", "--sync", window)
        self.run("xdotool", "key", "--clearmodifiers", "--delay", "60", *keys)

    def type(self, window, text):
        self.run("xdotool", "windowactivate", "--sync", window)
        self.run("xdotool", "type", "--clearmodifiers", "--delay", "40", text)

    def close(self, seconds=20):
        """Every window; those that stay are named."""
        end = time.monotonic() + seconds
        while windows := self.windows():
            if time.monotonic() > end:
                raise RuntimeError(f"windows that don't close: {windows}")
            for number, _ in windows:
                self.run("wmctrl", "-i", "-c", number, check=False)
            time.sleep(0.3)

    def picture(self, name):
        """What is on the screen, for who looks into a failure."""
        soak.keep.mkdir(parents=True, exist_ok=True)
        self.run("import", "-window", "root", f"PNG:{self.folder}/screen", check=False)
        if (self.folder / "screen").exists():
            (soak.keep / f"{name}.png").write_bytes((self.folder / "screen").read_bytes())

    def end(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@atexit.register
def end_all():
    for screen in Screen.every:
        screen.end()

"""A desktop for tests: two private message buses with python-dbusmock's services on them.

usage: desktop.py FOLDER MOUNTPOINT

The buses are FOLDER/system and FOLDER/session. Reads commands, one a line, and writes "done" for each
to FOLDER/answers; what programs did goes to FOLDER/events and to FOLDER/NAME.calls. Ends with its input.
"""
import os
import signal
import subprocess
import sys
import time

import dbus
import dbus.bus
import dbus.mainloop.glib
import dbus.service
from dbusmock import mockobject
from gi.repository import GLib

FOLDER, MOUNTPOINT = sys.argv[1:]
LOGIN = "org.freedesktop.login1"
LOGIN_PATH = "/org/freedesktop/login1"
dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
loop = GLib.MainLoop()
daemons = {}
connections = {}


def event(text):
    with open(FOLDER + "/events", "a") as file:
        print(text, file=file)


class Inhibitors(list):
    """What logind's mock keeps its inhibitors in: tells whether the mount was there at the end of one."""

    def append(self, inhibitor):
        super().append(inhibitor)
        event("inhibited " + " ".join(inhibitor[:4]))

    def remove(self, inhibitor):
        # One of a logind that was stopped is not among them.
        if inhibitor in self:
            super().remove(inhibitor)
        with open("/proc/self/mounts") as mounts:
            mounted = any(line.split()[1] == MOUNTPOINT for line in mounts)
        event("released while " + ("mounted" if mounted else "unmounted"))


def start(bus):
    path = f"{FOLDER}/{bus}"
    daemons[bus] = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--address=unix:path=" + path],
        stderr=subprocess.DEVNULL)
    for _ in range(1000):
        try:
            connections[bus] = dbus.bus.BusConnection("unix:path=" + path)
            return
        except dbus.DBusException:
            time.sleep(0.005)
    raise SystemExit("no " + bus)


def stop(bus):
    connections.pop(bus).close()
    daemons[bus].kill()
    daemons.pop(bus).wait()
    if os.path.exists(f"{FOLDER}/{bus}"):
        os.remove(f"{FOLDER}/{bus}")


def freeze(bus):
    """The daemon is there and accepts, and that is all."""
    daemons[bus].send_signal(signal.SIGSTOP)


def thaw(bus):
    daemons[bus].send_signal(signal.SIGCONT)


def mock(bus, name, path, interface):
    owned = dbus.service.BusName(
        name, connections[bus], allow_replacement=True, replace_existing=True, do_not_queue=True)
    if path in mockobject.objects:
        mockobject.objects.pop(path).remove_from_connection()
    made = mockobject.DBusMockObject(owned, path, interface, {}, f"{FOLDER}/{name}.calls", False)
    mockobject.objects[path] = made
    return made


def logind(user="0"):
    """As the template is, with what it lacks: nobody has a session yet."""
    for path in [path for path in mockobject.objects if path.startswith(LOGIN_PATH)]:
        mockobject.objects.pop(path).remove_from_connection()
    mockobject.inhibitors = Inhibitors()
    manager = mock("system", LOGIN, LOGIN_PATH, LOGIN + ".Manager")
    manager.AddTemplate("logind", {})
    manager.AddUser(dbus.UInt32(user), "alice", True)
    none = "raise dbus.exceptions.DBusException('none', name='org.freedesktop.login1.NoSessionForPID')"
    manager.AddMethods(LOGIN + ".Manager", [
        ("GetUser", "u", "o", f"ret = '{LOGIN_PATH}/user/{user}'"), ("GetSessionByPID", "u", "o", none)])


def manager():
    return mockobject.objects[LOGIN_PATH]


def session(name):
    return mockobject.objects[f"{LOGIN_PATH}/session/{name}"]


def add_session(name, user="0", kind="user"):
    manager().AddSession(name, "seat0", dbus.UInt32(user), "alice", True)
    session(name).UpdateProperties(LOGIN + ".Session", {"Class": kind})


def set_display(name, user="0"):
    path = dbus.ObjectPath(f"{LOGIN_PATH}/session/{name}")
    mockobject.objects[f"{LOGIN_PATH}/user/{user}"].props[LOGIN + ".User"]["Display"] = dbus.Struct(
        (name, path), signature="so", variant_level=1)


def set_own(name):
    """The session of every process that asks."""
    manager().AddMethod(
        LOGIN + ".Manager", "GetSessionByPID", "u", "o", f"ret = '{LOGIN_PATH}/session/{name}'")


def locked_hint(name, value):
    session(name).UpdateProperties(LOGIN + ".Session", {"LockedHint": dbus.Boolean(value == "true")})


def lock_session(name):
    session(name).EmitSignal(LOGIN + ".Session", "Lock", "", [])


def sleep(value):
    manager().EmitSignal(LOGIN + ".Manager", "PrepareForSleep", "b", [value == "true"])


def shutdown(value):
    manager().EmitSignal(LOGIN + ".Manager", "PrepareForShutdown", "b", [value == "true"])


def remove_session(name):
    path = dbus.ObjectPath(f"{LOGIN_PATH}/session/{name}")
    manager().EmitSignal(LOGIN + ".Manager", "SessionRemoved", "so", [name, path])


def close_session(name):
    """Logged out, but a process of the session lives on."""
    session(name).props[LOGIN + ".Session"]["State"] = "closing"
    session(name).UpdateProperties(LOGIN + ".Session", {"Active": dbus.Boolean(False)})


def open_session(name):
    session(name).props[LOGIN + ".Session"]["State"] = "active"


def saver(name, active="false", path=None):
    made = mock("session", name, path or "/" + name.replace(".", "/"), name)
    made.AddMethod(name, "GetActive", "", "b", f"ret = {active == 'true'}")


def set_active(name, value, path=None):
    made = mockobject.objects[path or "/" + name.replace(".", "/")]
    made.EmitSignal(name, "ActiveChanged", "b", [value == "true"])


def pretend_active(name):
    """The same from somebody who doesn't own the name."""
    other = dbus.bus.BusConnection(f"unix:path={FOLDER}/session")
    message = dbus.lowlevel.SignalMessage("/" + name.replace(".", "/"), name, "ActiveChanged")
    message.append(True, signature="b")
    other.send_message(message)
    other.flush()
    other.close()


def leave(name):
    """Nobody has the name any more."""
    mockobject.objects.pop("/" + name.replace(".", "/")).remove_from_connection()
    connections["session"].release_name(name)


def notifications(capabilities="body body-markup"):
    name = "org.freedesktop.Notifications"
    mock("session", name, "/" + name.replace(".", "/"), name).AddTemplate(
        "notification_daemon", {"capabilities": capabilities.replace(",", " ")})


def handle(source, condition):
    line = sys.stdin.readline()
    if not line:
        loop.quit()
        return False
    name, *arguments = line.split()
    try:
        globals()[name.replace("-", "_")](*arguments)
    except Exception:
        loop.quit()
        raise
    # On their way before the test goes on.
    for connection in connections.values():
        connection.flush()
    with open(FOLDER + "/answers", "a") as file:
        print("done", file=file)
    return True


GLib.io_add_watch(0, GLib.IO_IN | GLib.IO_HUP, handle)
try:
    loop.run()
finally:
    for daemon in daemons.values():
        daemon.kill()

"""Owns names on the session bus until it is ended; says "ready" once it does.

usage: own_names.py NAME...
"""

import sys

import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
names = [dbus.service.BusName(name, bus) for name in sys.argv[1:]]
print("ready", flush=True)
GLib.MainLoop().run()

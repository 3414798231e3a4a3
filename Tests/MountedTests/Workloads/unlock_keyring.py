#!/usr/bin/env python3
"""Unlocks the login collection of gnome-keyring on the session bus, as PAM does at a login.

unlock_keyring.py PASSWORD
"""
import sys

import dbus

bus = dbus.SessionBus()
service = bus.get_object("org.freedesktop.secrets", "/org/freedesktop/secrets")
_, session = service.OpenSession(
    "plain", dbus.String("", variant_level=1), dbus_interface="org.freedesktop.Secret.Service")
secret = dbus.Struct(
    (session, dbus.ByteArray(b""), dbus.ByteArray(sys.argv[1].encode()), "text/plain"),
    signature="oayays")
service.UnlockWithMasterPassword(
    dbus.ObjectPath("/org/freedesktop/secrets/collection/login"), secret,
    dbus_interface="org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface")

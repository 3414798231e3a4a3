#!/usr/bin/env python3
"""A Secret Service that is locked and asks: a stand-in for a desktop where somebody answers.

asking_keyring.py yes|no|never      how its questions are answered

Knows sessions without encryption only, as some real ones do. Locked anew by SIGUSR1. Everything it
keeps is gone with it.
"""
import signal
import sys

import dbus
import dbus.service
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

ROOT = "/org/freedesktop/secrets"
COLLECTION = ROOT + "/collection/one"
SERVICE, COLLECTION_TYPE, ITEM, PROMPT = (
    "org.freedesktop.Secret." + name for name in ("Service", "Collection", "Item", "Prompt"))
NOTHING = dbus.ObjectPath("/")


class State:
    answer = sys.argv[1]
    locked = True
    items = {}
    number = 0


class Locked(dbus.DBusException):
    _dbus_error_name = "org.freedesktop.Secret.Error.IsLocked"


class NotSupported(dbus.DBusException):
    _dbus_error_name = "org.freedesktop.DBus.Error.NotSupported"


def paths(words):
    return dbus.Array([dbus.ObjectPath(word) for word in words], signature="o")


class Thing(dbus.service.Object):
    def __init__(self, path):
        super().__init__(dbus.SessionBus(), path)
        self.path = path

    @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="s", out_signature="a{sv}")
    def GetAll(self, _interface):
        return self.properties()

    @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="ss", out_signature="v")
    def Get(self, _interface, name):
        return self.properties()[name]

    def properties(self):
        return {
            "Locked": dbus.Boolean(State.locked), "Label": "label", "Created": dbus.UInt64(1),
            "Modified": dbus.UInt64(1),
        }


class Question(Thing):
    def __init__(self, path, objects):
        super().__init__(path)
        self.objects = objects

    @dbus.service.method(PROMPT, in_signature="s")
    def Prompt(self, _window):
        if State.answer == "never":
            return
        if State.answer == "yes":
            State.locked = False
        GLib.idle_add(self.finish)

    def finish(self):
        done = self.objects if State.answer == "yes" else []
        self.Completed(State.answer != "yes", dbus.Array(paths(done), signature="o", variant_level=1))
        return False

    @dbus.service.method(PROMPT)
    def Dismiss(self):
        pass

    @dbus.service.signal(PROMPT, signature="bv")
    def Completed(self, dismissed, result):
        pass


class Item(Thing):
    def __init__(self, path, attributes, secret):
        super().__init__(path)
        self.attributes = attributes
        self.secret = secret

    def properties(self):
        attributes = dbus.Dictionary(self.attributes, signature="ss")
        return {**super().properties(), "Attributes": attributes, "Type": ""}

    def value(self, session):
        if State.locked:
            raise Locked("locked")
        return dbus.Struct((session, dbus.ByteArray(b""), self.secret, "text/plain"), signature="oayays")

    @dbus.service.method(ITEM, in_signature="o", out_signature="(oayays)")
    def GetSecret(self, session):
        return self.value(session)

    @dbus.service.method(ITEM, in_signature="(oayays)")
    def SetSecret(self, secret):
        if State.locked:
            raise Locked("locked")
        self.secret = secret[2]

    @dbus.service.method(ITEM, out_signature="o")
    def Delete(self):
        del State.items[self.path]
        self.remove_from_connection()
        return NOTHING


class Collection(Thing):
    def properties(self):
        return {**super().properties(), "Items": paths(State.items)}

    @dbus.service.method(
        COLLECTION_TYPE, in_signature="a{sv}(oayays)b", out_signature="oo")
    def CreateItem(self, properties, secret, _replace):
        if State.locked:
            raise Locked("locked")
        State.number += 1
        path = "%s/%d" % (COLLECTION, State.number)
        State.items[path] = Item(path, dict(properties[ITEM + ".Attributes"]), secret[2])
        return dbus.ObjectPath(path), NOTHING


class Service(Thing):
    def properties(self):
        return {"Collections": paths([COLLECTION])}

    @dbus.service.method(SERVICE, in_signature="sv", out_signature="vo")
    def OpenSession(self, algorithm, _input):
        if algorithm != "plain":
            raise NotSupported("plain only")
        return dbus.String("", variant_level=1), dbus.ObjectPath(ROOT + "/session/1")

    @dbus.service.method(SERVICE, in_signature="a{ss}", out_signature="aoao")
    def SearchItems(self, attributes):
        found = [
            path for path, item in State.items.items()
            if attributes.items() <= item.attributes.items()
        ]
        return (paths([]), paths(found)) if State.locked else (paths(found), paths([]))

    @dbus.service.method(SERVICE, in_signature="ao", out_signature="aoo")
    def Unlock(self, objects):
        if not State.locked:
            return paths(objects), NOTHING
        State.number += 1
        question = Question("%s/prompt/%d" % (ROOT, State.number), objects)
        return paths([]), dbus.ObjectPath(question.path)

    @dbus.service.method(SERVICE, in_signature="s", out_signature="o")
    def ReadAlias(self, _alias):
        return dbus.ObjectPath(COLLECTION)

    @dbus.service.method(SERVICE, in_signature="aoo", out_signature="a{o(oayays)}")
    def GetSecrets(self, objects, session):
        values = {dbus.ObjectPath(path): State.items[path].value(session) for path in objects}
        return dbus.Dictionary(values, signature="o(oayays)")


def lock():
    State.locked = True
    return True


DBusGMainLoop(set_as_default=True)
name = dbus.service.BusName("org.freedesktop.secrets", dbus.SessionBus())
service, collection = Service(ROOT), Collection(COLLECTION)
GLib.unix_signal_add(GLib.PRIORITY_HIGH, signal.SIGUSR1, lock)
GLib.MainLoop().run()

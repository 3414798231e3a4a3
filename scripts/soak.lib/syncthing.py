"""A Syncthing of a device of its own, on the loopback alone: keys, ports and folders are thrown away."""
import json
import pathlib
import re
import subprocess
import time
import urllib.request
import xml.etree.ElementTree

import soak
from disks import Process, answers, free_port

FOLDER = "photos"


class Device:
    every = []

    def __init__(self, home, folder):
        self.home, self.folder = pathlib.Path(home), pathlib.Path(folder)
        self.gui, self.port, self.process = free_port(), free_port(), None
        soak.run("syncthing", "generate", "--home", self.home, "--no-default-folder", "--skip-port-probing")
        self.id = soak.run("syncthing", "--home", self.home, "--device-id").stdout.strip().splitlines()[-1]
        self.key = re.search("<apikey>(.*)</apikey>", (self.home / "config.xml").read_text())[1]
        Device.every.append(self)

    def pair(self, other):
        """Writes the whole configuration: this folder, that device, and no way to the outside."""
        tree = xml.etree.ElementTree.parse(self.home / "config.xml")
        top = tree.getroot()
        for each in top.findall("device") + top.findall("folder"):
            top.remove(each)
        for device in (self, other):
            entry = xml.etree.ElementTree.SubElement(top, "device", id=device.id, name=f"device {device.port}")
            xml.etree.ElementTree.SubElement(entry, "address").text = f"tcp://127.0.0.1:{device.port}"
        entry = xml.etree.ElementTree.SubElement(
            top, "folder", id=FOLDER, label=FOLDER, path=str(self.folder), type="sendreceive", rescanIntervalS="3",
            fsWatcherEnabled="true", fsWatcherDelayS="1")
        for device in (self, other):
            xml.etree.ElementTree.SubElement(entry, "device", id=device.id)
        # As its own page makes a folder; without it no version in conflict is kept.
        xml.etree.ElementTree.SubElement(entry, "maxConflicts").text = "10"
        xml.etree.ElementTree.SubElement(entry, "markerName").text = "vault.json" if (self.folder / "vault.json").exists() else "."
        options = top.find("options")
        wanted = {
            "listenAddress": f"tcp://127.0.0.1:{self.port}", "globalAnnounceEnabled": "false",
            "localAnnounceEnabled": "false", "relaysEnabled": "false", "natEnabled": "false", "urAccepted": "-1",
            "crashReportingEnabled": "false", "autoUpgradeIntervalH": "0", "startBrowser": "false",
            "reconnectionIntervalS": "1", "announceLANAddresses": "false", "setLowPriority": "false",
        }
        for name, value in wanted.items():
            for each in options.findall(name):
                options.remove(each)
            xml.etree.ElementTree.SubElement(options, name).text = value
        top.find("gui/address").text = f"127.0.0.1:{self.gui}"
        tree.write(self.home / "config.xml")

    def start(self):
        self.process = Process("syncthing", "serve", "--home", self.home, "--no-browser", "--no-restart",
                               log=self.home / "log")
        soak.wait_until(lambda: answers(self.gui), 60, "Syncthing")
        soak.wait_until(self.is_healthy, 60, "Syncthing's API")

    def is_healthy(self):
        try:
            self.ask("system/status")
            return True
        except OSError:
            return False

    def stop(self):
        if self.process:
            self.process.end()
            self.process = None

    def ask(self, path, method="GET"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.gui}/rest/{path}", method=method,
                                         headers={"X-API-Key": self.key})
        with urllib.request.urlopen(request, timeout=20) as answer:
            text = answer.read()
        return json.loads(text) if text.strip() else None

    def scan(self):
        self.ask(f"db/scan?folder={FOLDER}", "POST")

    def is_settled(self):
        """Nothing to send, nothing to fetch, and the folder as it was seen last."""
        status = self.ask(f"db/status?folder={FOLDER}")
        return status["state"] == "idle" and status["needFiles"] + status["needDeletes"] + status["needDirectories"] == 0


def settle(*devices, seconds=120):
    """Until all have the same."""
    for device in devices:
        device.scan()

    def same():
        if not all(device.is_settled() for device in devices):
            return False
        status = [device.ask(f"db/status?folder={FOLDER}") for device in devices]
        return len({(each["globalFiles"], each["globalBytes"], each["localFiles"], each["localBytes"])
                    for each in status}) == 1
    end = time.monotonic() + seconds
    quiet = 0
    while quiet < 3:
        quiet = quiet + 1 if same() else 0
        if time.monotonic() > end:
            raise RuntimeError("Syncthing did not settle")
        time.sleep(0.5)
        if quiet == 0:
            for device in devices:
                device.scan()


def end_all():
    for device in Device.every:
        device.stop()

"""Headless Chromium for tests of pages: opens a file, evaluates expressions, keeps what the console says.

It speaks the DevTools protocol over two pipes: objects of JSON, each ended by a zero byte."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading

PROGRAM = "chromium"


def program():
    """The path of the browser, or None."""
    return shutil.which(PROGRAM)


class Browser:
    """One page. Use it in a `with`, which ends the process. What takes too long ends in an EOFError."""

    def __init__(self, seconds=90):
        self.profile = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"), ignore_cleanup_errors=True)
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        # Chromium wants the descriptors 3 and 4.
        script = f'exec "$@" 3<&{to_read} 4>&{from_write}'
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
                 "--user-data-dir=" + self.profile.name]
        environment = dict(os.environ, HOME=self.profile.name, XDG_CONFIG_HOME=self.profile.name,
                           XDG_CACHE_HOME=self.profile.name)
        self.process = subprocess.Popen(["bash", "-c", script, "bash", program(), *flags],
                                        pass_fds=(to_read, from_write), env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.out = os.fdopen(to_write, "wb", buffering=0)
        self.answers = os.fdopen(from_read, "rb")
        self.timer = threading.Timer(seconds, self.process.kill)
        self.timer.start()
        self.number = 0
        self.events = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()
        self.out.close()
        self.answers.close()
        self.profile.cleanup()

    def read(self):
        text = bytearray()
        while True:
            byte = self.answers.read(1)
            if not byte:
                raise EOFError("the browser ended")
            if byte == b"\0":
                return json.loads(text)
            text += byte

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path, fragment=""):
        """Loads a file and waits until it is there, or goes to another fragment of the one that is open."""
        self.events.clear()
        started = self.call("Page.navigate", url="file://" + os.path.abspath(path) + fragment)
        while "loaderId" in started and not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.read())

    def evaluate(self, expression):
        """The value of an expression of JavaScript; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def complaints(self):
        """What the console was told since the page was opened, uncaught errors included."""
        methods = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for event in self.events if event.get("method") in methods]

    def requests(self):
        """The addresses that the page asked for."""
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def resize(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        """"dark" or "light"."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        """The whole page as a .png file."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

"""Brokers for the checks, each with a data directory and ports of its own, and Prometheus beside them."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

# Nothing of what is set here may reach a broker: its settings are those that are given to it.
SURROUNDINGS = {name: value for name, value in os.environ.items() if not name.startswith(("ONCELOG_", "KAFKA_"))}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url, patience=10):
    with urllib.request.urlopen(url, timeout=patience) as answer:
        return answer.read().decode()


def until(what, found, limit_s):
    """Asks until there is an answer; what it is that did not come is said."""
    end = time.monotonic() + limit_s
    while True:
        answer = found()
        if answer:
            return answer
        if time.monotonic() > end:
            raise TimeoutError(f"not in {limit_s} s: {what}")
        time.sleep(0.25)


def answers(url):
    with contextlib.suppress(OSError, urllib.error.HTTPError):
        get(url, 2)
        return True
    return False


class Process:
    """A program that is ended when the block is left."""

    def __init__(self, command, log):
        self.command, self.log, self.child = command, pathlib.Path(log), None

    def start(self):
        with self.log.open("a") as out:
            self.child = subprocess.Popen(self.command, stdout=out, stderr=subprocess.STDOUT, env=SURROUNDINGS)

    def stop(self):
        if self.child is None:
            return None
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(30)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        return self.child.returncode

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def tail(self):
        return "\n".join(self.log.read_text().splitlines()[-15:])


class Broker(Process):
    """A broker; `before` are words that its program wants before the broker's own."""

    def __init__(self, program, folder, before=(), settings=()):
        self.port, self.admin = free_port(), free_port()
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        own = [
            f"listeners.external.bind=127.0.0.1:{self.port}",
            f"listeners.external.advertised=127.0.0.1:{self.port}",
            f"admin.bind=127.0.0.1:{self.admin}",
            *settings,
        ]
        words = [word for setting in own for word in ("--set", setting)]
        command = [str(program), *before, "--data-dir", str(folder / "data"), *words]
        super().__init__(command, folder / "broker.log")

    @property
    def bootstrap(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        super().start()
        try:
            until("a broker that is ready", self.ready, 30)
        except Exception:
            self.stop()
            raise

    def ready(self):
        if self.child.poll() is not None:
            raise RuntimeError(f"the broker has ended:\n{self.tail()}")
        return answers(f"http://127.0.0.1:{self.admin}/readyz")

    def metrics(self):
        return get(f"http://127.0.0.1:{self.admin}/metrics")


class Prometheus(Process):
    """Scrapes every second, as little as that is in earnest, so that nobody has to wait."""

    def __init__(self, folder, targets, rules=None):
        self.port = free_port()
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)] if rules else [],
            "scrape_configs": [{"job_name": "oncelog", "static_configs": [{"targets": targets}]}],
        }
        # JSON is YAML.
        (folder / "prometheus.yml").write_text(json.dumps(config))
        super().__init__(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--log.level=warn",
            ],
            folder / "prometheus.log",
        )

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        super().start()
        until("a Prometheus that is ready", lambda: answers(f"{self.url}/-/ready"), 30)

    def ask(self, path, **words):
        """The data of an answer; a refusal is raised with its words."""
        try:
            answer = json.loads(get(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(words, doseq=True)}"))
        except urllib.error.HTTPError as refusal:
            raise ValueError(refusal.read().decode()) from refusal
        return answer["data"]

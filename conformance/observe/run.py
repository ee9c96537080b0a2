"""Runs a broker under load beside a real Prometheus: every query of every dashboard has data, alerts fire and clear,
and the dashboards are drawn.

usage: run.py --broker PROGRAM --faulty PROGRAM --page FOLDER [--pictures FOLDER] [dashboards] [alerts]
"""

import argparse
import contextlib
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import alarms
import boards
import scale
import yaml
from broker import Broker, Process, Prometheus, until

HERE = pathlib.Path(__file__).resolve().parent
NAMES = ["transactions", "broker", "consumers"]
FACTOR = 30
# As if Grafana were told that Prometheus scrapes every 5 s: it scrapes every second here, and lines would be restless.
RATE, STEP = "20s", 2
# How much is drawn, and how long the load goes on at least, so that it is there to draw.
SHOWN_S = 150
# By when every query has data, and every panel that the load can move has moved, counted from the load's begin.
MOVED_S = 30


def numbers(prometheus, target, span):
    """What the query gives, asked as Grafana would."""
    expr = boards.filled(target["expr"], rate_interval=RATE, span=f"{span}s")
    now = time.time()
    if target["instant"]:
        found = prometheus.ask("query", query=expr, time=now)
        values = [series["value"][1] for series in found["result"]]
    else:
        found = prometheus.ask("query_range", query=expr, start=now - span, end=now, step=STEP)
        values = [value for series in found["result"] for _, value in series["values"]]
    return [float(value) for value in values if not math.isnan(float(value))]


def without_data(prometheus, span):
    """Dashboard, panel and query of all that give nothing."""
    return [
        f"{name}: {panel['title']}: {target['expr']}"
        for name, board in boards.dashboards()
        for panel, target in boards.queries(board)
        if not numbers(prometheus, target, span)
    ]


def at_rest(prometheus, span):
    """Dashboard and panel of all that have shown nothing but 0 for so long."""
    for name, board in boards.dashboards():
        for panel in boards.panels(board):
            asked = panel.get("targets", [])
            if asked and not any(number for target in asked for number in numbers(prometheus, target, span)):
                yield name, panel["title"]


def not_moved(prometheus, began):
    """Panels that the load should have moved, and has not; and panels that are excused from it and have."""
    excused = {
        (each["dashboard"], each["panel"]) for each in yaml.safe_load((HERE / "exceptions.yml").read_text())["at_rest"]
    }
    panels = {(name, panel["title"]) for name, board in boards.dashboards() for panel in boards.panels(board)}
    still = set()

    def all_moved():
        nonlocal still
        still = set(at_rest(prometheus, round(time.monotonic() - began) + 1)) - excused
        return not still

    with contextlib.suppress(TimeoutError):
        until("every panel moves", all_moved, max(1, began + MOVED_S - time.monotonic()))
    yield from (f"FAILED  the load does not move: {name}: {title}" for name, title in sorted(still))
    yield from (f"FAILED  exceptions.yml: no panel {name}: {title}" for name, title in sorted(excused - panels))


def empty_variables(prometheus):
    for name, board in boards.dashboards():
        for variable in boards.variables(board):
            if variable["type"] == "query":
                selector, label = boards.label_query(variable)
                values = prometheus.ask(f"label/{label}/values", **{"match[]": boards.filled(selector)})
                if not values:
                    yield f"{name}: variable {variable['name']}"


def refused_annotations(prometheus):
    for name, board in boards.dashboards():
        for each in board["annotations"]["list"]:
            try:
                prometheus.ask("query", query=boards.filled(each["expr"], rate_interval=RATE))
            except ValueError as error:
                yield f"{name}: annotation {each['name']}: {error}"


def dashboards(given, folder):
    """Data for every query under the demonstration's load, and pictures of it."""
    wrong = 0
    with Broker(given.broker, folder / "broker") as broker:
        targets = [f"127.0.0.1:{broker.admin}"]
        with Prometheus(folder / "prometheus", targets) as prometheus:
            until("build information", lambda: prometheus.ask("query", query="oncelog_build_info")["result"], 20)
            load = [given.broker, "demo", "--bootstrap", broker.bootstrap, "--seconds", str(SHOWN_S + MOVED_S)]
            began = time.monotonic()
            with Process(load, folder / "demo.log") as demo:
                left = ["asked nothing yet"]
                while left and time.monotonic() - began < MOVED_S:
                    if demo.child.poll() is not None:
                        raise RuntimeError(f"the load has ended:\n{demo.tail()}")
                    time.sleep(1)
                    left = without_data(prometheus, 60)
                queries = sum(len(boards.queries(board)) for _, board in boards.dashboards())
                took = time.monotonic() - began
                left += list(empty_variables(prometheus)) + list(refused_annotations(prometheus))
                for each in left:
                    print(f"FAILED  no data: {each}")
                if not left:
                    print(f"passed  all {queries} queries have data, {took:.0f} s after the load began", flush=True)
                wrong += len(left)
                still = list(not_moved(prometheus, began))
                for each in still:
                    print(each)
                if not still:
                    took = time.monotonic() - began
                    print(f"passed  every panel moves, {took:.0f} s after the load began", flush=True)
                wrong += len(still)
                if given.pictures:
                    # A picture shows some minutes of load.
                    time.sleep(max(0, SHOWN_S - (time.monotonic() - began)))
                    wrong += pictures(given, prometheus)
    return wrong


def pictures(given, prometheus):
    out = pathlib.Path(given.pictures)
    out.mkdir(parents=True, exist_ok=True)
    shown = [str(each) for each in (SHOWN_S, STEP, RATE)]
    command = ["node", f"{given.page}/shoot.mjs", prometheus.url, str(boards.FOLDER), str(out), *shown, *NAMES]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180)
    if ended.returncode:
        print(f"FAILED  the dashboards cannot be drawn:\n{ended.stderr}")
        return 1
    wrong = 0
    for name, found in json.loads(ended.stdout).items():
        size = smaller(out / f"{name}.png")
        for each in found:
            print(f"FAILED  {name}.png: {each}")
        if not found:
            print(f"passed  {name}.png, {size // 1024} KiB", flush=True)
        wrong += len(found)
    return wrong


def smaller(path):
    """Few colours are enough for lines on a dark ground. Gives the size."""
    from PIL import Image

    image = Image.open(path).convert("RGB").quantize(96, dither=Image.Dither.NONE)
    image.save(path, optimize=True)
    return path.stat().st_size


def alerts(given, folder):
    """The same rules, faster, on a broker whose disk can be made to fail."""
    rules = folder / "rules.yml"
    rules.write_text(scale.scaled((boards.ROOT / "alerts" / "oncelog.rules.yml").read_text(), FACTOR))
    switch = folder / "fail"
    settings = [f"transactions.max_timeout_ms={alarms.TIMEOUT_MS}", "storage.reserve_bytes=0"]
    with Broker(given.faulty, folder / "faulty", before=[str(switch)], settings=settings) as broker:
        with Prometheus(folder / "prometheus-alerts", [f"127.0.0.1:{broker.admin}"], rules) as prometheus:
            watch = alarms.Watch(prometheus)
            until("build information", lambda: prometheus.ask("query", query="oncelog_build_info")["result"], 20)
            scenes = [
                ("an open transaction", lambda: alarms.open_too_long(broker, watch)),
                ("failing markers", lambda: alarms.markers_fail(broker, watch, switch)),
                ("a fencing storm", lambda: alarms.storm(broker, watch)),
            ]
            wrong = together(scenes) + together([("a stopped broker", lambda: alarms.down(broker, watch))])
            others = watch.ever - set(watch.took) - alarms.ALSO
            for name in sorted(others):
                print(f"FAILED  {name} fired, and nothing was done that it is for")
            return wrong + len(others)


def together(scenes):
    """Plays them at the same time; each is about topics and ids of its own. Gives how many have failed."""
    failed = []

    def play(what, scene):
        try:
            scene()
        except Exception as error:
            failed.append(what)
            print(f"FAILED  {what}: {error}", flush=True)

    threads = [threading.Thread(target=play, args=each) for each in scenes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(failed)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--broker", required=True)
    words.add_argument("--faulty", required=True)
    words.add_argument("--page", required=True)
    words.add_argument("--pictures")
    words.add_argument("stages", nargs="*", default=[])
    given = words.parse_args()
    stages = {"dashboards": dashboards, "alerts": alerts}
    wanted = given.stages or list(stages)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="oncelog-observe."))
    wrong = sum(stages[name](given, folder) for name in wanted)
    print(f"stages {len(wanted)} failed {wrong}")
    if wrong:
        print(f"kept: {folder}", file=sys.stderr)
    else:
        subprocess.run(["rm", "-r", str(folder)], check=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Makes alerts fire and clear on a real Prometheus, each by what it is there for."""

import contextlib
import threading
import time

import load
from broker import until
from confluent_kafka import KafkaException

# Longest that each may take, to fire and to clear. MarkersStuck has a threshold of a minute, which is not scaled.
TO_FIRE_S = {"OncelogMarkersStuck": 110}
MOST_S = 75
TIMEOUT_MS = 40_000


class Watch:
    """Asks Prometheus what fires, and remembers all that ever did."""

    def __init__(self, prometheus):
        self.prometheus, self.ever, self.took = prometheus, set(), {}

    def firing(self):
        alerts = self.prometheus.ask("alerts")["alerts"]
        now = {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}
        self.ever |= now
        return now

    def fires(self, name):
        began = time.monotonic()
        until(f"{name} fires", lambda: name in self.firing(), TO_FIRE_S.get(name, MOST_S))
        self.took[name] = [time.monotonic() - began]

    def clears(self, name):
        began = time.monotonic()
        until(f"{name} clears", lambda: name not in self.firing(), MOST_S)
        self.took[name].append(time.monotonic() - began)
        fired, cleared = self.took[name]
        print(f"passed  {name}: fired after {fired:.0f} s, cleared after {cleared:.0f} s", flush=True)


def open_too_long(broker, watch):
    """A producer begins a transaction and does not end it; the broker does, at its timeout."""
    load.make_topic(broker.bootstrap, "forgotten")
    hanging = load.producer(broker.bootstrap, "forgetful", TIMEOUT_MS)
    hanging.begin_transaction()
    load.write(hanging, "forgotten", 1)
    watch.fires("OncelogTransactionOpenTooLong")
    watch.clears("OncelogTransactionOpenTooLong")


def storm(broker, watch):
    """Two producers take one id from each other, each in the middle of its transaction."""
    load.make_topic(broker.bootstrap, "torn")
    enough = threading.Event()

    def fight():
        while not enough.is_set():
            with contextlib.suppress(KafkaException):
                one = load.producer(broker.bootstrap, "shared-by-mistake")
                one.begin_transaction()
                load.write(one, "torn", 1)
            enough.wait(0.3)

    fighter = threading.Thread(target=fight)
    fighter.start()
    try:
        watch.fires("OncelogFencingStorm")
    finally:
        enough.set()
        fighter.join()
    watch.clears("OncelogFencingStorm")


def markers_fail(broker, watch, switch):
    """The disk has no room for one partition's log from the moment on at which its transaction is being committed."""
    load.make_topic(broker.bootstrap, "stuck", 1)
    writer = load.producer(broker.bootstrap, "unlucky", TIMEOUT_MS)
    writer.begin_transaction()
    load.write(writer, "stuck", 1)
    new = switch.with_suffix(".new")
    new.write_text("stuck-0/")
    new.rename(switch)
    # The broker looks for the switch many times a second, and says when it has seen it by refusing a record.
    until("the log fails", lambda: refused(broker), 20)

    def commit():
        with contextlib.suppress(KafkaException):
            writer.commit_transaction(5)

    committing = threading.Thread(target=commit)
    committing.start()
    try:
        watch.fires("OncelogMarkerWritesRetrying")
        watch.fires("OncelogMarkersStuck")
    finally:
        switch.unlink()
        committing.join()
    watch.clears("OncelogMarkersStuck")
    watch.clears("OncelogMarkerWritesRetrying")
    seen = committed_records(broker, "stuck")
    if seen != 1:
        raise AssertionError(f"a committed record was to be read once its marker was written, and {seen} were")


def refused(broker):
    """Whether a record for the failing partition is refused."""
    failed = []
    probe = load.Producer(
        {"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 1000, "retries": 0, **load.QUIET}
    )
    probe.produce("stuck", "probe", partition=0, on_delivery=lambda error, _: failed.append(error))
    probe.flush(5)
    return any(failed)


def committed_records(broker, topic):
    reader = load.consumer(broker.bootstrap, "after-the-storm")
    reader.subscribe([topic])
    seen = []

    def some():
        seen.extend(message for message in reader.consume(10, 0.5) if not message.error() and message.key())
        return seen

    with contextlib.suppress(TimeoutError):
        until("the record", some, 20)
    reader.close()
    return len(seen)


def down(broker, watch):
    """The broker is stopped and started again."""
    ended = broker.stop()
    if ended != 0:
        raise AssertionError(f"the broker ended with {ended}:\n{broker.tail()}")
    watch.fires("OncelogDown")
    broker.start()
    watch.clears("OncelogDown")


# What these scenes do besides what they are for, and what others may do to the disk meanwhile.
ALSO = {
    "OncelogTimeoutAborts",
    "OncelogAbortRatioHigh",
    "OncelogReadCommittedStalled",
    "OncelogSyncSlow",
    # A full log is a full disk to the broker.
    "OncelogDiskSpaceLow",
    "OncelogDiskFullSoon",
}

"""An application at a broker that it did not start: librdkafka, through Kafka's protocol and nothing else.

    client.py once BOOTSTRAP              a topic, a committed and an aborted transaction, what is read back
    client.py write BOOTSTRAP TOPIC N     N records in one transaction
    client.py read BOOTSTRAP TOPIC N      must be exactly these
    client.py loop BOOTSTRAP UNTIL        copies numbers from one topic to another, exactly once, until the file UNTIL is there;
                                          the broker may come and go meanwhile. Ends with what was copied, or exit code 1
"""

import pathlib
import sys
import threading
import time
import uuid

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

# Nothing waits longer than this for a broker.
PATIENCE_S = 120
# A copier waits no longer than this for one step; then it begins anew, which is always right.
STEP_S = 10
ABORT_EVERY = 5
AT_ONCE = 200


class Wrong(Exception):
    """What was seen is not what must be."""


def at(bootstrap):
    # With its default, librdkafka 2.16 forgets its only broker while that restarts, and may then wait for the forgotten one
    # for ever, in send_offsets_to_transaction, whatever the timeout. Its log of connections that come and go is expected here.
    return {"bootstrap.servers": bootstrap, "metadata.recovery.strategy": "none", "log_level": 0}


def create(bootstrap, topic, partitions=3):
    admin = AdminClient(at(bootstrap))
    for future in admin.create_topics([NewTopic(topic, partitions, 1)], operation_timeout=PATIENCE_S).values():
        future.result(PATIENCE_S)


def transactional(bootstrap, ident):
    producer = Producer(at(bootstrap) | {"transactional.id": ident, "transaction.timeout.ms": 60_000})
    producer.init_transactions(PATIENCE_S)
    return producer


def write(bootstrap, topic, values, commit=True, ident=None):
    producer = transactional(bootstrap, ident or f"once-{uuid.uuid4()}")
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value=value)
    producer.flush(PATIENCE_S)
    producer.commit_transaction(PATIENCE_S) if commit else producer.abort_transaction(PATIENCE_S)


def read(bootstrap, topic, isolation="read_committed"):
    """All there is, from the beginning to the end as it is now."""
    settings = at(bootstrap) | {"group.id": f"reader-{uuid.uuid4()}", "enable.auto.commit": False}
    consumer = Consumer(settings | {"isolation.level": isolation, "auto.offset.reset": "error"})
    parts = [TopicPartition(topic, p, 0) for p in consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions]
    ends = {p.partition: consumer.get_watermark_offsets(p, timeout=PATIENCE_S)[1] for p in parts}
    consumer.assign(parts)
    values, until = [], time.monotonic() + PATIENCE_S
    while any(max(position.offset, 0) < ends[position.partition] for position in consumer.position(parts)):
        if time.monotonic() > until:
            raise Wrong(f"{topic} was not read to its end: {consumer.position(parts)} of {ends}")
        message = consumer.poll(0.2)
        if message and message.error():
            raise KafkaException(message.error())
        if message:
            values.append(message.value())
    consumer.close()
    return values


def exactly(found, wanted, what):
    if sorted(found) != sorted(wanted):
        lost, twice = set(wanted) - set(found), len(found) - len(set(found))
        raise Wrong(f"{what}: {len(wanted)} records expected, {len(found)} found, {len(lost)} lost, {twice} twice")


def numbers(count):
    return [b"%d" % n for n in range(count)]


def once(bootstrap):
    topic = f"once-{uuid.uuid4()}"
    create(bootstrap, topic)
    write(bootstrap, topic, numbers(100))
    write(bootstrap, topic, [b"aborted"] * 100, commit=False)
    exactly(read(bootstrap, topic), numbers(100), topic)
    exactly(read(bootstrap, topic, "read_uncommitted"), numbers(100) + [b"aborted"] * 100, topic)
    print("100 records committed and read, 100 aborted and not shown")


class Copier:
    """Reads, writes, and moves its offsets in the same transaction. Begins anew with whatever goes wrong."""

    def __init__(self, bootstrap, source, target):
        self.bootstrap, self.source, self.target = bootstrap, source, target
        self.commits = self.aborts = self.anew = 0

    def begin(self):
        producer = transactional(self.bootstrap, f"copier-{self.target}")
        settings = at(self.bootstrap) | {"group.id": self.target, "enable.auto.commit": False}
        settings |= {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "session.timeout.ms": 10_000}
        consumer = Consumer(settings)
        consumer.subscribe([self.source])
        return producer, consumer

    def turn(self, producer, consumer, count):
        messages = [m for m in consumer.consume(AT_ONCE, 0.5) if not m.error()]
        if not messages:
            return 0
        producer.begin_transaction()
        for message in messages:
            producer.produce(self.target, value=message.value(), key=message.key())
        offsets = {}
        for message in messages:
            offsets[message.partition()] = TopicPartition(self.source, message.partition(), message.offset() + 1)
        producer.send_offsets_to_transaction(list(offsets.values()), consumer.consumer_group_metadata(), STEP_S)
        if count % ABORT_EVERY == 0:
            producer.abort_transaction(STEP_S)
            self.aborts += 1
            first = {}
            for message in messages:
                first.setdefault(message.partition(), TopicPartition(self.source, message.partition(), message.offset()))
            for part in first.values():
                consumer.seek(part)
            return 0
        producer.commit_transaction(STEP_S)
        self.commits += 1
        return len(messages)

    def run(self, fed, end):
        copied, turn, until = 0, 0, None
        while not (end.is_set() and copied >= fed["count"]):
            if end.is_set():
                until = until or time.monotonic() + PATIENCE_S
                if time.monotonic() > until:
                    raise Wrong(f"only {copied} of {fed['count']} records were copied")
            producer = consumer = None
            try:
                producer, consumer = self.begin()
                # Whether a last commit came through is decided by now, and the group's offsets say how it was.
                copied = self.known()
                while not (end.is_set() and copied >= fed["count"]):
                    turn += 1
                    copied += self.turn(producer, consumer, turn)
                    if until and time.monotonic() > until:
                        break
            except KafkaException as error:
                print(f"begins anew: {error}", file=sys.stderr, flush=True)
                self.anew += 1
            finally:
                # One that is left over must not go on in the background.
                if producer:
                    producer.purge()
                if consumer:
                    consumer.close()

    def known(self):
        """How far the group is, which is how many numbers have been copied."""
        asker = Consumer(at(self.bootstrap) | {"group.id": self.target})
        try:
            count = len(asker.list_topics(self.source, timeout=PATIENCE_S).topics[self.source].partitions)
            parts = asker.committed([TopicPartition(self.source, p) for p in range(count)], timeout=PATIENCE_S)
            return sum(max(part.offset, 0) for part in parts)
        finally:
            asker.close()


def feed(bootstrap, topic, fed, end):
    producer = Producer(at(bootstrap) | {"enable.idempotence": True, "delivery.timeout.ms": PATIENCE_S * 1000})
    while not end.is_set():
        producer.produce(topic, value=b"%d" % fed["sent"])
        fed["sent"] += 1
        producer.poll(0.01)
    fed["left"] = producer.flush(PATIENCE_S)
    fed["count"] = fed["sent"]


def loop(bootstrap, until):
    name = uuid.uuid4().hex[:8]
    source, target = f"numbers-{name}", f"copies-{name}"
    create(bootstrap, source, 4)
    create(bootstrap, target, 4)
    fed, ended, copier = {"sent": 0, "count": 1 << 62}, threading.Event(), Copier(bootstrap, source, target)
    feeding = threading.Event()
    feeder = threading.Thread(target=feed, args=(bootstrap, source, fed, feeding), daemon=True)
    failures = []

    def copy():
        try:
            copier.run(fed, ended)
        except Exception as error:  # noqa: BLE001, it is raised where it is waited for
            failures.append(error)

    copying = threading.Thread(target=copy, daemon=True)
    feeder.start()
    copying.start()
    print("running", flush=True)
    while not pathlib.Path(until).exists() and copying.is_alive():
        time.sleep(0.1)
    feeding.set()
    feeder.join()
    ended.set()
    copying.join()
    if failures:
        raise failures[0]
    if fed["left"]:
        raise Wrong(f"{fed['left']} records were never taken")
    exactly(read(bootstrap, source), numbers(fed["sent"]), source)
    exactly(read(bootstrap, target), numbers(fed["sent"]), target)
    done = f"{copier.commits} transactions committed, {copier.aborts} aborted, {copier.anew} times begun anew"
    print(f"{fed['sent']} records copied, each once; {done}")


def main():
    match sys.argv[1:]:
        case ["once", bootstrap]:
            once(bootstrap)
        case ["write", bootstrap, topic, count]:
            create(bootstrap, topic)
            write(bootstrap, topic, numbers(int(count)))
            print(f"{count} records written in one transaction")
        case ["read", bootstrap, topic, count]:
            exactly(read(bootstrap, topic), numbers(int(count)), topic)
            print(f"{count} records read")
        case ["loop", bootstrap, until]:
            loop(bootstrap, until)
        case _:
            sys.exit(__doc__)


try:
    main()
except (Wrong, KafkaException) as error:
    sys.exit(f"client: {error}")

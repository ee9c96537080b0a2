"""What a broker is asked for when all its metrics shall have their series: commits, aborts, fencing, groups."""

import contextlib
import logging
import uuid

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

# What clients say of being fenced is what is wanted here.
SILENT = logging.getLogger("clients")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False
QUIET = {"log_level": 0, "logger": SILENT}


def make_topic(bootstrap, name, partitions=2):
    # It is kept until the answer is there: its end would end the request too.
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        try:
            future.result(20)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def producer(bootstrap, transactional_id, timeout_ms=10_000):
    made = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "linger.ms": 0,
            **QUIET,
        }
    )
    made.init_transactions(20)
    return made


def write(made, topic, records=10):
    for number in range(records):
        made.produce(topic, f"record {number}", str(number))
    made.flush(20)


def consumer(bootstrap, group):
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": 6000,
            **QUIET,
        }
    )


def some_of_everything(bootstrap):
    """Gives the topic and the group. Takes a second or two, most of it the group's."""
    topic = f"orders-{uuid.uuid4().hex[:6]}"
    own_id, group = f"{topic}-writer", f"{topic}-readers"
    make_topic(bootstrap, topic)
    first = producer(bootstrap, own_id)
    first.begin_transaction()
    write(first, topic)
    first.commit_transaction(20)
    first.begin_transaction()
    write(first, topic)
    first.abort_transaction(20)
    reader = consumer(bootstrap, group)
    reader.subscribe([topic])
    seen = 0
    for _ in range(60):
        seen += sum(1 for message in reader.consume(10, 0.5) if not message.error())
        if seen >= 10:
            break
    first.begin_transaction()
    write(first, topic)
    first.send_offsets_to_transaction(reader.position(reader.assignment()), reader.consumer_group_metadata(), 20)
    # The next owner of the id: the first one is fenced in the middle of its transaction.
    second = producer(bootstrap, own_id)
    with contextlib.suppress(KafkaException):
        first.commit_transaction(20)
    second.begin_transaction()
    write(second, topic)
    second.commit_transaction(20)
    reader.commit(asynchronous=False)
    reader.close()
    return topic, group

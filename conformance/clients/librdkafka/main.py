"""An application of librdkafka's: transactions, a group, an idempotent producer, the admin client."""

import json
import os
import random
import signal
import sys
import threading
import time
import uuid

import confluent_kafka
from confluent_kafka import (OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, IsolationLevel, KafkaError,
                             KafkaException, Producer, TopicCollection, TopicPartition)
from confluent_kafka.admin import (AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic,
                                   OffsetSpec, ResourceType)

SERVERS = {"bootstrap.servers": os.environ["BOOTSTRAP"]}
RUN = uuid.uuid4().hex[:8]
WAIT_S = 30

admin = AdminClient(SERVERS)


def expect(what, seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{what}: {str(seen)[:300]} instead of {str(wanted)[:300]}")


def done(futures):
    """The results of the admin client's futures; raises what any of them raises."""
    return {key: future.result(WAIT_S) for key, future in futures.items()}


def make_topic(name, partitions=1, **config):
    topic = f"librdkafka-{RUN}-{name}"
    config = {key.replace("_", "."): value for key, value in config.items()}
    done(admin.create_topics([NewTopic(topic, partitions, 1, config=config)]))
    eventually("partitions", lambda: partition_count(topic), partitions)
    return topic


def partition_count(topic):
    try:
        return len(done(admin.describe_topics(TopicCollection([topic])))[topic].partitions)
    except KafkaException as failure:
        return failure.args[0].name()


def eventually(what, look, wanted):
    """Kafka's controller answers before all of the broker knows."""
    until = time.monotonic() + WAIT_S
    while (seen := look()) != wanted and time.monotonic() < until:
        time.sleep(0.05)
    expect(what, seen, wanted)


def transactional(name, **settings):
    settings = {key.replace("_", "."): value for key, value in settings.items()}
    producer = Producer({**SERVERS, "transactional.id": f"librdkafka-{RUN}-{name}", **settings})
    producer.init_transactions(WAIT_S)
    return producer


def plain():
    """Without transactions; in order, also over a retry."""
    return Producer({**SERVERS, "enable.idempotence": True})


def write(producer, topic, values, partition=0):
    """Returns when every record is in the log."""
    failures = []
    for value in values:
        producer.produce(topic, value, partition=partition,
                         on_delivery=lambda failure, _: failure and failures.append(failure))
    expect("records not written", producer.flush(WAIT_S), 0)
    expect("failed deliveries", failures, [])


def reader(isolation, **settings):
    settings = {key.replace("_", "."): value for key, value in settings.items()}
    return Consumer({**SERVERS, "group.id": f"librdkafka-{RUN}-{uuid.uuid4()}", "isolation.level": isolation,
                     "enable.auto.commit": False, "auto.offset.reset": "earliest", **settings})


def read(topic, isolation="read_committed", partitions=1):
    """Everything that a reader sees now, a list for each partition."""
    consumer = reader(isolation, enable_partition_eof=True)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    seen, ended, until = [[] for _ in range(partitions)], set(), time.monotonic() + WAIT_S
    while len(ended) < partitions:
        message = consumer.poll(1)
        if message is None:
            expect("end of partition in time", time.monotonic() < until, True)
        elif message.error() is None:
            seen[message.partition()].append(message.value().decode())
        elif message.error().code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
        else:
            raise KafkaException(message.error())
    consumer.close()
    return seen


def last_offset(topic, isolation):
    place = TopicPartition(topic, 0)
    found = admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=isolation)
    return found[place].result(WAIT_S).offset


def failure_of(call, *arguments):
    try:
        call(*arguments)
    except KafkaException as failure:
        return failure.args[0]
    raise AssertionError(f"{call.__name__} succeeded")


def commit():
    """Two topics, three partitions each, one transaction over all of them at a time."""
    topics = [make_topic("commit-a", 3), make_topic("commit-b", 3)]
    producer = transactional("commit")
    for round in range(10):
        producer.begin_transaction()
        for topic in topics:
            for partition in range(3):
                for n in range(10):
                    producer.produce(topic, f"{round}/{partition}/{n}", partition=partition)
        producer.commit_transaction(WAIT_S)
    wanted = [[f"{round}/{partition}/{n}" for round in range(10) for n in range(10)] for partition in range(3)]
    for topic in topics:
        expect("committed records", read(topic, partitions=3), wanted)
    return "600 records in 10 transactions over 6 partitions"


def abort():
    """Transactions of three producers lie across each other; about half are aborted. Cases C-03, C-06, C-10."""
    topic, dice = make_topic("abort"), random.Random(1)
    producers = [transactional(f"abort-{n}") for n in range(3)]
    log, committed, aborted = [], set(), 0
    for round in range(12):
        for producer in producers:
            producer.begin_transaction()
        for part in range(2):
            for n, producer in enumerate(producers):
                values = [f"{round}/{n}/{part}/{m}" for m in range(3)]
                write(producer, topic, values)
                log += values
        for n in dice.sample(range(3), 3):
            if dice.random() < 0.5:
                producers[n].commit_transaction(WAIT_S)
                committed.add((round, n))
            else:
                producers[n].abort_transaction(WAIT_S)
                aborted += 1
    kept = [value for value in log if tuple(map(int, value.split("/")[:2])) in committed]
    expect("committed records", read(topic), [kept])
    expect("all records", read(topic, "read_uncommitted"), [log])
    return f"{len(committed)} committed, {aborted} aborted, {len(log) - len(kept)} records unseen"


def offsets():
    """Reads, doubles and writes; each third transaction is aborted at first. Cases C-14, C-58."""
    source, target = make_topic("offsets-in"), make_topic("offsets-out")
    write(plain(), source, [str(n) for n in range(100)])
    consumer, producer = reader("read_committed"), transactional("offsets")
    consumer.subscribe([source])
    place, stored, turn = TopicPartition(source, 0), 0, 0
    while stored < 100:
        batch = [message for message in consumer.consume(10, WAIT_S)]
        expect("errors", [str(message.error()) for message in batch if message.error()], [])
        expect("first of the batch", batch[0].offset(), stored)
        end, turn = batch[-1].offset() + 1, turn + 1
        producer.begin_transaction()
        for message in batch:
            producer.produce(target, str(2 * int(message.value())))
        producer.send_offsets_to_transaction([TopicPartition(source, 0, end)], consumer.consumer_group_metadata(), WAIT_S)
        if turn % 3 == 0:
            producer.abort_transaction(WAIT_S)
            expect("offset after an abort", consumer.committed([place], WAIT_S)[0].offset, stored)
            consumer.seek(TopicPartition(source, 0, stored))
        else:
            producer.commit_transaction(WAIT_S)
            stored = end
            expect("offset after a commit", consumer.committed([place], WAIT_S)[0].offset, stored)
    consumer.close()
    expect("results", read(target), [[str(2 * n) for n in range(100)]])
    return f"100 records in {turn} transactions"


def zombie():
    """A member that has left the group keeps its producer, and may not move the group's offsets any more."""
    topic = make_topic("zombie")
    write(plain(), topic, ["one"])
    group = f"librdkafka-{RUN}-zombie"
    first, second = reader("read_committed", group_id=group), reader("read_committed", group_id=group)
    first.subscribe([topic])
    expect("record", first.poll(WAIT_S).value(), b"one")
    stale = first.consumer_group_metadata()
    first.close()
    second.subscribe([topic])
    expect("record", second.poll(WAIT_S).value(), b"one")
    producer = transactional("zombie")
    producer.begin_transaction()
    failure = failure_of(producer.send_offsets_to_transaction, [TopicPartition(topic, 0, 1)], stale, WAIT_S)
    expect("refusal is of the member", failure.code() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION), True)
    expect("to be aborted", failure.txn_requires_abort(), True)
    producer.abort_transaction(WAIT_S)
    second.close()
    return failure.name()


def isolation():
    """An open transaction holds a waiting reader back, and its commit wakes it. Cases C-02, C-08."""
    topic = make_topic("isolation")
    outside, producer = plain(), transactional("isolation")
    write(outside, topic, ["before"])
    producer.begin_transaction()
    write(producer, topic, ["inside"])
    write(outside, topic, ["behind"])
    expect("committed records", read(topic), [["before"]])
    expect("all records", read(topic, "read_uncommitted"), [["before", "inside", "behind"]])
    expect("last stable offset", last_offset(topic, IsolationLevel.READ_COMMITTED), 1)
    expect("high watermark", last_offset(topic, IsolationLevel.READ_UNCOMMITTED), 3)
    waiting = reader("read_committed", fetch_wait_max_ms=20000)
    waiting.assign([TopicPartition(topic, 0, 1)])
    expect("records while open", waiting.poll(1), None)
    producer.commit_transaction(WAIT_S)
    began = time.monotonic()
    expect("records after the commit", [waiting.poll(WAIT_S).value() for _ in range(2)], [b"inside", b"behind"])
    woken_ms = round(1000 * (time.monotonic() - began))
    waiting.close()
    expect("last stable offset", last_offset(topic, IsolationLevel.READ_COMMITTED), 4)
    return f"woken {woken_ms} ms after the commit"


def fencing():
    """The second owner of an id aborts the first one's transaction. Cases C-13, C-29."""
    topic = make_topic("fencing")
    first = transactional("fencing")
    first.begin_transaction()
    write(first, topic, ["first"])
    second = transactional("fencing")
    failure = failure_of(first.commit_transaction, WAIT_S)
    expect("fenced", (failure.code(), failure.fatal()), (KafkaError._FENCED, True))
    second.begin_transaction()
    write(second, topic, ["second"])
    second.commit_transaction(WAIT_S)
    expect("committed records", read(topic), [["second"]])
    expect("all records", read(topic, "read_uncommitted"), [["first", "second"]])
    return failure.name()


def timeout():
    """The broker aborts what was left open, and its producer is fenced. Cases C-12, C-35."""
    topic = make_topic("timeout")
    producer = transactional("timeout", transaction_timeout_ms=2000)
    producer.begin_transaction()
    write(producer, topic, ["late"])
    began = time.monotonic()
    while last_offset(topic, IsolationLevel.READ_COMMITTED) < 2:
        expect("aborted in time", time.monotonic() < began + WAIT_S, True)
        time.sleep(0.1)
    took_s = time.monotonic() - began
    expect("not aborted early", took_s > 1.9, True)
    failure = failure_of(producer.commit_transaction, WAIT_S)
    expect("fenced", (failure.code(), failure.fatal()), (KafkaError._FENCED, True))
    expect("committed records", read(topic), [[]])
    return f"aborted after {took_s:.1f} s of 2"


def idempotence():
    """The broker hangs for longer than the client waits: it connects anew and sends batches again. Case C-61."""
    topic, broker = make_topic("idempotence", 3), os.environ.get("BROKER_PID")
    delivered, failures, again = [], [], [0]

    def hang(failure, message):
        (failures if failure else delivered).append(failure or message.value())
        if len(delivered) in (1000, 3000, 5000) and broker:
            os.kill(int(broker), signal.SIGSTOP)
            threading.Timer(1.2, os.kill, (int(broker), signal.SIGCONT)).start()

    def count(statistics):
        again[0] = max(again[0], sum(node["txretries"] for node in json.loads(statistics)["brokers"].values()))

    producer = Producer({**SERVERS, "enable.idempotence": True, "socket.timeout.ms": 500, "socket.max.fails": 1,
                         "topic.metadata.refresh.interval.ms": 50, "batch.num.messages": 20, "linger.ms": 0,
                         "statistics.interval.ms": 100, "stats_cb": count})
    for n in range(6000):
        producer.produce(topic, str(n), partition=n % 3, on_delivery=hang)
        producer.poll(0)
    expect("records not written", producer.flush(60), 0)
    expect("failed deliveries", failures, [])
    expect("records", read(topic, partitions=3), [[str(n) for n in range(part, 6000, 3)] for part in range(3)])
    expect("batches were sent again", again[0] > 0, bool(broker))
    return f"6000 records, {again[0]} batches sent again"


def admin_topics():
    """Topics, their configs and partitions from their making to their end. Cases C-90, C-91."""
    topic = make_topic("admin", 2, retention_ms="3600000")
    again = failure_of(done, admin.create_topics([NewTopic(topic, 2, 1)]))
    expect("made twice", again.code(), KafkaError.TOPIC_ALREADY_EXISTS)
    resource = ConfigResource(ResourceType.TOPIC, topic)

    def retention():
        entry = done(admin.describe_configs([resource]))[resource]["retention.ms"]
        return entry.value, entry.is_default

    expect("retention.ms", retention(), ("3600000", False))
    change = ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET)
    done(admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])]))
    eventually("retention.ms", retention, ("7200000", False))
    change = ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)
    done(admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])]))
    eventually("retention.ms is the default", lambda: retention()[1], True)
    done(admin.create_partitions([NewPartitions(topic, 4)]))
    eventually("partitions", lambda: partition_count(topic), 4)
    fewer = failure_of(done, admin.create_partitions([NewPartitions(topic, 3)]))
    expect("fewer partitions", fewer.code(), KafkaError.INVALID_PARTITIONS)

    write(plain(), topic, [str(n) for n in range(10)])
    cut = done(admin.delete_records([TopicPartition(topic, 0, 4)]))
    expect("low watermark", [part.low_watermark for part in cut.values()], [4])
    expect("records left", read(topic)[0], [str(n) for n in range(4, 10)])
    done(admin.delete_topics([topic]))
    eventually("deleted", lambda: partition_count(topic), "UNKNOWN_TOPIC_OR_PART")


def admin_groups():
    topic, group = make_topic("admin-groups"), f"librdkafka-{RUN}-admin"
    write(plain(), topic, ["a", "b", "c"])
    consumer = reader("read_committed", group_id=group, client_id="member")
    consumer.subscribe([topic])
    expect("record", consumer.poll(WAIT_S).value(), b"a")
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    listed = admin.list_consumer_groups().result(WAIT_S)
    expect("listing errors", listed.errors, [])
    expect("group is listed", [found.state.name for found in listed.valid if found.group_id == group], ["STABLE"])
    described = done(admin.describe_consumer_groups([group]))[group]
    members = [(member.client_id, [(part.topic, part.partition) for part in member.assignment.topic_partitions])
               for member in described.members]
    expect("members", (described.state.name, members), ("STABLE", [("member", [(topic, 0)])]))
    in_use = failure_of(done, admin.delete_consumer_groups([group]))
    expect("deleted while in use", in_use.code(), KafkaError.NON_EMPTY_GROUP)
    consumer.close()

    def stored():
        asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])]
        return done(admin.list_consumer_group_offsets(asked))[group].topic_partitions[0].offset

    expect("offset", stored(), 2)
    done(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 1)])]))
    expect("offset set back", stored(), 1)
    done(admin.delete_consumer_groups([group]))
    gone = failure_of(done, admin.delete_consumer_groups([group]))
    expect("deleted twice", gone.code(), KafkaError.GROUP_ID_NOT_FOUND)


def administration():
    cluster = admin.describe_cluster().result(WAIT_S)
    expect("nodes", len(cluster.nodes), 1)
    admin_topics()
    admin_groups()
    return "topics, configs, partitions, records, groups, offsets"


SCENARIOS = {"commit": commit, "abort": abort, "offsets": offsets, "zombie": zombie, "isolation": isolation,
             "fencing": fencing, "timeout": timeout, "idempotence": idempotence, "admin": administration}


def main():
    print(f"version librdkafka {confluent_kafka.libversion()[0]} confluent-kafka {confluent_kafka.version()}", flush=True)
    for name in sys.argv[1:] or SCENARIOS:
        try:
            print("pass", name, SCENARIOS[name]() or "", flush=True)
        except Exception as failure:
            print("FAIL", name, " ".join(str(failure).split()), flush=True)
    print("end", flush=True)


if __name__ == "__main__":
    main()

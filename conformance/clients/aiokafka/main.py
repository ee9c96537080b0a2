"""An application of aiokafka's: transactions, a group, an idempotent producer, the admin client."""

import asyncio
import os
import random
import sys
import time
import uuid

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (InvalidProducerEpoch, KafkaError, ProducerFenced, TopicAlreadyExistsError,
                             UnknownTopicOrPartitionError, for_code)

SERVERS = os.environ["BOOTSTRAP"]
RUN = uuid.uuid4().hex[:8]
WAIT_S = 30


def expect(what, seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{what}: {str(seen)[:300]} instead of {str(wanted)[:300]}")


async def eventually(what, look, wanted):
    """Kafka's controller answers before all of the broker knows."""
    until = time.monotonic() + WAIT_S
    while (seen := await look()) != wanted and time.monotonic() < until:
        await asyncio.sleep(0.05)
    expect(what, seen, wanted)


class App:
    """What a scenario works with; `close` ends all that it has opened."""

    def __init__(self, name):
        self.name, self.opened, self.admin = name, [], AIOKafkaAdminClient(bootstrap_servers=SERVERS)

    async def close(self):
        for client in reversed(self.opened):
            try:
                await client.stop()
            except KafkaError as failure:
                print(f"{self.name}: closing: {failure!r}", file=sys.stderr)  # a fenced producer says it again
        await self.admin.close()

    async def start(self, client):
        await client.start()
        self.opened.append(client)
        return client

    def id(self, suffix=""):
        return f"aiokafka-{RUN}-{self.name}{suffix}"

    async def topic(self, suffix="", partitions=1, **config):
        topic = self.id(suffix)
        config = {key.replace("_", "."): value for key, value in config.items()}
        answer = await self.admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=config)])
        expect("topic errors", [error for _, error, *_ in answer.topic_errors], [0])
        await eventually("partitions", lambda: self.partitions(topic), partitions)
        return topic

    async def partitions(self, topic):
        [found] = await self.admin.describe_topics([topic])
        return len(found["partitions"])

    async def plain(self, **settings):
        return await self.start(AIOKafkaProducer(bootstrap_servers=SERVERS, enable_idempotence=True, **settings))

    async def transactional(self, suffix="", timeout_ms=60000):
        return await self.start(AIOKafkaProducer(bootstrap_servers=SERVERS, transactional_id=self.id(suffix),
                                                 transaction_timeout_ms=timeout_ms))

    async def reader(self, isolation="read_committed", topics=(), **settings):
        return await self.start(AIOKafkaConsumer(*topics, bootstrap_servers=SERVERS, isolation_level=isolation,
                                                 enable_auto_commit=False, auto_offset_reset="earliest", **settings))

    async def read(self, topic, isolation="read_committed", partitions=1):
        """Everything that a reader sees now, a list for each partition; its position also passes what it is not shown."""
        consumer = await self.reader(isolation, fetch_max_wait_ms=100)
        places = [TopicPartition(topic, partition) for partition in range(partitions)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        ends, seen, until = await consumer.end_offsets(places), [[] for _ in places], time.monotonic() + WAIT_S
        while any([await consumer.position(place) < ends[place] for place in places]):
            expect("end of the partition in time", time.monotonic() < until, True)
            for place, records in (await consumer.getmany(timeout_ms=200)).items():
                seen[place.partition] += [record.value.decode() for record in records]
        await consumer.stop()
        return seen

    async def last_offset(self, topic, isolation):
        consumer = await self.reader(isolation)
        [last] = (await consumer.end_offsets([TopicPartition(topic, 0)])).values()
        await consumer.stop()
        return last


async def write(producer, topic, values, partition=0):
    """Returns when every record is in the log."""
    for sent in [await producer.send(topic, value.encode(), partition=partition) for value in values]:
        await sent


async def failure_of(awaited, *kinds):
    try:
        await awaited
    except kinds as failure:
        return type(failure).__name__
    raise AssertionError(f"no failure, but {kinds} was wanted")


async def commit(app):
    """Two topics, three partitions each, one transaction over all of them at a time."""
    topics = [await app.topic("-a", 3), await app.topic("-b", 3)]
    producer = await app.transactional()
    for turn in range(10):
        async with producer.transaction():
            for topic in topics:
                for partition in range(3):
                    for n in range(10):
                        await producer.send(topic, f"{turn}/{partition}/{n}".encode(), partition=partition)
    wanted = [[f"{turn}/{partition}/{n}" for turn in range(10) for n in range(10)] for partition in range(3)]
    for topic in topics:
        expect("committed records", await app.read(topic, partitions=3), wanted)
    return "600 records in 10 transactions over 6 partitions"


async def abort(app):
    """Transactions of three producers lie across each other; about half are aborted. Cases C-03, C-06, C-10."""
    topic, dice = await app.topic(), random.Random(1)
    producers = [await app.transactional(f"-{n}") for n in range(3)]
    log, committed = [], set()
    for turn in range(12):
        for producer in producers:
            await producer.begin_transaction()
        for part in range(2):
            for n, producer in enumerate(producers):
                values = [f"{turn}/{n}/{part}/{m}" for m in range(3)]
                await write(producer, topic, values)
                log += values
        for n in dice.sample(range(3), 3):
            if dice.random() < 0.5:
                await producers[n].commit_transaction()
                committed.add((turn, n))
            else:
                await producers[n].abort_transaction()
    kept = [value for value in log if tuple(map(int, value.split("/")[:2])) in committed]
    expect("committed records", await app.read(topic), [kept])
    expect("all records", await app.read(topic, "read_uncommitted"), [log])
    return f"36 transactions, {len(log) - len(kept)} of {len(log)} records unseen"


async def offsets(app):
    """Reads, doubles and writes; each third transaction is aborted at first. Cases C-14, C-58."""
    source, target, group = await app.topic("-in"), await app.topic("-out"), app.id()
    await write(await app.plain(), source, [str(n) for n in range(100)])
    producer, consumer = await app.transactional(), await app.reader(topics=[source], group_id=group)
    place, stored, turn = TopicPartition(source, 0), 0, 0

    async def committed():
        return await consumer.committed(place) or 0

    while stored < 100:
        batch = (await consumer.getmany(place, timeout_ms=1000 * WAIT_S, max_records=10))[place]
        expect("first of the batch", batch[0].offset, stored)
        turn += 1
        await producer.begin_transaction()
        for record in batch:
            await producer.send(target, str(2 * int(record.value)).encode(), partition=0)
        await producer.send_offsets_to_transaction({place: batch[-1].offset + 1}, group)
        if turn % 3 == 0:
            await producer.abort_transaction()
            consumer.seek(place, stored)
        else:
            await producer.commit_transaction()
            stored = batch[-1].offset + 1
        await eventually("offset of the group", committed, stored)
    expect("results", await app.read(target), [[str(2 * n) for n in range(100)]])
    return f"100 records in {turn} transactions"


async def isolation(app):
    """An open transaction holds a waiting reader back, and its commit wakes it. Cases C-02, C-08."""
    topic = await app.topic()
    outside, producer = await app.plain(), await app.transactional()
    await write(outside, topic, ["before"])
    await producer.begin_transaction()
    await write(producer, topic, ["inside"])
    await write(outside, topic, ["behind"])
    expect("committed records", await app.read(topic), [["before"]])
    expect("all records", await app.read(topic, "read_uncommitted"), [["before", "inside", "behind"]])
    expect("last stable offset", await app.last_offset(topic, "read_committed"), 1)
    expect("high watermark", await app.last_offset(topic, "read_uncommitted"), 3)
    waiting, place = await app.reader(fetch_max_wait_ms=20000), TopicPartition(topic, 0)
    waiting.assign([place])
    waiting.seek(place, 1)
    expect("records while open", await waiting.getmany(timeout_ms=1000), {})
    await producer.commit_transaction()
    began = time.monotonic()
    expect("records after the commit", [(await waiting.getone()).value for _ in range(2)], [b"inside", b"behind"])
    woken_ms = round(1000 * (time.monotonic() - began))
    expect("last stable offset", await app.last_offset(topic, "read_committed"), 4)
    return f"woken {woken_ms} ms after the commit"


async def fencing(app):
    """The second owner of an id aborts the first one's transaction. Cases C-13, C-29."""
    topic = await app.topic()
    first = await app.transactional()
    await first.begin_transaction()
    await write(first, topic, ["first"])
    second = await app.transactional()
    refusal = await failure_of(first.commit_transaction(), ProducerFenced, InvalidProducerEpoch)
    async with second.transaction():
        await write(second, topic, ["second"])
    expect("committed records", await app.read(topic), [["second"]])
    expect("all records", await app.read(topic, "read_uncommitted"), [["first", "second"]])
    return refusal


async def timeout(app):
    """The broker aborts what was left open, and its producer is fenced. Cases C-12, C-18."""
    topic = await app.topic()
    producer = await app.transactional(timeout_ms=2000)
    await producer.begin_transaction()
    await write(producer, topic, ["late"])
    began = time.monotonic()
    await eventually("last stable offset", lambda: app.last_offset(topic, "read_committed"), 2)
    took_s = time.monotonic() - began
    expect("not aborted early", took_s > 1.9, True)
    refusal = await failure_of(producer.commit_transaction(), ProducerFenced, InvalidProducerEpoch)
    expect("committed records", await app.read(topic), [[]])
    return f"aborted after {took_s:.1f} s of 2; {refusal}"


async def idempotence(app):
    """Connections break while answers are awaited, so batches are sent again. Case C-61."""
    topic = await app.topic(partitions=3)
    producer = await app.plain(max_batch_size=512, retry_backoff_ms=20)
    cuts = 0

    async def cut():
        nonlocal cuts
        while cuts < 20:
            await asyncio.sleep(0.02)
            for connection in list(producer.client._conns.values()):
                if connection._requests:
                    connection.close()
                    cuts += 1

    cutter = asyncio.create_task(cut())
    sent = [await producer.send(topic, str(n).encode(), partition=n % 3) for n in range(6000)]
    await asyncio.gather(*sent)
    cutter.cancel()
    wanted = [[str(n) for n in range(part, 6000, 3)] for part in range(3)]
    expect("records", await app.read(topic, partitions=3), wanted)
    expect("connections were cut", cuts > 0, True)
    return f"6000 records, {cuts} connections cut"


async def administration(app):
    """What the admin client has, which is not much. Cases C-90, C-91."""
    expect("brokers", len((await app.admin.describe_cluster())["brokers"]), 1)
    topic = await app.topic(partitions=2, retention_ms="3600000")
    again = await app.admin.create_topics([NewTopic(topic, 2, 1)])
    expect("made twice", for_code(again.topic_errors[0][1]), TopicAlreadyExistsError)

    async def retention():
        [answer] = await app.admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        [(error, _, _, _, entries)] = answer.resources
        expect("error", error, 0)
        return next(entry[1] for entry in entries if entry[0] == "retention.ms")

    expect("retention.ms", await retention(), "3600000")
    change = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "7200000"})
    [altered] = await app.admin.alter_configs([change])
    expect("error", altered.resources[0][0], 0)
    await eventually("retention.ms", retention, "7200000")
    grown = await app.admin.create_partitions({topic: NewPartitions(4)})
    expect("error", grown.topic_errors[0][1], 0)
    await eventually("partitions", lambda: app.partitions(topic), 4)

    await write(await app.plain(), topic, [str(n) for n in range(10)])
    place = TopicPartition(topic, 0)
    expect("low watermark", await app.admin.delete_records({place: RecordsToDelete(4)}), {place: 4})
    expect("records left", await app.read(topic), [[str(n) for n in range(4, 10)]])

    group = app.id()
    consumer = await app.reader(topics=[topic], group_id=group, client_id="member")
    await consumer.getone()
    await consumer.commit({place: 6})
    listed = await app.admin.list_consumer_groups()
    expect("listed", [kind for name, kind in listed if name == group], ["consumer"])
    [described] = await app.admin.describe_consumer_groups([group])
    [found] = described.groups
    expect("described", (found[1], found[2], [member[1] for member in found[5]]), (group, "Stable", ["member"]))
    expect("offset", (await app.admin.list_consumer_group_offsets(group))[place].offset, 6)

    deleted = await app.admin.delete_topics([topic])
    expect("errors", [error for _, error in deleted.topic_error_codes], [0])
    again = await app.admin.delete_topics([topic])
    expect("deleted twice", for_code(again.topic_error_codes[0][1]), UnknownTopicOrPartitionError)
    return "topics, configs, partitions, records, groups"


SCENARIOS = {"commit": commit, "abort": abort, "offsets": offsets, "isolation": isolation, "fencing": fencing,
             "timeout": timeout, "idempotence": idempotence, "admin": administration}


async def main():
    print(f"version aiokafka {aiokafka.__version__}", flush=True)
    for name in sys.argv[1:] or SCENARIOS:
        app = App(name)
        await app.admin.start()
        try:
            figures = await asyncio.wait_for(SCENARIOS[name](app), 3 * WAIT_S)
            print("pass", name, figures, flush=True)
        except Exception as failure:
            print("FAIL", name, " ".join(repr(failure).split()), flush=True)
        await app.close()
    print("end", flush=True)


if __name__ == "__main__":
    asyncio.run(main())

package conformance;

import static conformance.Clients.COMMITTED;
import static conformance.Clients.UNCOMMITTED;
import static conformance.Clients.end;
import static conformance.Clients.owner;
import static conformance.Clients.put;
import static conformance.Clients.read;
import static conformance.Scenarios.same;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** What becomes visible, and when. */
final class Transactions {
    private Transactions() {}

    /** Transactions over three partitions without a pause between them (C-27, C-46). */
    static String commit() throws Exception {
        String topic = Clients.topic("commit", 3);
        int transactions = 100;
        try (Producer<String, String> producer = owner(topic)) {
            for (int n = 0; n < transactions; n++) {
                producer.beginTransaction();
                for (int partition = 0; partition < 3; partition++) {
                    producer.send(new ProducerRecord<>(topic, partition, null, "a" + n));
                    producer.send(new ProducerRecord<>(topic, partition, null, "b" + n));
                }
                producer.commitTransaction();
            }
        }
        List<String> expected = new ArrayList<>();
        for (int n = 0; n < transactions; n++) {
            expected.addAll(List.of("a" + n, "b" + n));
        }
        for (int partition = 0; partition < 3; partition++) {
            same(expected, read(COMMITTED, topic, partition), "partition " + partition);
            // Two records and a marker each.
            same(3L * transactions, end(COMMITTED, topic, partition), "last stable offset");
            same(3L * transactions, end(UNCOMMITTED, topic, partition), "high watermark");
        }
        return transactions + " transactions";
    }

    /** An aborted transaction, an empty one, and a committed one by the same producer (C-03, C-10, C-21). */
    static String abort() throws Exception {
        String topic = Clients.topic("abort", 1);
        try (Producer<String, String> producer = owner(topic)) {
            producer.beginTransaction();
            put(producer, topic, 0, "no-1", "no-2", "no-3");
            producer.abortTransaction();
            producer.beginTransaction();
            producer.abortTransaction();
            producer.beginTransaction();
            put(producer, topic, 0, "yes-1", "yes-2", "yes-3");
            producer.commitTransaction();
        }
        same(List.of("yes-1", "yes-2", "yes-3"), read(COMMITTED, topic, 0), COMMITTED);
        same(List.of("no-1", "no-2", "no-3", "yes-1", "yes-2", "yes-3"), read(UNCOMMITTED, topic, 0), UNCOMMITTED);
        same(8L, end(COMMITTED, topic, 0), "last stable offset");
        return "";
    }

    /** Three producers on one partition: one aborts around all that the others commit and abort (C-06). */
    static String interleaved() throws Exception {
        String topic = Clients.topic("interleaved", 1);
        try (Producer<String, String> first = owner(topic + "-1");
                Producer<String, String> around = owner(topic + "-2");
                Producer<String, String> last = owner(topic + "-3")) {
            first.beginTransaction();
            around.beginTransaction();
            last.beginTransaction();
            put(first, topic, 0, "yes-1");
            first.commitTransaction();
            put(around, topic, 0, "no-1");
            first.beginTransaction();
            put(first, topic, 0, "no-2");
            put(last, topic, 0, "yes-2");
            first.abortTransaction();
            first.beginTransaction();
            put(first, topic, 0, "yes-3");
            put(around, topic, 0, "no-3");
            first.commitTransaction();
            around.abortTransaction();
            put(last, topic, 0, "yes-4");
            last.commitTransaction();
        }
        same(List.of("yes-1", "yes-2", "yes-3", "yes-4"), read(COMMITTED, topic, 0), COMMITTED);
        same(7, read(UNCOMMITTED, topic, 0).size(), "records in the log");
        return "";
    }

    /** An open transaction holds a reader back, records after it that are committed too (C-02, C-08). */
    static String isolation() throws Exception {
        String topic = Clients.topic("isolation", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Producer<String, String> plain = Clients.producer(Map.of());
                Producer<String, String> open = owner(topic);
                Consumer<String, String> reader =
                        Clients.consumer(Map.of("isolation.level", COMMITTED, "fetch.max.wait.ms", 200))) {
            reader.assign(List.of(partition));
            put(plain, topic, 0, "before-1", "before-2", "before-3");
            open.beginTransaction();
            put(open, topic, 0, "inside");
            put(plain, topic, 0, "after");
            same(3L, end(COMMITTED, topic, 0), "last stable offset");
            same(5L, end(UNCOMMITTED, topic, 0), "high watermark");

            List<String> seen = new ArrayList<>();
            Scenarios.until("what stands before it", Duration.ofSeconds(20), () -> drain(reader, seen).size() >= 3);
            // Two waits more, each long enough for the broker to have answered.
            drain(reader, seen);
            drain(reader, seen);
            same(List.of("before-1", "before-2", "before-3"), seen, "while it is open");
            same(3L, reader.position(partition), "position");

            open.commitTransaction();
            Scenarios.until("the rest", Duration.ofSeconds(20), () -> drain(reader, seen).size() >= 5);
            same(List.of("before-1", "before-2", "before-3", "inside", "after"), seen, "when it is committed");

            open.beginTransaction();
            put(open, topic, 0, "never");
            drain(reader, seen);
            open.abortTransaction();
            put(plain, topic, 0, "last");
            Scenarios.until("what follows", Duration.ofSeconds(20), () -> drain(reader, seen).size() >= 6);
            same(List.of("before-1", "before-2", "before-3", "inside", "after", "last"), seen, "when it is aborted");
        }
        return "";
    }

    private static List<String> drain(Consumer<String, String> reader, List<String> into) {
        for (ConsumerRecord<String, String> record : reader.poll(Duration.ofMillis(500))) {
            into.add(record.value());
        }
        return into;
    }
}

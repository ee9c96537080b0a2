package conformance;

import static conformance.Clients.COMMITTED;
import static conformance.Clients.UNCOMMITTED;
import static conformance.Clients.end;
import static conformance.Clients.owner;
import static conformance.Clients.put;
import static conformance.Clients.read;
import static conformance.Scenarios.refused;
import static conformance.Scenarios.same;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** One owner of a transactional id at a time. */
final class Owners {
    private Owners() {}

    /** Each way in which an old owner can notice (C-29): the error that this client makes of the broker's code. */
    static String fencing() throws Exception {
        String topic = Clients.topic("fencing", 1);
        Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(1));
        ConsumerGroupMetadata group;
        try (Consumer<String, String> reader = Clients.member(topic)) {
            group = reader.groupMetadata();
        }
        fenced(topic, ProducerFencedException.class, old -> old.commitTransaction());
        fenced(topic, ProducerFencedException.class, old -> old.abortTransaction());
        fenced(topic, ProducerFencedException.class, old -> old.sendOffsetsToTransaction(offsets, group));
        fenced(topic, InvalidProducerEpochException.class, old -> put(old, topic, 0, "old again"));
        same(List.of("new", "new", "new", "new"), read(COMMITTED, topic, 0), COMMITTED);
        same(8, read(UNCOMMITTED, topic, 0).size(), "records in the log");
        return "commit, abort and offsets: ProducerFenced; send: InvalidProducerEpoch";
    }

    @FunctionalInterface
    private interface Deed {
        void by(Producer<String, String> producer) throws Exception;
    }

    private static void fenced(String topic, Class<? extends Exception> error, Deed deed) throws Exception {
        try (Producer<String, String> old = owner(topic)) {
            old.beginTransaction();
            put(old, topic, 0, "old");
            try (Producer<String, String> next = owner(topic)) {
                next.beginTransaction();
                refused(error, () -> deed.by(old));
                // What the old one did has not touched this.
                put(next, topic, 0, "new");
                next.commitTransaction();
            }
        }
    }

    /** A producer that vanishes within a transaction: the next owner's start ends it at once (C-13). */
    static String takeover() throws Exception {
        String topic = Clients.topic("takeover", 1);
        Producer<String, String> vanished = owner(topic);
        vanished.beginTransaction();
        put(vanished, topic, 0, "lost");
        long began = System.nanoTime();
        try (Producer<String, String> next = owner(topic)) {
            long ms = Duration.ofNanos(System.nanoTime() - began).toMillis();
            same(2L, end(COMMITTED, topic, 0), "the last stable offset, behind the marker");
            next.beginTransaction();
            put(next, topic, 0, "kept");
            next.commitTransaction();
            same(List.of("kept"), read(COMMITTED, topic, 0), COMMITTED);
            return "start of the next owner " + ms + " ms";
        } finally {
            vanished.close(Duration.ZERO);
        }
    }

    /** Left open longer than its timeout: the broker aborts it, and its producer is refused (C-12, C-18, C-57). */
    static String timeout() throws Exception {
        String topic = Clients.topic("timeout", 1);
        Map<String, Object> settings = Map.of("transactional.id", topic, "transaction.timeout.ms", 1500);
        long ms;
        try (Producer<String, String> late = Clients.producer(settings)) {
            late.initTransactions();
            late.beginTransaction();
            put(late, topic, 0, "late");
            long began = System.nanoTime();
            same(0L, end(COMMITTED, topic, 0), "last stable offset");
            Scenarios.until("the abort", Duration.ofSeconds(40), () -> end(COMMITTED, topic, 0) == 2);
            ms = Duration.ofNanos(System.nanoTime() - began).toMillis();
            Scenarios.check(ms >= 1000, "aborted before its time: after " + ms + " ms");
            refused(InvalidProducerEpochException.class, () -> put(late, topic, 0, "later"));
            refused(KafkaException.class, late::commitTransaction);
        }
        same(List.of(), read(COMMITTED, topic, 0), COMMITTED);
        same(List.of("late"), read(UNCOMMITTED, topic, 0), UNCOMMITTED);
        try (Producer<String, String> next = owner(topic)) {
            next.beginTransaction();
            put(next, topic, 0, "next");
            next.commitTransaction();
        }
        same(List.of("next"), read(COMMITTED, topic, 0), "of the next owner");
        return "aborted after " + ms + " ms";
    }
}

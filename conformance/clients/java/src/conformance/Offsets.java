package conformance;

import static conformance.Clients.COMMITTED;
import static conformance.Clients.UNCOMMITTED;
import static conformance.Clients.member;
import static conformance.Clients.owner;
import static conformance.Clients.put;
import static conformance.Clients.read;
import static conformance.Scenarios.same;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Consume, process, produce: a group's offsets are part of the transaction. */
final class Offsets {
    private Offsets() {}

    /** Not with an abort, with a commit (C-14), for a group without members (C-41), and not by one who has left. */
    static String moveWithTheTransaction() throws Exception {
        String topic = Clients.topic("offsets", 1);
        TopicPartition input = new TopicPartition(topic, 0);
        Map<TopicPartition, OffsetAndMetadata> five = Map.of(input, new OffsetAndMetadata(5, "five"));
        Map<TopicPartition, OffsetAndMetadata> eight = Map.of(input, new OffsetAndMetadata(8, "eight"));
        try (Producer<String, String> producer = owner(topic);
                Consumer<String, String> reader = member(topic)) {
            ConsumerGroupMetadata group = reader.groupMetadata();
            reader.commitSync(five);
            producer.beginTransaction();
            put(producer, topic, 0, "no");
            producer.sendOffsetsToTransaction(eight, group);
            producer.abortTransaction();
            same(five, reader.committed(Set.of(input)), "after the abort");

            producer.beginTransaction();
            put(producer, topic, 0, "yes");
            producer.sendOffsetsToTransaction(eight, group);
            producer.commitTransaction();
            same(eight, reader.committed(Set.of(input)), "after the commit");

            ConsumerGroupMetadata left = metadataOfOneWhoLeft(topic);
            producer.beginTransaction();
            Scenarios.refused(CommitFailedException.class, () -> producer.sendOffsetsToTransaction(five, left));
            producer.abortTransaction();
            same(eight, reader.committed(Set.of(input)), "after one who left the group has tried");
        }
        same(List.of("yes"), read(COMMITTED, topic, 0), "records");
        return "";
    }

    private static ConsumerGroupMetadata metadataOfOneWhoLeft(String topic) throws Exception {
        try (Consumer<String, String> reader = member(topic)) {
            reader.subscribe(List.of(topic));
            Scenarios.until("the assignment", Duration.ofSeconds(30), () -> {
                reader.poll(Duration.ofMillis(100));
                return !reader.assignment().isEmpty();
            });
            return reader.groupMetadata();
        }
    }

    /** The loop that an application runs; every second transaction is aborted and its records are read again (C-58). */
    static String everyRecordOnce() throws Exception {
        String input = Clients.topic("loop-in", 2);
        String output = Clients.topic("loop-out", 1);
        int records = 500;
        try (Producer<String, String> feeder = Clients.producer(Map.of())) {
            for (int n = 0; n < records; n++) {
                feeder.send(new ProducerRecord<>(input, n % 2, null, Integer.toString(n)));
            }
        }
        Map<String, Object> settings =
                Map.of("group.id", input, "isolation.level", COMMITTED, "max.poll.records", 40);
        int transactions = 0;
        int copied = 0;
        try (Producer<String, String> producer = owner(input);
                Consumer<String, String> reader = Clients.consumer(settings)) {
            reader.subscribe(List.of(input));
            while (copied < records) {
                ConsumerRecords<String, String> polled = reader.poll(Duration.ofMillis(500));
                if (polled.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
                for (ConsumerRecord<String, String> record : polled) {
                    producer.send(new ProducerRecord<>(output, 0, null, record.value()));
                    next.put(
                            new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(next, reader.groupMetadata());
                if (transactions++ % 2 == 0) {
                    // Or the producer drops what it has not sent yet, and there is nothing to be aborted.
                    producer.flush();
                    producer.abortTransaction();
                    rewind(reader);
                } else {
                    producer.commitTransaction();
                    copied += polled.count();
                }
            }
        }
        List<Integer> expected = IntStream.range(0, records).boxed().toList();
        List<Integer> seen = read(COMMITTED, output, 0).stream().map(Integer::valueOf).sorted().toList();
        same(expected, seen, "what was copied");
        int written = read(UNCOMMITTED, output, 0).size();
        Scenarios.check(written > records, "nothing was aborted: " + written + " records in the log");
        return transactions + " transactions, " + (written - records) + " aborted records";
    }

    /** An abort moves no position; the application goes back to what is committed. */
    private static void rewind(Consumer<String, String> reader) {
        Map<TopicPartition, OffsetAndMetadata> committed = reader.committed(reader.assignment());
        for (TopicPartition partition : reader.assignment()) {
            OffsetAndMetadata offset = committed.get(partition);
            reader.seek(partition, offset == null ? 0 : offset.offset());
        }
    }
}

package conformance;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Reads what the application has written. */
final class Reader {
    private Reader() {}

    record Count(String word, long value) {}

    /** All that is committed now; each partition in its order. */
    static List<Count> committed(String topic) {
        return read("read_committed", topic);
    }

    /** How many records there are that nobody may see. */
    static int aborted(String topic) {
        return read("read_uncommitted", topic).size() - committed(topic).size();
    }

    private static List<Count> read(String isolation, String topic) {
        List<Count> counts = new ArrayList<>();
        try (Consumer<String, Long> consumer = consumer(isolation)) {
            List<TopicPartition> all = partitions(topic);
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                consumer.poll(Duration.ofMillis(200))
                        .forEach(record -> counts.add(new Count(record.key(), record.value())));
            }
        }
        return counts;
    }

    /** How much is written, committed or not, markers included. */
    static long written(String topic) {
        try (Consumer<String, Long> consumer = consumer("read_uncommitted")) {
            return consumer.endOffsets(partitions(topic)).values().stream().mapToLong(Long::longValue).sum();
        }
    }

    private static List<TopicPartition> partitions(String topic) {
        return List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
    }

    private static Consumer<String, Long> consumer(String isolation) {
        return new KafkaConsumer<>(
                Map.of("bootstrap.servers", Scenarios.BOOTSTRAP, "isolation.level", isolation),
                new StringDeserializer(), new LongDeserializer());
    }
}

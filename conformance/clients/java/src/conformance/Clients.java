package conformance;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Clients as an application makes them, and what every scenario does with them. */
final class Clients {
    static final String COMMITTED = "read_committed";
    static final String UNCOMMITTED = "read_uncommitted";

    private Clients() {}

    /** A name of this run alone. */
    static String named(String what) {
        return what + "-" + Scenarios.RUN;
    }

    static Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", Scenarios.BOOTSTRAP));
    }

    static String topic(String what, int partitions) throws ExecutionException, InterruptedException {
        String topic = named(what);
        try (Admin admin = admin()) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        }
        return topic;
    }

    /** An idempotent producer, or a transactional one that still has to be initialised. */
    static Producer<String, String> producer(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>();
        all.put("bootstrap.servers", Scenarios.BOOTSTRAP);
        all.put("enable.idempotence", true);
        all.putAll(settings);
        return new KafkaProducer<>(all, new StringSerializer(), new StringSerializer());
    }

    /** The next owner of this transactional id, ready to begin. */
    static Producer<String, String> owner(String id) {
        Producer<String, String> producer = producer(Map.of("transactional.id", id));
        producer.initTransactions();
        return producer;
    }

    static Consumer<String, String> consumer(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>();
        all.put("bootstrap.servers", Scenarios.BOOTSTRAP);
        all.put("auto.offset.reset", "earliest");
        all.put("enable.auto.commit", false);
        all.putAll(settings);
        return new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer());
    }

    static Consumer<String, String> member(String group) {
        return consumer(Map.of("group.id", group, "isolation.level", COMMITTED));
    }

    /** Sends, and waits until the broker has it. */
    static void put(Producer<String, String> producer, String topic, int partition, String... values)
            throws ExecutionException, InterruptedException {
        for (String value : values) {
            producer.send(new ProducerRecord<>(topic, partition, null, value)).get();
        }
    }

    /** The end of a partition for this level: the last stable offset for read_committed. */
    static long end(String isolation, String topic, int partition) {
        TopicPartition of = new TopicPartition(topic, partition);
        try (Consumer<String, String> consumer = consumer(Map.of("isolation.level", isolation))) {
            return consumer.endOffsets(List.of(of)).get(of);
        }
    }

    /** All that a reader of this level is given, from the beginning to what is the end for it, markers stepped over. */
    static List<String> read(String isolation, String topic, int... partitions) {
        List<TopicPartition> all = IntStream.of(partitions).mapToObj(n -> new TopicPartition(topic, n)).toList();
        List<String> values = new ArrayList<>();
        try (Consumer<String, String> consumer = consumer(Map.of("isolation.level", isolation))) {
            consumer.assign(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            long limit = System.nanoTime() + Duration.ofSeconds(30).toNanos();
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    values.add(record.value());
                }
                Scenarios.check(System.nanoTime() < limit, "a reader of " + topic + " never came to " + ends);
            }
        }
        return values;
    }
}

package conformance;

import static conformance.Scenarios.RUN;
import static conformance.Scenarios.check;
import static conformance.Scenarios.refused;
import static conformance.Scenarios.same;
import static conformance.Scenarios.scenario;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.kafka.core.KafkaTemplate;

/** Starts the application, gives it work and looks at what is committed. */
public final class Main {
    private static final int ORDERS = 200;

    private final Ledger ledger;
    private final Listeners listeners;
    private final KafkaTemplate<String, String> template;

    private Main(AnnotationConfigApplicationContext context) {
        ledger = context.getBean(Ledger.class);
        listeners = context.getBean(Listeners.class);
        @SuppressWarnings("unchecked")
        KafkaTemplate<String, String> made = context.getBean(KafkaTemplate.class);
        template = made;
    }

    public static void main(String[] args) {
        Scenarios.version("spring-kafka", KafkaTemplate.class.getPackage().getImplementationVersion());
        Scenarios.limit(Duration.ofSeconds(90));
        System.setProperty("run", RUN);
        try (var context = new AnnotationConfigApplicationContext(Application.class)) {
            Main run = new Main(context);
            scenario("commit", run::commit);
            scenario("abort", run::abort);
            scenario("offsets", run::rolledBackAndTriedAgain);
            scenario("batch", run::batch);
        }
        Scenarios.end();
    }

    /** A transactional method, and a transaction of the template alone. */
    private String commit() {
        String topic = "written-" + RUN;
        ledger.write(List.of("a", "b"), false);
        template.executeInTransaction(operations -> operations.send(topic, 0, null, "c"));
        same(List.of("a", "b", "c"), read("read_committed", topic, 0), "first partition");
        same(List.of("a", "b"), read("read_committed", topic, 1), "second partition");
        return "";
    }

    /** An exception rolls back. */
    private String abort() throws Exception {
        String topic = "written-" + RUN;
        refused(IllegalStateException.class, () -> ledger.write(List.of("never"), true));
        refused(IllegalStateException.class, () -> template.executeInTransaction(operations -> {
            operations.send(topic, 0, null, "never");
            operations.flush();
            throw new IllegalStateException("on purpose");
        }));
        ledger.write(List.of("d"), false);
        same(List.of("a", "b", "c", "d"), read("read_committed", topic, 0), "first partition");
        same(List.of("a", "b", "d"), read("read_committed", topic, 1), "second partition");
        same(List.of("a", "b", "c", "never", "never", "d"), read("read_uncommitted", topic, 0), "its log");
        return "";
    }

    /** Listener containers: outputs once, offsets with them, and what never works among the dead letters (C-14). */
    private String rolledBackAndTriedAgain() throws Exception {
        String orders = "orders-" + RUN;
        String shipped = "shipped-" + RUN;
        List<List<String>> expected = fill(orders, 7);
        List<List<String>> poison = split(expected, true);
        List<List<String>> good = split(expected, false);
        awaitOffsets(orders, orders);
        for (int partition = 0; partition < 2; partition++) {
            same(good.get(partition), read("read_committed", shipped, partition), "shipped");
            same(poison.get(partition), read("read_committed", orders + "-dlt", partition), "dead letters");
        }
        int bad = poison.get(0).size() + poison.get(1).size();
        int failures = listeners.failures.get();
        check(failures > bad * Application.ATTEMPTS, "only " + failures + " failures");
        int logged = read("read_uncommitted", shipped, 0).size() + read("read_uncommitted", shipped, 1).size();
        same(ORDERS - bad + failures, logged, "tries in the log");
        return ORDERS + " records, " + failures + " roll-backs, " + bad + " dead letters";
    }

    private String batch() throws Exception {
        String batches = "batches-" + RUN;
        List<List<String>> expected = fill(batches, 0);
        awaitOffsets(batches, batches);
        for (int partition = 0; partition < 2; partition++) {
            same(expected.get(partition), read("read_committed", "packed-" + RUN, partition), "packed");
        }
        check(listeners.failedBatches.get() > 0, "nothing was rolled back");
        return ORDERS + " records, " + listeners.failedBatches.get() + " roll-backs";
    }

    /** Sends orders in one transaction and gives what is in each partition; every one of `poison` is bad. */
    private List<List<String>> fill(String topic, int poison) {
        List<List<String>> sent = List.of(new ArrayList<>(), new ArrayList<>());
        template.executeInTransaction(operations -> {
            for (int n = 0; n < ORDERS; n++) {
                String value = (poison > 0 && n % poison == 3 ? "poison-" : "order-") + n;
                operations.send(topic, n % 2, null, value);
                sent.get(n % 2).add(value);
            }
            return null;
        });
        return sent;
    }

    private static List<List<String>> split(List<List<String>> all, boolean poison) {
        return all.stream()
                .map(values -> values.stream().filter(value -> value.startsWith("poison") == poison).toList())
                .toList();
    }

    /** Until the group has done with the topic: its offsets are behind every record. */
    private static void awaitOffsets(String group, String topic) throws Exception {
        List<TopicPartition> both = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
        try (Consumer<String, String> consumer = consumer("read_committed", group)) {
            Scenarios.until("the group is done", Duration.ofSeconds(60), () -> {
                Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(Set.copyOf(both));
                // A container commits a position behind a record; the marker of the transaction stands after the last.
                return both.stream().allMatch(partition ->
                        committed.get(partition) != null && committed.get(partition).offset() >= ORDERS / 2);
            });
        }
    }

    private static List<String> read(String isolation, String topic, int number) {
        TopicPartition partition = new TopicPartition(topic, number);
        List<String> values = new ArrayList<>();
        try (Consumer<String, String> consumer = consumer(isolation, "reader-" + RUN)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> values.add(record.value()));
            }
        }
        return values;
    }

    private static Consumer<String, String> consumer(String isolation, String group) {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", Scenarios.BOOTSTRAP, "isolation.level", isolation, "group.id", group,
                "enable.auto.commit", false);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }
}

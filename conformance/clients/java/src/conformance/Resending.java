package conformance;

import static conformance.Clients.COMMITTED;
import static conformance.Clients.read;
import static conformance.Scenarios.same;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/** What is sent again is stored once. */
final class Resending {
    private Resending() {}

    private static final Map<String, Object> SMALL_BATCHES = Map.of(
            "batch.size", 200, "linger.ms", 0, "max.in.flight.requests.per.connection", 5);

    /** Many batches on the way at once; the broker's memory of the producer is what was sent. */
    static String idempotence() throws Exception {
        String topic = Clients.topic("idempotence", 1);
        int records = 2000;
        try (Producer<String, String> producer = Clients.producer(SMALL_BATCHES);
                Admin admin = Clients.admin()) {
            acknowledged(send(producer, topic, 0, records));
            TopicPartition partition = new TopicPartition(topic, 0);
            List<ProducerState> producers =
                    admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers();
            same(1, producers.size(), "producers of the partition");
            same(records - 1, producers.get(0).lastSequence(), "last sequence");
            same(0, producers.get(0).producerEpoch(), "epoch");
            same(true, producers.get(0).currentTransactionStartOffset().isEmpty(), "no transaction");
        }
        same(numbers(records), read(COMMITTED, topic, 0), "records in their order");
        return records + " records";
    }

    /**
     * The broker is stopped for longer than a request may take: the client gives the request up, connects again and
     * sends it again, and the broker finds both when it goes on. Needs the broker's process.
     */
    static void whileTheBrokerIsPaused() {
        String broker = System.getenv("BROKER_PID");
        if (broker == null || broker.isEmpty()) {
            Scenarios.skip("resend", "the broker's process is not known");
            Scenarios.skip("resend-commit", "the broker's process is not known");
            return;
        }
        Scenarios.scenario("resend", () -> resend(broker));
        Scenarios.scenario("resend-commit", () -> resendCommit(broker));
    }

    private static String resend(String broker) throws Exception {
        String topic = Clients.topic("resend", 1);
        double retries;
        try (Producer<String, String> producer = impatient(Map.of())) {
            acknowledged(send(producer, topic, 0, 50));
            List<Future<RecordMetadata>> sent = paused(broker, () -> send(producer, topic, 50, 200));
            acknowledged(sent);
            retries = producer.metrics().entrySet().stream()
                    .filter(metric -> metric.getKey().name().equals("record-retry-total")
                            && metric.getKey().group().equals("producer-metrics"))
                    .mapToDouble(metric -> (Double) metric.getValue().metricValue())
                    .sum();
        }
        Scenarios.check(retries > 0, "nothing was sent again");
        same(numbers(200), read(COMMITTED, topic, 0), "records in their order");
        return (long) retries + " records sent again";
    }

    /** The same with the end of a transaction: decided once, answered with success (C-16). */
    private static String resendCommit(String broker) throws Exception {
        String topic = Clients.topic("resend-commit", 1);
        try (Producer<String, String> producer = impatient(Map.of("transactional.id", topic))) {
            producer.initTransactions();
            for (int n = 0; n < 2; n++) {
                producer.beginTransaction();
                Clients.put(producer, topic, 0, "value-" + n);
                paused(broker, () -> {
                    producer.commitTransaction();
                    return null;
                });
            }
        }
        same(List.of("value-0", "value-1"), read(COMMITTED, topic, 0), COMMITTED);
        same(4L, Clients.end(COMMITTED, topic, 0), "one marker each");
        return "2 commits";
    }

    private static Producer<String, String> impatient(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(SMALL_BATCHES);
        all.put("request.timeout.ms", 1000);
        all.put("delivery.timeout.ms", 60_000);
        all.put("max.block.ms", 60_000);
        all.putAll(settings);
        return Clients.producer(all);
    }

    /** Does it while the broker stands still for two seconds and a half. */
    private static <T> T paused(String broker, Callable<T> deed) throws Exception {
        Thread on = new Thread(() -> {
            try {
                TimeUnit.MILLISECONDS.sleep(2500);
                signal("-CONT", broker);
            } catch (Exception stopped) {
                throw new IllegalStateException(stopped);
            }
        });
        signal("-STOP", broker);
        on.start();
        try {
            return deed.call();
        } finally {
            on.join();
        }
    }

    private static void signal(String signal, String process) throws Exception {
        same(0, new ProcessBuilder("kill", signal, process).inheritIO().start().waitFor(), "kill " + signal);
    }

    private static List<Future<RecordMetadata>> send(
            Producer<String, String> producer, String topic, int from, int to) {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int n = from; n < to; n++) {
            sent.add(producer.send(new ProducerRecord<>(topic, 0, null, Integer.toString(n))));
        }
        return sent;
    }

    private static void acknowledged(List<Future<RecordMetadata>> sent) throws Exception {
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
    }

    private static List<String> numbers(int count) {
        return IntStream.range(0, count).mapToObj(Integer::toString).toList();
    }
}

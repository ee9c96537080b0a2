package conformance;

import static conformance.Scenarios.BOOTSTRAP;
import static conformance.Scenarios.RUN;
import static conformance.Scenarios.check;
import static conformance.Scenarios.same;
import static conformance.Scenarios.scenario;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** Records are copied by transactions while the copiers are killed and started again; each has to arrive once. */
public final class Main {
    private static final int RECORDS = 20000;
    private static final int PARTITIONS = 2;
    private static final int KILLS = 5;

    /** The value of a record behind all others. */
    private static final Integer END = -1;

    private Main() {}

    public static void main(String[] args) {
        Scenarios.version("kafka-tools", AppInfoParser.getVersion());
        Scenarios.limit(Duration.ofSeconds(300));
        scenario("bounce", () -> bounce("bounce"));
        scenario("bounce-group", () -> bounce("bounce-group", "--group-mode", "--use-group-metadata"));
        Scenarios.end();
    }

    /** Two copiers, each with its own id, that abort at random; one or the other is killed (C-13, C-14). */
    private static String bounce(String what, String... mode) throws Exception {
        String input = what + "-in-" + RUN;
        String output = what + "-out-" + RUN;
        topics(input, output);
        fill(input);
        int killed = 0;
        List<Copier> copiers = new ArrayList<>();
        try {
            for (int n = 0; n < PARTITIONS; n++) {
                copiers.add(new Copier(input, output, n, mode));
                copiers.get(n).start();
            }
            for (int kill = 0; kill < KILLS; kill++) {
                Copier copier = copiers.get(kill % PARTITIONS);
                Scenarios.until("progress of a copier", Duration.ofSeconds(90), () -> {
                    return copier.copied.get() >= 100 || !copier.process.isAlive();
                });
                killed += copier.process.isAlive() ? 1 : 0;
                copier.process.kill();
                copier.start();
            }
            for (Copier copier : copiers) {
                same(0, copier.process.await(), "exit status of a copier");
            }
        } finally {
            copiers.forEach(copier -> copier.process.close());
        }
        check(killed >= 3, "only " + killed + " copiers were killed at work");
        checkOutput(output);
        return RECORDS + " records, " + killed + " killed at work, " + (written(output) - RECORDS - PARTITIONS)
                + " aborted records and markers";
    }

    private static void topics(String... names) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", BOOTSTRAP))) {
            List<NewTopic> topics =
                    List.of(names).stream().map(name -> new NewTopic(name, PARTITIONS, (short) 1)).toList();
            admin.createTopics(topics).all().get();
        }
    }

    private static void fill(String topic) throws Exception {
        AtomicLong acknowledged = new AtomicLong();
        try (Tool producer = new Tool(
                line -> acknowledged.addAndGet(is(line, "producer_send_success") ? 1 : 0),
                "VerifiableProducer", "--bootstrap-server", BOOTSTRAP, "--topic", topic, "--max-messages",
                Integer.toString(RECORDS), "--repeating-keys", "100")) {
            same(0, producer.await(), "exit status of the producer");
        }
        same((long) RECORDS, acknowledged.get(), "acknowledged records");
    }

    /** Each once, and in a partition in the order in which they were produced. */
    private static void checkOutput(String topic) throws Exception {
        mark(topic);
        List<List<Integer>> seen = new ArrayList<>();
        IntStream.range(0, PARTITIONS).forEach(n -> seen.add(Collections.synchronizedList(new ArrayList<>())));
        Path settings = Files.createTempFile("consumer", ".properties");
        Files.writeString(settings, "isolation.level=read_committed\n");
        try (Tool consumer = new Tool(
                line -> {
                    if (is(line, "record_data")) {
                        seen.get(line.get("partition").asInt()).add(line.get("value").asInt());
                    }
                },
                "VerifiableConsumer", "--bootstrap-server", BOOTSTRAP, "--topic", topic, "--group-id", topic,
                "--command-config", settings.toString(), "--verbose")) {
            Scenarios.until("the end of each partition", Duration.ofSeconds(60), () -> {
                return seen.stream().allMatch(partition -> partition.contains(END));
            });
            consumer.kill();
        } finally {
            Files.delete(settings);
        }
        List<Integer> all = new ArrayList<>();
        for (List<Integer> partition : seen) {
            same(END, partition.remove(partition.size() - 1), "the last record of a partition");
            check(partition.size() > RECORDS / 10, "a partition has only " + partition.size() + " records");
            same(partition.stream().sorted().toList(), partition, "order in a partition");
            all.addAll(partition);
        }
        Collections.sort(all);
        same(IntStream.range(0, RECORDS).boxed().toList(), all, "records in the output");
    }

    /** Writes a last record to each partition, by which a reader knows that it has seen everything. */
    private static void mark(String topic) throws Exception {
        try (Producer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", BOOTSTRAP), new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < PARTITIONS; n++) {
                producer.send(new ProducerRecord<>(topic, n, null, Integer.toString(END))).get();
            }
        }
    }

    private static boolean is(JsonNode line, String name) {
        return line.has("name") && line.get("name").asText().equals(name);
    }

    private static long written(String topic) throws Exception {
        long written = 0;
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", BOOTSTRAP))) {
            for (int n = 0; n < PARTITIONS; n++) {
                TopicPartition partition = new TopicPartition(topic, n);
                written += admin.listOffsets(Map.of(partition, OffsetSpec.latest()))
                        .partitionResult(partition).get().offset();
            }
        }
        return written;
    }
}

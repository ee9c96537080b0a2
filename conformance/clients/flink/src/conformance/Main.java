package conformance;

import static conformance.Scenarios.BOOTSTRAP;
import static conformance.Scenarios.RUN;
import static conformance.Scenarios.check;
import static conformance.Scenarios.same;
import static conformance.Scenarios.scenario;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Starts the job, lets it fail or kills it, and looks at what is committed in the end (C-53). */
public final class Main {
    private static final int RECORDS = 2000;

    private Main() {}

    public static void main(String[] args) {
        Scenarios.version("flink", EnvironmentInformation.getVersion());
        Scenarios.limit(Duration.ofSeconds(240));
        for (String strategy : List.of("INCREMENTING", "POOLING")) {
            scenario("failure-" + strategy.toLowerCase(), () -> failure(strategy));
            scenario("restore-" + strategy.toLowerCase(), () -> restore(strategy));
        }
        Scenarios.end();
    }

    /** A part of the job fails between two checkpoints; Flink starts it again from the last one. */
    private static String failure(String strategy) throws Exception {
        String output = topics("failure-" + strategy);
        Path checkpoints = Files.createTempDirectory("checkpoints");
        try {
            finish(start(output, strategy, checkpoints, true, ""), output);
        } finally {
            delete(checkpoints);
        }
        return checkOutput(output);
    }

    /** The whole process is killed with a transaction open; another is started from the last checkpoint. */
    private static String restore(String strategy) throws Exception {
        String output = topics("restore-" + strategy);
        Path checkpoints = Files.createTempDirectory("checkpoints");
        try {
            Process killed = start(output, strategy, checkpoints, false, "");
            try {
                Scenarios.until("several checkpoints and an open transaction", Duration.ofSeconds(90), () -> {
                    check(killed.isAlive(), "the job ended by itself");
                    long committed = end("read_committed", output);
                    return committed > 200 && end("read_uncommitted", output) > committed;
                });
            } finally {
                killed.destroyForcibly();
                killed.waitFor();
            }
            check(!ongoing(output).isEmpty(), "no transaction was left open");
            finish(start(output, strategy, checkpoints, false, newest(checkpoints).toString()), output);
        } finally {
            delete(checkpoints);
        }
        return checkOutput(output);
    }

    /** Lets a job run until all is committed, and stops it. */
    private static void finish(Process job, String output) throws Exception {
        try {
            Scenarios.until("all is committed", Duration.ofSeconds(200), () -> {
                check(job.isAlive(), "the job ended by itself");
                return read("read_committed", output).size() >= RECORDS;
            });
            job.getOutputStream().close();
            same(0, job.waitFor(), "exit status of the job");
        } finally {
            job.destroyForcibly();
        }
    }

    /** Makes input and output, fills the input, and gives the output's name. */
    private static String topics(String what) throws Exception {
        String output = what.toLowerCase() + "-" + RUN;
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", BOOTSTRAP));
                Producer<String, String> producer = new KafkaProducer<>(
                        Map.of("bootstrap.servers", BOOTSTRAP), new StringSerializer(), new StringSerializer())) {
            admin.createTopics(List.of(
                    new NewTopic(input(output), 2, (short) 1), new NewTopic(output, 2, (short) 1))).all().get();
            for (int n = 0; n < RECORDS; n++) {
                producer.send(new ProducerRecord<>(input(output), n % 2, null, Integer.toString(n)));
            }
        }
        return output;
    }

    private static String input(String output) {
        return "of-" + output;
    }

    private static Process start(String output, String strategy, Path checkpoints, boolean fail, String from)
            throws IOException {
        return Scenarios.child(new ProcessBuilder(
                        "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m",
                        "--add-opens", "java.base/java.util=ALL-UNNAMED",
                        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", System.getProperty("java.class.path"),
                        Job.class.getName(), input(output), output, strategy, checkpoints.toUri().toString(),
                        Boolean.toString(fail), from)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.INHERIT));
    }

    /** The last checkpoint that is whole. */
    private static Path newest(Path checkpoints) throws IOException {
        try (Stream<Path> all = Files.walk(checkpoints)) {
            return all.filter(path -> path.getFileName().toString().equals("_metadata"))
                    .map(Path::getParent)
                    .max(Comparator.comparingInt(path -> Integer.parseInt(path.getFileName().toString().substring(4))))
                    .orElseThrow(() -> new AssertionError("no checkpoint"))
                    .toAbsolutePath();
        }
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(path);
            }
        }
    }

    /** Every record once; no transaction lingers to hold readers back, and some were rolled back. */
    private static String checkOutput(String output) throws Exception {
        List<Integer> seen = read("read_committed", output);
        same(IntStream.range(0, RECORDS).boxed().toList(), seen, "committed records");
        same(Set.of(), ongoing(output), "open transactions");
        same(end("read_uncommitted", output), end("read_committed", output), "last stable offsets");
        int logged = read("read_uncommitted", output).size();
        check(logged > RECORDS, "nothing was rolled back");
        return RECORDS + " records, " + (logged - RECORDS) + " rolled back";
    }

    private static Set<String> ongoing(String prefix) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", BOOTSTRAP))) {
            var open = new ListTransactionsOptions().filterStates(Set.of(TransactionState.ONGOING));
            return admin.listTransactions(open).all().get().stream()
                    .map(listing -> listing.transactionalId())
                    .filter(id -> id.startsWith(prefix))
                    .collect(java.util.stream.Collectors.toSet());
        }
    }

    private static List<TopicPartition> partitions(String topic) {
        return List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
    }

    private static long end(String isolation, String topic) {
        try (Consumer<String, String> consumer = consumer(isolation)) {
            return consumer.endOffsets(partitions(topic)).values().stream().mapToLong(Long::longValue).sum();
        }
    }

    private static List<Integer> read(String isolation, String topic) {
        List<Integer> values = new ArrayList<>();
        try (Consumer<String, String> consumer = consumer(isolation)) {
            List<TopicPartition> all = partitions(topic);
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> values.add(Integer.valueOf(record.value())));
            }
        }
        values.sort(Comparator.naturalOrder());
        return values;
    }

    private static Consumer<String, String> consumer(String isolation) {
        return new KafkaConsumer<>(
                Map.of("bootstrap.servers", BOOTSTRAP, "isolation.level", isolation),
                new StringDeserializer(), new StringDeserializer());
    }
}

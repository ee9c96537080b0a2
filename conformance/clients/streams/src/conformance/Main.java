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
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** Feeds the application, kills instances of it, and compares what they counted with what was to be counted (C-55). */
public final class Main {
    private static final String APPLICATION = "words-" + RUN;
    private static final String INPUT = APPLICATION + "-lines";
    private static final String OUTPUT = APPLICATION + "-counted";
    private static final String REPARTITION = APPLICATION + "-" + WordCount.STORE + "-repartition";
    private static final String CHANGELOG = APPLICATION + "-" + WordCount.STORE + "-changelog";
    private static final int LINES = 1000;
    private static final int WORDS_A_LINE = 3;

    private final Map<String, Long> expected = new TreeMap<>();
    private final Admin admin = Admin.create(Map.of("bootstrap.servers", BOOTSTRAP));
    private final Instance first;
    private final Instance second;
    private int lines;

    private Main(Path state) {
        first = new Instance(APPLICATION, INPUT, OUTPUT, state.resolve("first"));
        second = new Instance(APPLICATION, INPUT, OUTPUT, state.resolve("second"));
    }

    public static void main(String[] args) throws IOException {
        Scenarios.version("kafka-streams", AppInfoParser.getVersion());
        Scenarios.limit(Duration.ofSeconds(120));
        Path state = Files.createTempDirectory("streams");
        Main run = new Main(state);
        try {
            scenario("word-count", run::wordCount);
            scenario("internal-topics", run::internalTopics);
            scenario("kill-restart", run::killedAndRestarted);
            scenario("kill", run::killedForGood);
            scenario("changelog", run::changelog);
        } finally {
            run.first.close();
            run.second.close();
            run.admin.close();
            delete(state);
        }
        Scenarios.end();
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(path);
            }
        }
    }

    /** Two instances share the work. */
    private String wordCount() throws Exception {
        admin.createTopics(List.of(new NewTopic(INPUT, 2, (short) 1), new NewTopic(OUTPUT, 2, (short) 1))).all().get();
        first.start();
        second.start();
        feed();
        first.awaitRunning();
        second.awaitRunning();
        awaitCounted();
        return summary();
    }

    /** What Streams made for itself, as it asked for it; what it has read of its repartition topic it deletes. */
    private String internalTopics() throws Exception {
        same(2, admin.describeTopics(List.of(REPARTITION)).allTopicNames().get().get(REPARTITION).partitions().size(),
                "partitions for repartitioning");
        same("delete", setting(REPARTITION, "cleanup.policy"), "cleanup policy of the repartition topic");
        same("-1", setting(REPARTITION, "retention.ms"), "retention of the repartition topic");
        same("compact", setting(CHANGELOG, "cleanup.policy"), "cleanup policy of the changelog");
        TopicPartition partition = new TopicPartition(REPARTITION, 0);
        Scenarios.until("what is done is deleted", Duration.ofSeconds(30), () -> {
            return admin.listOffsets(Map.of(partition, OffsetSpec.earliest())).partitionResult(partition).get().offset()
                    > 0;
        });
        return "";
    }

    private String setting(String topic, String name) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name).value();
    }

    /** One is killed in the middle and comes back, with its state and so with its transactional id. */
    private String killedAndRestarted() throws Exception {
        long before = Reader.written(OUTPUT);
        feed();
        awaitProgress(before);
        second.kill();
        second.start();
        second.awaitRunning();
        awaitCounted();
        return summary();
    }

    /** One is killed in the middle and does not come back; the other takes over what the broker has ended for it. */
    private String killedForGood() throws Exception {
        long before = Reader.written(OUTPUT);
        feed();
        awaitProgress(before);
        first.kill();
        awaitCounted();
        second.stop();
        return summary();
    }

    private void awaitProgress(long before) throws Exception {
        Scenarios.until("a third of it is written", Duration.ofSeconds(60), () -> {
            return Reader.written(OUTPUT) > before + LINES * WORDS_A_LINE / 3;
        });
    }

    /** The last count of each word in the changelog is the state of the store. */
    private String changelog() throws Exception {
        Map<String, Long> last = new TreeMap<>();
        for (Reader.Count count : Reader.committed(CHANGELOG)) {
            last.put(count.word(), count.value());
        }
        same(expected, last, "the store");
        return last.size() + " words";
    }

    private void feed() {
        try (Producer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", BOOTSTRAP), new StringSerializer(), new StringSerializer())) {
            for (int end = lines + LINES; lines < end; lines++) {
                List<String> words = new ArrayList<>();
                for (int n = 0; n < WORDS_A_LINE; n++) {
                    // Some words are frequent and most are not.
                    words.add("word" + (lines % (n + 2) == 0 ? n : (lines * 31 + n * 17) % 200));
                }
                words.forEach(word -> expected.merge(word, 1L, Long::sum));
                producer.send(new ProducerRecord<>(INPUT, lines % 2, null, String.join(" ", words)));
            }
        }
    }

    /** Each word was counted from one to as often as it was there: no count is missing, none is there twice. */
    private void awaitCounted() throws Exception {
        long all = expected.values().stream().mapToLong(Long::longValue).sum();
        List<Reader.Count> seen = new ArrayList<>();
        Scenarios.until("every word is counted", Duration.ofSeconds(90), () -> {
            seen.clear();
            seen.addAll(Reader.committed(OUTPUT));
            return seen.size() >= all;
        });
        Map<String, List<Long>> counts = new HashMap<>();
        seen.forEach(count -> counts.computeIfAbsent(count.word(), word -> new ArrayList<>()).add(count.value()));
        same(expected.keySet(), new TreeMap<>(counts).keySet(), "words");
        expected.forEach((word, count) ->
                same(LongStream.rangeClosed(1, count).boxed().toList(), counts.get(word), "counts of " + word));
        check(seen.size() == all, "counts");
    }

    private String summary() {
        return lines + " lines, " + expected.values().stream().mapToLong(Long::longValue).sum() + " counts, "
                + Reader.aborted(OUTPUT) + " aborted";
    }
}

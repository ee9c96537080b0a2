package conformance;

import static conformance.Scenarios.BOOTSTRAP;
import static conformance.Scenarios.RUN;
import static conformance.Scenarios.check;
import static conformance.Scenarios.same;
import static conformance.Scenarios.scenario;
import static conformance.Tool.failing;
import static conformance.Tool.lines;
import static conformance.Tool.row;
import static conformance.Tool.rows;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import kafka.admin.ConfigCommand;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.tools.BrokerApiVersionsCommand;
import org.apache.kafka.tools.ConsoleProducer;
import org.apache.kafka.tools.ConsumerPerformance;
import org.apache.kafka.tools.DeleteRecordsCommand;
import org.apache.kafka.tools.GetOffsetShell;
import org.apache.kafka.tools.LogDirsCommand;
import org.apache.kafka.tools.ProducerPerformance;
import org.apache.kafka.tools.TopicCommand;
import org.apache.kafka.tools.consumer.ConsoleConsumer;

/** What an operator types. */
public final class Main {
    private Main() {}

    public static void main(String[] args) {
        Scenarios.version("kafka-tools", AppInfoParser.getVersion());
        Scenarios.limit(Duration.ofSeconds(90));
        scenario("api-versions", Main::apiVersions);
        scenario("topics", Main::topics);
        scenario("configs", Main::configs);
        scenario("console", Main::console);
        scenario("get-offsets", Main::offsets);
        scenario("delete-records", Main::deleteRecords);
        scenario("log-dirs", Main::logDirs);
        scenario("performance", Main::performance);
        scenario("groups", GroupTools::groups);
        scenario("reset-offsets", GroupTools::resetOffsets);
        scenario("delete-groups", GroupTools::delete);
        scenario("transactions", TransactionTools::describe);
        scenario("find-hanging", TransactionTools::findHanging);
        scenario("abort", TransactionTools::abort);
        scenario("force-terminate", TransactionTools::forceTerminate);
        Scenarios.end();
    }

    static String topic(String what, int partitions) throws Exception {
        String name = what + "-" + RUN;
        same(
                List.of("Created topic " + name + "."),
                lines(TopicCommand::main, "--bootstrap-server", BOOTSTRAP, "--create", "--topic", name, "--partitions",
                        Integer.toString(partitions), "--replication-factor", "1"),
                "kafka-topics --create");
        return name;
    }

    /** Types records into the console producer. */
    static void produce(String topic, String... records) throws Exception {
        Tool.type(records);
        lines(ConsoleProducer::main, "--bootstrap-server", BOOTSTRAP, "--topic", topic);
    }

    private static String apiVersions() throws Exception {
        List<String> printed = lines(BrokerApiVersionsCommand::main, "--bootstrap-server", BOOTSTRAP);
        List<String> usable = printed.stream().filter(line -> line.contains("[usable:")).toList();
        for (String api : List.of("Produce(0)", "Fetch(1)", "EndTxn(26)", "WriteTxnMarkers(27)", "ListGroups(16)")) {
            check(usable.stream().anyMatch(line -> line.startsWith(api)), api + " is not usable: " + printed);
        }
        return usable.size() + " kinds of request";
    }

    private static String topics() throws Exception {
        String name = topic("topics", 2);
        String[] all = {"--bootstrap-server", BOOTSTRAP, "--list"};
        check(lines(TopicCommand::main, all).contains(name), "made, and not listed");
        check(failing(TopicCommand::main, "--bootstrap-server", BOOTSTRAP, "--create", "--topic", name)
                        .contains("already exists"), "a second one of the name");
        same(2, described(name).size() - 1, "lines of partitions");
        check(described(name).get(0).contains("PartitionCount: 2"), "partitions");
        lines(TopicCommand::main, "--bootstrap-server", BOOTSTRAP, "--alter", "--topic", name, "--partitions", "5");
        check(described(name).get(0).contains("PartitionCount: 5"), "partitions afterwards");
        same(5, described(name).size() - 1, "lines of partitions afterwards");
        lines(TopicCommand::main, "--bootstrap-server", BOOTSTRAP, "--delete", "--topic", name);
        check(!lines(TopicCommand::main, all).contains(name), "deleted, and still listed");
        return "";
    }

    private static List<String> described(String topic) throws Exception {
        return lines(TopicCommand::main, "--bootstrap-server", BOOTSTRAP, "--describe", "--topic", topic);
    }

    private static String configs() throws Exception {
        String name = topic("configs", 1);
        String[] entity = {"--bootstrap-server", BOOTSTRAP, "--entity-type", "topics", "--entity-name", name};
        same(List.of(), own(entity), "settings of a new topic");
        configure(entity, "--alter", "--add-config", "retention.ms=360000,max.message.bytes=2000");
        same(Set.of("retention.ms=360000", "max.message.bytes=2000"), Set.copyOf(own(entity)), "settings");
        check(failing(Main::configCommand, with(entity, "--alter", "--add-config", "retention.ms=soon"))
                        .contains("Invalid value soon"), "a value that is none");
        configure(entity, "--alter", "--delete-config", "retention.ms,max.message.bytes");
        same(List.of(), own(entity), "settings afterwards");

        List<String> broker = lines(
                Main::configCommand, "--bootstrap-server", BOOTSTRAP, "--entity-type", "brokers", "--entity-name",
                nodeId(), "--describe", "--all");
        check(broker.stream().anyMatch(line -> line.startsWith("log.retention.ms=")), "the broker's: " + broker);
        return "";
    }

    private static void configCommand(String[] arguments) {
        ConfigCommand.main(arguments);
    }

    private static void configure(String[] entity, String... more) throws Exception {
        lines(Main::configCommand, with(entity, more));
    }

    /** `name=value` of each setting that the topic itself has. */
    private static List<String> own(String[] entity) throws Exception {
        return lines(Main::configCommand, with(entity, "--describe")).stream()
                .filter(line -> line.contains(" sensitive="))
                .map(line -> line.substring(0, line.indexOf(' ')))
                .toList();
    }

    static String[] with(String[] first, String... more) {
        String[] all = java.util.Arrays.copyOf(first, first.length + more.length);
        System.arraycopy(more, 0, all, first.length, more.length);
        return all;
    }

    /** `host:port (id: 1 rack: null) -> (` */
    static String nodeId() throws Exception {
        String first = lines(BrokerApiVersionsCommand::main, "--bootstrap-server", BOOTSTRAP).get(0);
        return first.replaceAll(".*\\(id: (\\d+).*", "$1");
    }

    /** Aborted records are in the log and not in what read_committed prints. */
    private static String console() throws Exception {
        String name = topic("console", 1);
        TransactionTools.aborted(name, "never");
        produce(name, "one", "two", "three");
        same(List.of("one", "two", "three"), consumed(name, "read_committed", 3), "read_committed");
        same(List.of("never", "one", "two", "three"), consumed(name, "read_uncommitted", 4), "read_uncommitted");
        return "";
    }

    private static List<String> consumed(String topic, String isolation, int count) throws Exception {
        return lines(ConsoleConsumer::main, "--bootstrap-server", BOOTSTRAP, "--topic", topic, "--from-beginning",
                        "--isolation-level", isolation, "--max-messages", Integer.toString(count),
                        "--timeout-ms", "20000").stream()
                .filter(line -> !line.startsWith("Processed a total of"))
                .toList();
    }

    private static String offsets() throws Exception {
        String name = topic("get-offsets", 1);
        TransactionTools.aborted(name, "never");
        same(Set.of(name + ":0:2"), offsets(name, "latest"), "latest");
        same(Set.of(name + ":0:0"), offsets(name, "earliest"), "earliest");
        produce(name, "one");
        same(Set.of(name + ":0:2"), offsets(name, "max-timestamp"), "of the newest record");
        return "";
    }

    private static Set<String> offsets(String topic, String time) throws Exception {
        List<String> printed =
                lines(GetOffsetShell::main, "--bootstrap-server", BOOTSTRAP, "--topic", topic, "--time", time);
        return new TreeSet<>(printed);
    }

    private static String deleteRecords() throws Exception {
        String name = topic("delete-records", 1);
        produce(name, "one", "two", "three");
        Path file = Files.createTempFile("offsets", ".json");
        Files.writeString(
                file,
                "{\"version\": 1, \"partitions\": [{\"topic\": \"" + name + "\", \"partition\": 0, \"offset\": 2}]}");
        try {
            List<String> printed = lines(
                    DeleteRecordsCommand::main, "--bootstrap-server", BOOTSTRAP, "--offset-json-file", file.toString());
            check(printed.stream().anyMatch(line -> line.contains("low_watermark: 2")), "printed " + printed);
        } finally {
            Files.delete(file);
        }
        same(Set.of(name + ":0:2"), offsets(name, "earliest"), "earliest");
        same(List.of("three"), consumed(name, "read_committed", 1), "what is left");
        return "";
    }

    private static String logDirs() throws Exception {
        String name = topic("log-dirs", 1);
        produce(name, "one");
        List<String> printed = lines(
                LogDirsCommand::main, "--bootstrap-server", BOOTSTRAP, "--describe", "--topic-list", name);
        String json = printed.get(printed.size() - 1);
        check(json.matches(".*\"partition\":\"" + name + "-0\",\"size\":[1-9].*"), "printed " + json);
        return "";
    }

    /** The measuring producer, with transactions of 50 ms, and the measuring consumer. */
    private static String performance() throws Exception {
        String name = topic("performance", 1);
        List<String> sent = lines(
                ProducerPerformance::main, "--bootstrap-server", BOOTSTRAP, "--topic", name, "--num-records", "5000",
                "--record-size", "100", "--throughput", "-1", "--transactional-id", name, "--transaction-duration-ms",
                "50");
        String summary = sent.get(sent.size() - 1);
        check(summary.startsWith("5000 records sent"), "sent: " + sent);
        List<String> read = lines(
                ConsumerPerformance::main, "--bootstrap-server", BOOTSTRAP, "--topic", name, "--num-records", "5000",
                "--timeout", "20000", "--hide-header", "--command-property", "isolation.level=read_committed");
        same("5000", read.get(read.size() - 1).split(", ")[4], "records read");
        return summary.replaceAll("^5000 records sent, ([^,(]*).*", "$1").strip();
    }
}

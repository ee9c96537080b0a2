package conformance;

import static conformance.Scenarios.BOOTSTRAP;
import static conformance.Scenarios.check;
import static conformance.Scenarios.refused;
import static conformance.Scenarios.same;
import static conformance.Tool.lines;
import static conformance.Tool.row;
import static conformance.Tool.rows;

import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.tools.TransactionsCommand;

/** kafka-transactions, on transactions that a producer of this process leaves open (C-51, C-52). */
final class TransactionTools {
    private TransactionTools() {}

    private static Producer<String, String> open(String topic, String value) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", BOOTSTRAP, "transactional.id", topic);
        Producer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(topic, 0, null, value)).get();
        return producer;
    }

    /** Leaves an aborted record in the topic's first partition. */
    static void aborted(String topic, String value) throws Exception {
        try (Producer<String, String> producer = open(topic, value)) {
            producer.abortTransaction();
        }
    }

    private static List<String> command(String... arguments) throws Exception {
        String[] first = {"--bootstrap-server", BOOTSTRAP};
        return lines(TransactionsCommand::main, Main.with(first, arguments));
    }

    private static String state(String id) throws Exception {
        return row(rows(command("list"), "TransactionalId"), 0, id).get(3);
    }

    private static List<List<String>> producers(String topic) throws Exception {
        return rows(command("describe-producers", "--topic", topic, "--partition", "0"), "ProducerId");
    }

    static String describe() throws Exception {
        String topic = Main.topic("transactions", 1);
        try (Producer<String, String> producer = open(topic, "one")) {
            same("Ongoing", state(topic), "list");
            List<String> described =
                    row(rows(command("describe", "--transactional-id", topic), "CoordinatorId"), 1, topic);
            same(List.of("Ongoing", "60000"), described.subList(4, 6), "state and timeout");
            same(topic + "-0", described.get(8), "partitions");
            String producerId = described.get(2);
            List<String> seen = row(producers(topic), 0, producerId);
            same(List.of("0", "-1", "0"), seen.subList(1, 4), "epoch, coordinator's epoch and last sequence");
            same("0", seen.get(5), "start of its transaction");
            producer.commitTransaction();
            seen = row(producers(topic), 0, producerId);
            same("None", seen.get(5), "no transaction");
        }
        return "";
    }

    /** On a healthy broker there is none, open ones included. */
    static String findHanging() throws Exception {
        String topic = Main.topic("find-hanging", 1);
        try (Producer<String, String> producer = open(topic, "one")) {
            String[][] searches = {
                {"--broker-id", Main.nodeId(), "--max-transaction-timeout", "0"},
                {"--topic", topic, "--max-transaction-timeout", "0"},
                {"--topic", topic, "--partition", "0", "--max-transaction-timeout", "0"},
            };
            for (String[] search : searches) {
                List<String> printed = command(Main.with(new String[] {"find-hanging"}, search));
                same(List.of(), rows(printed, "Topic"), "hanging transactions");
            }
            producer.commitTransaction();
        }
        return "";
    }

    /** The transaction that begins at an offset is aborted on its partition. */
    static String abort() throws Exception {
        String topic = Main.topic("abort", 1);
        Producer<String, String> stuck = open(topic, "stuck");
        try {
            String producerId = producers(topic).get(0).get(0);
            command("abort", "--topic", topic, "--partition", "0", "--start-offset", "0");
            same("None", row(producers(topic), 0, producerId).get(5), "start of its transaction");
            check(!command("list").isEmpty(), "nothing is listed");
        } finally {
            stuck.close(java.time.Duration.ZERO);
        }
        return "";
    }

    /** An id's open transaction is aborted and its producer fenced. */
    static String forceTerminate() throws Exception {
        String topic = Main.topic("force-terminate", 1);
        try (Producer<String, String> old = open(topic, "old")) {
            command("forceTerminateTransaction", "--transactionalId", topic);
            Scenarios.until("the abort", java.time.Duration.ofSeconds(20), () -> !state(topic).equals("Ongoing"));
            String after = state(topic);
            check(List.of("CompleteAbort", "PrepareAbort", "Empty").contains(after), "state " + after);
            refused(ProducerFencedException.class, old::commitTransaction);
        }
        return "";
    }
}

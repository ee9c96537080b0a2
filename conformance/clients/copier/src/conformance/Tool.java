package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** One of Kafka's tools as a process of its own; each line that it prints is a JSON object. */
final class Tool implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String CLASSES = System.getenv("TOOL_CLASSES");

    private final Process process;
    private final Thread reader;

    /** Starts it; each line goes to `line`, on a thread of its own. */
    Tool(Consumer<JsonNode> line, String tool, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", CLASSES, "org.apache.kafka.tools." + tool));
        command.addAll(List.of(arguments));
        process = Scenarios.child(new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT));
        reader = new Thread(() -> read(line), tool);
        reader.start();
    }

    private void read(Consumer<JsonNode> line) {
        try (BufferedReader printed = process.inputReader(StandardCharsets.UTF_8)) {
            for (String text = printed.readLine(); text != null; text = printed.readLine()) {
                // What a killed process has half printed is none.
                if (text.startsWith("{") && text.endsWith("}")) {
                    line.accept(JSON.readTree(text));
                }
            }
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    boolean isAlive() {
        return process.isAlive();
    }

    /** Ends it as a power cut would: SIGKILL. */
    void kill() throws InterruptedException {
        process.destroyForcibly();
        await();
    }

    int await() throws InterruptedException {
        int status = process.waitFor();
        reader.join();
        return status;
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}

package conformance;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;

/** One process of the application; it can be killed and started again with the state it left. */
final class Instance implements AutoCloseable {
    private final String[] arguments;
    private Process process;
    private Thread reader;
    private volatile String state;
    private volatile String failure;

    Instance(String application, String input, String output, Path state) {
        arguments = new String[] {application, input, output, state.toString()};
    }

    void start() throws IOException {
        state = "";
        ProcessBuilder builder = new ProcessBuilder(
                "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx160m",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", System.getProperty("java.class.path"),
                WordCount.class.getName());
        builder.command().addAll(java.util.List.of(arguments));
        process = Scenarios.child(builder.redirectError(ProcessBuilder.Redirect.INHERIT));
        reader = new Thread(this::read, "reader");
        reader.start();
    }

    private void read() {
        try (BufferedReader printed = process.inputReader(StandardCharsets.UTF_8)) {
            for (String line = printed.readLine(); line != null; line = printed.readLine()) {
                state = line;
                if (line.startsWith("FAILED")) {
                    failure = line;
                }
            }
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    void awaitRunning() throws Exception {
        Scenarios.until("an instance runs", Duration.ofSeconds(60), () -> {
            Scenarios.check(process.isAlive(), "an instance ended by itself");
            return state.equals("RUNNING");
        });
    }

    /** SIGKILL: nothing is closed, nothing committed, nobody told. */
    void kill() throws InterruptedException {
        Scenarios.check(process.isAlive(), "an instance ended by itself");
        process.destroyForcibly();
        process.waitFor();
        reader.join();
    }

    /** As an application ends in peace. */
    void stop() throws Exception {
        process.getOutputStream().close();
        Scenarios.same(0, process.waitFor(), "exit status of an instance");
        reader.join();
        Scenarios.same("NOT_RUNNING", state, "last state of an instance");
        Scenarios.same(null, failure, "failure of a thread");
    }

    @Override
    public void close() {
        if (process != null) {
            process.destroyForcibly();
        }
    }
}

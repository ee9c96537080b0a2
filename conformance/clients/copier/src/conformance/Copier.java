package conformance;

import static conformance.Scenarios.BOOTSTRAP;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** A copier that is started again under the same transactional id. */
final class Copier {
    /** Records that it has copied since its last start, as it says. */
    final AtomicLong copied = new AtomicLong();

    Tool process;
    private final String[] arguments;

    Copier(String input, String output, int number, String... mode) {
        // It asks for its offsets before it takes its id over, so what a killed one had pending has to time out.
        List<String> all = new ArrayList<>(List.of(
                "--broker-list", BOOTSTRAP, "--input-topic", input, "--input-partition", Integer.toString(number),
                "--output-topic", output, "--transactional-id", input + "-" + number, "--consumer-group", input,
                "--transaction-size", "20", "--transaction-timeout", "10000", "--enable-random-aborts"));
        all.addAll(List.of(mode));
        arguments = all.toArray(String[]::new);
    }

    void start() throws IOException {
        copied.set(0);
        process = new Tool(
                line -> copied.set(line.path("totalProcessed").asLong()), "TransactionalMessageCopier", arguments);
    }
}

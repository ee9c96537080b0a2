package conformance;

import static conformance.Scenarios.same;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.utils.Exit;

/** Runs a command's `main` in this process and gives what it printed. */
final class Tool {
    private Tool() {}

    @FunctionalInterface
    interface Command {
        void main(String[] arguments) throws Exception;
    }

    /** Unwinds a command that ends the process. */
    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    /**
     * What the running command printed and how it ended first: some catch their own end and then say it went wrong.
     * What it left for the end of the process is done at its own.
     */
    private static final class Run {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final List<Runnable> hooks = new ArrayList<>();
        Integer status;
        String printed;
        String complaints;

        void end(int with) {
            if (status == null) {
                status = with;
                printed = out.toString(StandardCharsets.UTF_8);
                complaints = err.toString(StandardCharsets.UTF_8);
            }
        }
    }

    private static Run running;

    static {
        Exit.Procedure end = (status, message) -> {
            running.end(status);
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder((name, hook) -> running.hooks.add(hook));
    }

    /** The lines of a command that has to succeed. */
    static List<String> lines(Command command, String... arguments) throws Exception {
        Run run = run(command, arguments);
        same(0, run.status, String.join(" ", arguments) + ", which printed " + run.printed + run.complaints);
        return run.printed.lines().map(String::strip).filter(line -> !line.isEmpty()).toList();
    }

    /** What a command prints that has to fail; some say so only in words. */
    static String failing(Command command, String... arguments) throws Exception {
        Run run = run(command, arguments);
        String text = run.printed + run.complaints;
        Scenarios.check(run.status != 0 || text.contains("Error"), "no failure: " + text);
        return text;
    }

    static void type(String... lines) {
        System.setIn(new ByteArrayInputStream(String.join("\n", lines).concat("\n").getBytes(StandardCharsets.UTF_8)));
    }

    private static Run run(Command command, String... arguments) throws Exception {
        PrintStream out = System.out;
        PrintStream err = System.err;
        running = new Run();
        System.setOut(new PrintStream(running.out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(running.err, true, StandardCharsets.UTF_8));
        try {
            command.main(arguments);
            running.end(0);
        } catch (Ended ended) {
            // How is in `running`.
        } finally {
            running.hooks.forEach(Runnable::run);
            System.setOut(out);
            System.setErr(err);
            err.println("$ " + String.join(" ", arguments) + "\n" + running.out.toString(StandardCharsets.UTF_8)
                    + running.err.toString(StandardCharsets.UTF_8));
        }
        return running;
    }

    /** The rows of a table below its headings, each cell by its heading's place. */
    static List<List<String>> rows(List<String> lines, String firstHeading) {
        int headings = 0;
        while (headings < lines.size() && !lines.get(headings).startsWith(firstHeading)) {
            headings++;
        }
        Scenarios.check(headings < lines.size(), "no table with " + firstHeading + " in " + lines);
        return lines.subList(headings + 1, lines.size()).stream()
                .map(line -> Arrays.asList(line.split("\\s+")))
                .toList();
    }

    /** The row whose cell of this number is this. */
    static List<String> row(List<List<String>> rows, int cell, String value) {
        Optional<List<String>> found = rows.stream().filter(row -> row.get(cell).equals(value)).findFirst();
        return found.orElseThrow(() -> new AssertionError("no row with " + value + " in " + rows));
    }
}

package conformance;

import java.io.IOException;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Runs scenarios and says on standard output how each went; what else is printed goes to standard error. */
public final class Scenarios {
    public static final String BOOTSTRAP = System.getenv("BOOTSTRAP");

    /** Keeps the names of this run apart from those of an earlier one on the same broker. */
    public static final String RUN = Long.toString(System.currentTimeMillis(), 36);

    private static final PrintStream REPORT = System.out;
    private static Duration limit = Duration.ofSeconds(60);

    static {
        System.setOut(System.err);
    }

    private Scenarios() {}

    /** What is shown; its value are figures for a reader, or nothing. */
    @FunctionalInterface
    public interface Scenario {
        String play() throws Exception;
    }

    @FunctionalInterface
    public interface Deed {
        void run() throws Exception;
    }

    public static void version(String stack, String version) {
        REPORT.println("version " + stack + " " + version);
    }

    /** The time that each scenario has. */
    public static void limit(Duration each) {
        limit = each;
    }

    /** Plays one; whatever goes wrong in it is a line, and the next one has its turn. */
    public static void scenario(String name, Scenario scenario) {
        FutureTask<String> played = new FutureTask<>(scenario::play);
        Thread thread = new Thread(played, name);
        thread.setDaemon(true);
        long began = System.nanoTime();
        thread.start();
        try {
            String figures = played.get(limit.toMillis(), TimeUnit.MILLISECONDS);
            long ms = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
            REPORT.println("pass " + name + " " + (figures.isEmpty() ? "" : figures + ", ") + ms + " ms");
        } catch (ExecutionException failed) {
            failed.getCause().printStackTrace();
            REPORT.println("FAIL " + name + " " + oneLine(failed.getCause()));
        } catch (TimeoutException late) {
            for (StackTraceElement frame : thread.getStackTrace()) {
                System.err.println("    at " + frame);
            }
            thread.interrupt();
            REPORT.println("FAIL " + name + " no end after " + limit.toSeconds() + " s");
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    public static void skip(String name, String reason) {
        REPORT.println("skip " + name + " " + reason);
    }

    /** The last line; without it the client counts as failed. Threads that still hang do not keep the process. */
    public static void end() {
        REPORT.println("end");
        REPORT.flush();
        System.exit(0);
    }

    /** Starts a process that does not outlive this one. */
    public static Process child(ProcessBuilder builder) throws IOException {
        Process process = builder.start();
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        return process;
    }

    public static void same(Object expected, Object seen, String what) {
        if (!Objects.equals(expected, seen)) {
            throw new AssertionError(what + ": expected " + expected + ", seen " + seen);
        }
    }

    public static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    /** The deed has to fail, and with this; futures and wrappers are looked through. */
    public static <T extends Throwable> T refused(Class<T> expected, Deed deed) throws Exception {
        try {
            deed.run();
        } catch (Exception seen) {
            for (Throwable cause = seen; cause != null; cause = cause.getCause()) {
                if (expected.isInstance(cause)) {
                    return expected.cast(cause);
                }
            }
            throw new AssertionError("expected " + expected.getSimpleName() + ", seen " + oneLine(seen), seen);
        }
        throw new AssertionError("expected " + expected.getSimpleName() + ", and it succeeded");
    }

    /** Waits for what is to come by itself. */
    public static void until(String what, Duration atMost, Callable<Boolean> holds) throws Exception {
        long end = System.nanoTime() + atMost.toNanos();
        while (!holds.call()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("not within " + atMost.toSeconds() + " s: " + what);
            }
            Thread.sleep(50);
        }
    }

    private static String oneLine(Throwable what) {
        String message = what instanceof AssertionError ? what.getMessage() : what.toString();
        message = message.replaceAll("\\s+", " ");
        return message.length() > 400 ? message.substring(0, 400) + "…" : message;
    }
}

package conformance;

import static conformance.Scenarios.BOOTSTRAP;
import static conformance.Scenarios.check;
import static conformance.Scenarios.same;
import static conformance.Tool.failing;
import static conformance.Tool.lines;
import static conformance.Tool.row;
import static conformance.Tool.rows;

import java.util.List;
import org.apache.kafka.tools.GroupsCommand;
import org.apache.kafka.tools.consumer.ConsoleConsumer;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/** kafka-groups and kafka-consumer-groups. */
final class GroupTools {
    private GroupTools() {}

    /** A topic of three records and a group of its name that has read two of them. */
    private static String group(String what) throws Exception {
        String name = Main.topic(what, 1);
        Main.produce(name, "one", "two", "three");
        lines(ConsoleConsumer::main, "--bootstrap-server", BOOTSTRAP, "--topic", name, "--group", name,
                "--from-beginning", "--max-messages", "2", "--timeout-ms", "20000", "--command-property",
                "max.poll.records=1");
        return name;
    }

    private static List<String> command(String group, String... more) throws Exception {
        String[] first = {"--bootstrap-server", BOOTSTRAP, "--group", group};
        return lines(ConsumerGroupCommand::main, Main.with(first, more));
    }

    /** Topic, partition, committed offset, end and lag as the tool prints them. */
    private static List<String> position(String group) throws Exception {
        return row(rows(command(group, "--describe"), "GROUP"), 0, group).subList(1, 6);
    }

    static String groups() throws Exception {
        String group = group("groups");
        String[] list = {"--bootstrap-server", BOOTSTRAP, "--list"};
        check(lines(ConsumerGroupCommand::main, list).contains(group), "not listed");
        List<List<String>> all = rows(lines(GroupsCommand::main, list), "GROUP");
        same(List.of(group, "Classic", "consumer"), row(all, 0, group), "kafka-groups");
        same(List.of(group, "0", "2", "3", "1"), position(group), "position");
        List<List<String>> states = rows(command(group, "--describe", "--state"), "GROUP");
        same("Empty", row(states, 0, group).get(4), "state of " + states);
        String none = group + "-none";
        check(failing(ConsumerGroupCommand::main, "--bootstrap-server", BOOTSTRAP, "--describe", "--group", none)
                        .contains(none), "a group that is not there");
        return "";
    }

    static String resetOffsets() throws Exception {
        String group = group("reset-offsets");
        String[] all = {"--reset-offsets", "--all-topics"};
        List<List<String>> planned = rows(command(group, Main.with(all, "--to-earliest", "--dry-run")), "GROUP");
        same(List.of(group, group, "0", "0"), planned.get(0), "what would be done");
        same("2", position(group).get(2), "after a plan");
        command(group, Main.with(all, "--to-earliest", "--execute"));
        same("0", position(group).get(2), "to the earliest");
        command(group, Main.with(all, "--to-latest", "--execute"));
        same("3", position(group).get(2), "to the latest");
        command(group, Main.with(all, "--shift-by", "-2", "--execute"));
        same("1", position(group).get(2), "two back");
        return "";
    }

    static String delete() throws Exception {
        String group = group("delete-groups");
        List<List<String>> deleted = rows(command(group, "--delete-offsets", "--topic", group), "TOPIC");
        same(List.of(group, "0", "Successful"), deleted.get(0), "kafka-consumer-groups --delete-offsets");
        String other = group("delete-groups-whole");
        List<String> said = command(other, "--delete");
        check(said.get(0).contains("was successful"), "said " + said);
        check(!lines(ConsumerGroupCommand::main, "--bootstrap-server", BOOTSTRAP, "--list").contains(other),
                "deleted, and still listed");
        return "";
    }
}

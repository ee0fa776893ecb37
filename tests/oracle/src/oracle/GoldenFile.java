package oracle;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import oracle.Probe.Event;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.util.OutputTag;

/** Writes a completed scenario in the golden format. */
final class GoldenFile {
    private GoldenFile() {}

    static Path path(Path out, Scenario s) {
        return out.resolve(s.family).resolve(s.name + ".json");
    }

    static void write(Path file, Scenario s, Run r) throws Exception {
        StringBuilder b = new StringBuilder("{");
        field(b, "name", Json.quote(s.name));
        field(b, "family", Json.quote(s.family));
        field(b, "flink_version", Json.quote(EnvironmentInformation.getVersion()));
        field(b, "description", Json.quote(s.description));
        field(b, "operator", Json.of(s.operator));
        if (s.sql != null) field(b, "sql", Json.quote(s.sql));
        if (s.sqlOptions != null) field(b, "sql_options", Json.of(s.sqlOptions));
        if (r.refusal == null) {
            field(b, "ordered", String.valueOf(s.sql == null || !s.twoTables()));
            if (s.sql == null) {
                List<Map<String, Object>> emissions = new ArrayList<>();
                for (Event e : r.events) if (e.kind == Event.Kind.OUT) emissions.add(Json.parse(e.json()));
                List<Map<String, Object>> all = new ArrayList<>(emissions);
                for (Event e : r.events) if (e.kind == Event.Kind.SIDE) all.add(Json.parse(e.json()));
                field(b, "has_ties", String.valueOf(hasTies(s, all)));
                field(b, "elements_in_arrival_order", String.valueOf(!r.evictorSawOtherOrder && arrivalOrder(s, r, emissions)));
                field(b, "checked_against_public_api_run", Json.quote(r.check));
            }
        }
        List<String> input = new ArrayList<>();
        for (Elem e : s.input) input.add(e.json());
        field(b, "input", lines(input));
        if (r.refusal != null) {
            field(b, "expected_error", "{\"class\": " + Json.quote(r.refusal.getClass().getName()) + ", \"message\": " + Json.quote(message(r.refusal)) + "}");
        } else if (s.sql != null) {
            field(b, "expected", lines(rows(s, r)));
        } else {
            field(b, "expected", lines(texts(r, Event.Kind.OUT)));
            if (!ProcessOperators.tags(s).isEmpty()) field(b, "side", sides(s, r));
            field(b, "late", lines(texts(r, Event.Kind.LATE)));
        }
        Files.createDirectories(file.getParent());
        Files.write(file, b.append("\n}\n").toString().getBytes(StandardCharsets.UTF_8));
    }

    private static void field(StringBuilder b, String name, String json) {
        b.append(b.length() == 1 ? "\n" : ",\n").append(Json.quote(name)).append(": ").append(json);
    }

    private static String lines(List<String> elements) {
        return "[" + (elements.isEmpty() ? "" : "\n" + String.join(",\n", elements)) + "\n]";
    }

    private static String sides(Scenario s, Run r) {
        List<String> sides = new ArrayList<>();
        for (OutputTag<Out> tag : ProcessOperators.tags(s)) {
            List<String> l = new ArrayList<>();
            for (Event e : r.events) if (e.kind == Event.Kind.SIDE && e.trace.equals(tag.getId())) l.add(e.json());
            sides.add(Json.quote(tag.getId()) + ": " + lines(l));
        }
        return "{" + String.join(",\n", sides) + "}";
    }

    private static List<String> texts(Run r, Event.Kind kind) {
        List<String> l = new ArrayList<>();
        for (Event e : r.events) if (e.kind == kind) l.add(e.json());
        return l;
    }

    /** Identity hash codes would make two runs differ. */
    private static String message(Throwable t) {
        return String.valueOf(t.getMessage()).replaceAll("@[0-9a-f]{4,8}\\b", "@0");
    }

    /** Each row carries the last watermark forwarded before it; of two tables only the set of rows is certain. */
    private static List<String> rows(Scenario s, Run r) {
        List<String> rows = new ArrayList<>();
        String watermark = "null";
        for (Event e : r.events)
            if (e.kind == Event.Kind.WATERMARK) watermark = e.body;
            else rows.add(s.twoTables() ? "{" + e.body + "}" : "{\"wm\":" + watermark + "," + e.body + "}");
        if (s.twoTables()) Collections.sort(rows);
        return rows;
    }

    // ---- flags

    /** Timers of one time (or, interval join: partners of one record at several times) run in an order that is an artefact. */
    private static boolean hasTies(Scenario s, List<Map<String, Object>> emissions) {
        Map<String, Set<String>> groups = new HashMap<>();
        for (Map<String, Object> e : emissions) {
            String group, member;
            if (!"element".equals(e.get("fired"))) {
                group = e.get("step") + "/" + e.get("fired_time");
                member = Json.of(e.get("key")) + "|" + e.get("window_start");
            } else if (s.kind.equals("interval_join")) {
                group = String.valueOf(e.get("step"));
                member = e.get("left_ts") + "|" + e.get("right_ts");
            } else continue;
            Set<String> members = groups.computeIfAbsent(group, g -> new HashSet<>());
            members.add(member);
            if (members.size() > 1) return true;
        }
        return false;
    }

    /** False where the result shows Flink's hash order of merged sessions (or the time order of an end-of-stream window). */
    private static boolean arrivalOrder(Scenario s, Run r, List<Map<String, Object>> emissions) {
        List<Event> outs = new ArrayList<>(r.events);
        outs.removeIf(e -> e.kind != Event.Kind.OUT);
        String function = s.functionType();
        for (int i = 0; i < emissions.size(); i++) {
            Map<String, Object> e = emissions.get(i);
            if (function.startsWith("reduce_")) {
                if (!function.equals("reduce_sum") && !reducedInOrder(s, function, outs.get(i).trace, e.get("seq"))) return false;
            } else if (function.equals("concat_seq")) {
                if (!ascending(seqs((String) e.get("result")))) return false;
            } else if (s.kind.equals("window_join")) {
                if (i > 0 && sameFiring(emissions.get(i - 1), e) && pairOrder(emissions.get(i - 1), e) > 0) return false;
            } else {
                for (String f : new String[] {"seq", "left_seq", "right_seq"})
                    if (e.get(f) instanceof List && !ascending((List<?>) e.get(f))) return false;
            }
        }
        return true;
    }

    private static List<Integer> seqs(String joined) {
        List<Integer> l = new ArrayList<>();
        if (!joined.isEmpty()) for (String x : joined.split(",")) l.add(Integer.valueOf(x));
        return l;
    }

    private static boolean ascending(List<?> seqs) {
        for (int i = 1; i < seqs.size(); i++) if (((Number) seqs.get(i)).intValue() < ((Number) seqs.get(i - 1)).intValue()) return false;
        return true;
    }

    /** Would the reduction have picked the same record in arrival order? */
    private static boolean reducedInOrder(Scenario s, String function, String trace, Object seq) {
        List<Integer> order = seqs(trace);
        if (order.isEmpty()) return true;
        Collections.sort(order);
        int pick = order.get(function.equals("reduce_last") ? order.size() - 1 : 0);
        if (function.equals("reduce_max_by")) for (int i : order) if (s.input.get(i).value > s.input.get(pick).value) pick = i;
        return ((List<?>) seq).get(0).equals(pick);
    }

    private static boolean sameFiring(Map<String, Object> a, Map<String, Object> b) {
        for (String f : new String[] {"step", "fired", "fired_time", "key", "window_start", "window_end"})
            if (!String.valueOf(a.get(f)).equals(String.valueOf(b.get(f)))) return false;
        return true;
    }

    private static int pairOrder(Map<String, Object> a, Map<String, Object> b) {
        int left = Integer.compare((Integer) a.get("left_seq"), (Integer) b.get("left_seq"));
        return left != 0 ? left : Integer.compare((Integer) a.get("right_seq"), (Integer) b.get("right_seq"));
    }
}

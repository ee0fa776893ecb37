package oracle;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A scenario file: what to run. Whatever a file says about results is ignored. */
final class Scenario {
    private static final Set<String> TWO_INPUT_KINDS =
        new HashSet<>(Arrays.asList("window_join", "co_group", "interval_join", "co_process", "broadcast_process"));
    private static final Set<String> SQL_KINDS = new HashSet<>(Arrays.asList("over", "window_tvf", "window_tvf_rows",
        "group_window", "temporal_sort", "top_n", "window_top_n", "window_dedup", "sql_interval_join", "sql_window_join",
        "sql_version_join", "sql_match"));

    final String family, name, description, kind, sql;
    final Map<String, Object> operator;
    /** Options of the table environment, by Flink's names; null where the file has none. */
    final Map<String, Object> sqlOptions;
    final List<Elem> input = new ArrayList<>();

    Scenario(Map<String, Object> file) {
        family = fileName(Json.needString(file, "family"));
        name = fileName(Json.needString(file, "name"));
        description = Json.string(file, "description", "");
        operator = Json.needObject(file, "operator");
        kind = Json.needString(operator, "kind");
        sql = Json.string(file, "sql", null);
        if (SQL_KINDS.contains(kind) && sql == null) throw new BadScenario("kind '" + kind + "' needs the statement in field 'sql'");
        sqlOptions = Json.object(file, "sql_options");
        if (sql == null && sqlOptions != null) throw new BadScenario("'sql_options' are for a statement in field 'sql'");
        Object elements = file.get("input");
        if (!(elements instanceof List)) throw new BadScenario("field 'input' is missing or not a list");
        for (Object o : (List<?>) elements) add(o);
        if (hasClock() && kind.equals("interval_join")) throw new BadScenario("there is no processing time in 'interval_join'");
        if (has(Elem.RESTART) && !ProcessOperators.KINDS.contains(kind)) throw new BadScenario("restarts are not supported in '" + kind + "'");
        if (sql != null && hasClock()) throw new BadScenario("processing time is not supported in SQL");
    }

    /** Family and name become a path. */
    private static String fileName(String s) {
        if (!s.matches("[A-Za-z0-9][A-Za-z0-9._+=-]*")) throw new BadScenario("'" + s + "' cannot be a file name");
        return s;
    }

    @SuppressWarnings("unchecked")
    private void add(Object o) {
        int idx = input.size();
        Elem e;
        try {
            if (!(o instanceof Map)) throw new BadScenario("not an object");
            e = element((Map<String, Object>) o);
        } catch (BadScenario x) {
            throw new BadScenario("input[" + idx + "]: " + x.getMessage());
        }
        e.idx = idx;
        input.add(e);
    }

    private Elem element(Map<String, Object> m) {
        int side = Elem.BOTH;
        String s = Json.string(m, "side", null);
        if (s != null) {
            if (!s.equals("left") && !s.equals("right")) throw new BadScenario("side '" + s + "'");
            side = s.equals("left") ? Elem.LEFT : Elem.RIGHT;
        }
        if (m.containsKey("watermark")) return Elem.marker(Elem.WATERMARK, side, Json.needWhole(m, "watermark"));
        if (m.containsKey("restart")) {
            if (!Json.bool(m, "restart", false)) throw new BadScenario("a restart is true");
            return Elem.marker(Elem.RESTART, Elem.BOTH, 0);
        }
        if (m.containsKey("processing_time")) return Elem.marker(Elem.CLOCK, Elem.BOTH, Json.needWhole(m, "processing_time"));
        if (twoInputs() != (side != Elem.BOTH) && sql == null)
            throw new BadScenario(twoInputs() ? "a record of '" + kind + "' needs a side" : "'" + kind + "' has one input, no sides");
        return Elem.record(side, Json.needString(m, "key"), Json.needWhole(m, "ts"), Json.needNumber(m, "value"));
    }

    /** DataStream kinds with a left and a right input. */
    boolean twoInputs() {
        return TWO_INPUT_KINDS.contains(kind);
    }

    /** SQL over the tables L and R instead of T. */
    boolean twoTables() {
        return kind.equals("sql_interval_join") || kind.equals("sql_window_join") || versioned() || input.stream().anyMatch(e -> e.side != Elem.BOTH);
    }

    /** Where R is a table of versions: its key is a primary key. */
    boolean versioned() {
        return kind.equals("sql_version_join");
    }

    /** Where columns may be null: a variable that no row was matched to has none. */
    boolean nullable() {
        return kind.equals("sql_match");
    }

    private boolean hasClock() {
        return has(Elem.CLOCK);
    }

    private boolean has(int elementKind) {
        return input.stream().anyMatch(e -> e.kind == elementKind);
    }

    boolean hasRestart() {
        return has(Elem.RESTART);
    }

    /** The script in parts that end with a restart, and the rest after the last one. */
    List<List<Elem>> parts() {
        List<List<Elem>> parts = new ArrayList<>();
        parts.add(new ArrayList<>());
        for (Elem e : input) {
            parts.get(parts.size() - 1).add(e);
            if (e.kind == Elem.RESTART) parts.add(new ArrayList<>());
        }
        if (parts.get(parts.size() - 1).isEmpty()) parts.get(parts.size() - 1).add(Elem.nothing());
        return parts;
    }

    /** True where timers must run on the scripted clock. */
    boolean processingTime() {
        return hasClock() || ProcessOperators.usesClock(this) || Json.of(operator.get("assigner")).contains("processing_time")
            || Json.of(operator.get("trigger")).contains("\"processing_t"); // processing_time, processing_timeout, as inner too
    }

    /** GlobalWindows.createWithEndOfStreamTrigger() with its own trigger. */
    boolean endOfStream() {
        Map<String, Object> a = Json.object(operator, "assigner");
        return kind.equals("window") && a != null && "global_end_of_stream".equals(a.get("type")) && operator.get("trigger") == null;
    }

    String functionType() {
        Map<String, Object> f = Json.object(operator, "function");
        return f == null ? "" : Json.string(f, "type", "");
    }

    List<Elem> script() {
        return input.isEmpty() ? Arrays.asList(Elem.nothing()) : input;
    }
}

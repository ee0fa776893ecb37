package oracle;

import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Evaluates scalar expressions over rows: {@code Expressions IN.json OUT.json}. A table of the input has columns, rows, time zones and
 * expressions; the output has for each zone, table and expression its type and a value for each row, or the error.
 */
public final class Expressions {
    private static final int AT_ONCE = 40;
    private static final String INDEX = "row_index";

    private final StreamTableEnvironment tables;
    private final int rowCount;
    private final Map<String, Object> values = new TreeMap<>();

    private Expressions(StreamTableEnvironment tables, int rowCount) {
        this.tables = tables;
        this.rowCount = rowCount;
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> asked = Json.parse(Files.readString(Paths.get(args[0])));
        Map<String, Map<String, Object>> found = new LinkedHashMap<>();
        Cluster cluster = new Cluster(120);
        for (Map.Entry<String, Object> table : asked.entrySet()) {
            Map<String, Object> content = Expressions.<Map<String, Object>>as(table.getValue());
            for (String zone : Expressions.<List<String>>as(content.get("zones"))) {
                long start = System.nanoTime();
                Map<String, Object> answers = answers(content, zone, cluster);
                found.computeIfAbsent(zone, z -> new LinkedHashMap<>()).put(table.getKey(), answers);
                write(Paths.get(args[1]), found);
                System.out.printf("%s in %s: %d expressions, %d s%n", table.getKey(), zone, answers.size(), (System.nanoTime() - start) / 1_000_000_000);
            }
        }
        System.exit(0);
    }

    @SuppressWarnings("unchecked")
    private static <T> T as(Object o) {
        return (T) o;
    }

    private static Map<String, Object> answers(Map<String, Object> content, String zone, Cluster cluster) throws Exception {
        StreamExecutionEnvironment env = cluster.environment(new Configuration());
        env.setRuntimeMode(RuntimeExecutionMode.BATCH);
        env.setParallelism(1);
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().setLocalTimeZone(ZoneId.of(zone));
        List<List<String>> columns = as(content.get("columns"));
        List<List<Object>> rows = as(content.get("rows"));
        String[] names = new String[columns.size() + 1];
        TypeInformation<?>[] types = new TypeInformation<?>[names.length];
        Schema.Builder schema = Schema.newBuilder().column(INDEX, "INT");
        names[0] = INDEX;
        types[0] = Types.INT;
        for (int i = 1; i < names.length; i++) {
            names[i] = columns.get(i - 1).get(0);
            types[i] = information(columns.get(i - 1).get(1));
            schema.column(names[i], columns.get(i - 1).get(1));
        }
        List<Row> made = new ArrayList<>();
        for (int i = 0; i < rows.size(); i++) {
            Row row = new Row(names.length);
            row.setField(0, i);
            for (int j = 1; j < names.length; j++) row.setField(j, value(rows.get(i).get(j - 1), columns.get(j - 1).get(1)));
            made.add(row);
        }
        tables.createTemporaryView("t", env.fromData(made, Types.ROW_NAMED(names, types)), schema.build());
        Expressions expressions = new Expressions(tables, made.size());
        expressions.evaluate(as(content.get("expressions")));
        return expressions.values;
    }

    private static TypeInformation<?> information(String type) {
        switch (type.replaceAll("\\(.*", "")) {
            case "STRING": return Types.STRING;
            case "BOOLEAN": return Types.BOOLEAN;
            case "TINYINT": return Types.BYTE;
            case "SMALLINT": return Types.SHORT;
            case "INT": return Types.INT;
            case "BIGINT": return Types.LONG;
            case "FLOAT": return Types.FLOAT;
            case "DOUBLE": return Types.DOUBLE;
            case "DECIMAL": return Types.BIG_DEC;
            case "DATE": return Types.LOCAL_DATE;
            case "TIMESTAMP": return Types.LOCAL_DATE_TIME;
            case "TIMESTAMP_LTZ": return Types.INSTANT;
            case "BYTES": return Types.PRIMITIVE_ARRAY(Types.BYTE);
            case "ARRAY<INT>": return Types.OBJECT_ARRAY(Types.INT);
            case "ARRAY<STRING>": return Types.OBJECT_ARRAY(Types.STRING);
            case "MAP<STRING, INT>": return Types.MAP(Types.STRING, Types.INT);
            default: throw new BadScenario("no column can have the type " + type);
        }
    }

    private static Object value(Object o, String type) {
        if (o == null) return null;
        switch (type.replaceAll("\\(.*", "")) {
            case "TINYINT": return Byte.valueOf(o.toString());
            case "SMALLINT": return Short.valueOf(o.toString());
            case "BIGINT": return Long.valueOf(o.toString());
            case "FLOAT": return Float.valueOf(o.toString());
            case "DOUBLE": return Double.valueOf(o.toString());
            case "DECIMAL": return new BigDecimal(o.toString());
            case "DATE": return LocalDate.parse(o.toString());
            case "TIMESTAMP": return LocalDateTime.parse(o.toString());
            case "TIMESTAMP_LTZ": return Instant.parse(o.toString());
            case "BYTES": return java.util.HexFormat.of().parseHex(o.toString());
            case "ARRAY<INT>": return Expressions.<List<Integer>>as(o).toArray(new Integer[0]);
            case "ARRAY<STRING>": return Expressions.<List<String>>as(o).toArray(new String[0]);
            default: return o;
        }
    }

    /** Asks for many expressions at once; those of a statement that fails are asked in halves, and at last each alone. */
    private void evaluate(List<String> expressions) {
        List<String> valid = new ArrayList<>();
        for (String each : expressions) {
            try {
                tables.sqlQuery("SELECT " + each + " AS v FROM t");
                valid.add(each);
            } catch (Exception e) {
                values.put(each, Map.of("refused", message(e)));
            }
        }
        for (int i = 0; i < valid.size(); i += AT_ONCE) run(valid.subList(i, Math.min(valid.size(), i + AT_ONCE)));
    }

    private void run(List<String> expressions) {
        try {
            Answer answer = ask(expressions, "");
            for (int i = 0; i < expressions.size(); i++) {
                List<Object> column = new ArrayList<>();
                for (Row row : answer.rows) column.add(text(row.getField(i + 1)));
                values.put(expressions.get(i), answer(answer.types.get(i), column));
            }
        } catch (Exception e) {
            if (expressions.size() > 1) {
                run(expressions.subList(0, expressions.size() / 2));
                run(expressions.subList(expressions.size() / 2, expressions.size()));
            } else if (cannotBeCompiled(e)) values.put(expressions.get(0), Map.of("refused", "its code cannot be compiled"));
            else values.put(expressions.get(0), byRow(expressions.get(0)));
        }
    }

    private static boolean cannotBeCompiled(Throwable e) {
        for (Throwable t = e; t != null && t != t.getCause(); t = t.getCause())
            if (String.valueOf(t.getMessage()).contains("cannot be compiled")) return true;
        return false;
    }

    /** An error of a row is an object with its message. */
    private Object byRow(String expression) {
        List<Object> column = new ArrayList<>();
        String type = null;
        for (int i = 0; i < rowCount; i++) {
            try {
                Answer answer = ask(List.of(expression), " WHERE " + INDEX + " = " + i);
                column.add(text(answer.rows.get(0).getField(1)));
                type = answer.types.get(0);
            } catch (Exception e) {
                column.add(Map.of("error", message(e)));
            }
        }
        return answer(type, column);
    }

    private static Map<String, Object> answer(String type, List<Object> column) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("type", type);
        found.put("values", column);
        return found;
    }

    private static final class Answer {
        List<String> types;
        List<Row> rows;
    }

    private Answer ask(List<String> expressions, String where) throws Exception {
        StringBuilder items = new StringBuilder(INDEX);
        for (int i = 0; i < expressions.size(); i++) items.append(", ").append(expressions.get(i)).append(" AS v").append(i);
        Answer answer = new Answer();
        answer.rows = new ArrayList<>();
        var result = tables.sqlQuery("SELECT " + items + " FROM t" + where).execute();
        answer.types = new ArrayList<>();
        result.getResolvedSchema().getColumnDataTypes().forEach(t -> answer.types.add(t.getLogicalType().copy(true).asSummaryString()));
        answer.types.remove(0);
        try (CloseableIterator<Row> rows = result.collect()) {
            rows.forEachRemaining(answer.rows::add);
        }
        answer.rows.sort((a, b) -> ((Integer) a.getField(0)).compareTo((Integer) b.getField(0)));
        return answer;
    }

    private static String message(Throwable e) {
        String text = String.valueOf(Cluster.root(e).getMessage()).split("\n")[0];
        return text.length() > 30 ? text.substring(0, 30) : text;
    }

    private static Object text(Object v) {
        if (v == null) return null;
        if (v instanceof BigDecimal) return ((BigDecimal) v).toPlainString();
        if (v instanceof byte[]) return java.util.HexFormat.of().formatHex((byte[]) v);
        if (v instanceof Object[]) {
            List<Object> list = new ArrayList<>();
            for (Object each : (Object[]) v) list.add(text(each));
            return list;
        }
        if (v instanceof Map) {
            Map<String, Object> sorted = new TreeMap<>();
            Expressions.<Map<Object, Object>>as(v).forEach((k, x) -> sorted.put(String.valueOf(text(k)), text(x)));
            return sorted;
        }
        if (v instanceof Row) {
            List<Object> list = new ArrayList<>();
            for (int i = 0; i < ((Row) v).getArity(); i++) list.add(text(((Row) v).getField(i)));
            return list;
        }
        return v.toString();
    }

    /** One line for each expression, in ASCII. */
    private static void write(Path target, Map<String, Map<String, Object>> found) throws Exception {
        StringBuilder b = new StringBuilder("{\"flink\": \"2.3.0\"");
        for (Map.Entry<String, Map<String, Object>> zone : found.entrySet()) {
            b.append(",\n").append(Json.quote(zone.getKey())).append(": {");
            String comma = "\n";
            for (Map.Entry<String, Object> table : zone.getValue().entrySet()) {
                b.append(comma).append(Json.quote(table.getKey())).append(": {");
                comma = ",\n";
                String inner = "\n";
                for (Map.Entry<String, Object> each : Expressions.<Map<String, Object>>as(table.getValue()).entrySet()) {
                    b.append(inner).append(Json.quote(each.getKey())).append(": ").append(Json.of(each.getValue()));
                    inner = ",\n";
                }
                b.append('}');
            }
            b.append('}');
        }
        StringBuilder ascii = new StringBuilder();
        for (char c : b.append("}\n").toString().toCharArray()) ascii.append(c < 127 ? String.valueOf(c) : String.format("\\u%04x", (int) c));
        Files.writeString(target, ascii);
    }
}

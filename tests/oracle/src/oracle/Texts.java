package oracle;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Entry point: runs texts of SQL on Flink as they are written, over given rows. {@code Texts IN.json OUT.json}; see tests/sql/corpus.
 *
 * <p>IN has {@code texts}: each a name, a mode (batch, streaming), a text of statements and rows by table. OUT has by name the
 * columns, types and rows of each target of INSERT and of each SELECT, or the error.
 */
public final class Texts {
    private static final Pattern SET = Pattern.compile("(?is)SET\\s+'([^']+)'\\s*=\\s*'([^']*)'");
    private static final Pattern TEMPORARY = Pattern.compile("(?is)\\A\\s*CREATE\\s+TEMPORARY\\s+TABLE\\b");

    private Texts() {}

    public static void main(String[] args) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        Map<String, Object> in = Json.parse(Files.readString(Paths.get(args[0])));
        Cluster cluster = new Cluster(120);
        Map<String, Object> answers = new LinkedHashMap<>();
        List<?> texts = (List<?>) in.get("texts");
        for (Object each : texts) {
            Map<String, Object> text = cast(each);
            answers.put(text.get("name").toString(), answer(cluster, text));
            if (answers.size() % 20 == 0) System.out.printf("%d of %d%n", answers.size(), texts.size());
        }
        Path out = Paths.get(args[1]);
        Files.writeString(out, Json.of(answers));
        System.exit(0);
    }

    @SuppressWarnings("unchecked")
    private static <T> T cast(Object o) {
        return (T) o;
    }

    private static Object answer(Cluster cluster, Map<String, Object> text) {
        TextTables.clear();
        TextTables.ROWS.putAll(Texts.<Map<String, List<Map<String, Object>>>>cast(text.get("rows")));
        try {
            return run(cluster, text.get("text").toString(), text.get("mode").equals("batch"));
        } catch (Throwable e) {
            Throwable cause = e;
            while (cause.getCause() != null) cause = cause.getCause();
            return Map.of("error", String.valueOf(cause.getMessage()).lines().findFirst().orElse(""));
        }
    }

    private static Map<String, Object> run(Cluster cluster, String text, boolean batch) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("parallelism.default", "1");
        settings.setString("table.exec.resource.default-parallelism", "1");
        settings.setString("table.local-time-zone", "UTC");
        EnvironmentSettings.Builder mode = EnvironmentSettings.newInstance().withConfiguration(settings);
        TableEnvironment tables = StreamTableEnvironment.create(cluster.environment(settings), (batch ? mode.inBatchMode() : mode.inStreamingMode()).build());
        tables.registerCatalog("texts", new TextTables("texts"));
        tables.useCatalog("texts");
        Map<String, Object> answers = new LinkedHashMap<>();
        for (String statement : statements(text)) statement(tables, statement, answers);
        for (Map.Entry<String, List<Object>> each : TextTables.WRITTEN.entrySet())
            Texts.<Map<String, Object>>cast(answers.get(each.getKey())).put("rows", TextTables.settled(each.getValue()));
        return answers;
    }

    private static void statement(TableEnvironment tables, String statement, Map<String, Object> answers) throws Exception {
        Matcher set = SET.matcher(withoutComments(statement).strip());
        if (set.matches()) {
            tables.getConfig().set(set.group(1), set.group(2));
            return;
        }
        Matcher temporary = TEMPORARY.matcher(statement);
        TableResult result = tables.executeSql(temporary.find() ? "CREATE TABLE" + statement.substring(temporary.end()) : statement);
        String words = withoutComments(statement).strip().toUpperCase();
        if (words.startsWith("INSERT") || words.startsWith("EXECUTE")) {
            result.await();
            Matcher target = Pattern.compile("(?is)\\bINSERT\\s+(?:INTO|OVERWRITE)\\s+(`[^`]+`|[\\w.]+)").matcher(withoutComments(statement));
            while (target.find()) {
                String name = target.group(1).replace("`", "");
                answers.putIfAbsent(name, columns(tables.from("`" + name + "`").getResolvedSchema().getColumns()));
            }
        } else if (words.startsWith("SELECT") || words.startsWith("WITH") || words.startsWith("(")) {
            List<Object> changes = new ArrayList<>();
            try (CloseableIterator<Row> rows = result.collect()) {
                while (rows.hasNext()) changes.add(change(rows.next()));
            }
            Map<String, Object> answer = columns(result.getResolvedSchema().getColumns());
            answer.put("rows", TextTables.settled(changes));
            answers.put("SELECT " + (answers.size() + 1), answer);
        }
    }

    private static List<Object> change(Row row) {
        List<Object> change = new ArrayList<>(List.of(row.getKind().shortString()));
        for (int i = 0; i < row.getArity(); i++) change.add(TextValues.write(row.getField(i)));
        return change;
    }

    private static Map<String, Object> columns(List<Column> columns) {
        List<Object> names = new ArrayList<>(), types = new ArrayList<>();
        for (Column each : columns)
            if (each.isPersisted() || !(each instanceof Column.ComputedColumn)) {
                names.add(each.getName());
                types.add(each.getDataType().getLogicalType().asSerializableString());
            }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("columns", names);
        answer.put("types", types);
        answer.put("rows", new ArrayList<>());
        return answer;
    }

    private static String withoutComments(String text) {
        return text.replaceAll("--[^\n]*", " ").replaceAll("(?s)/\\*.*?\\*/", " ");
    }

    /** Statements without the semicolons between them; EXECUTE STATEMENT SET goes to its END. */
    private static List<String> statements(String text) {
        Matcher parts = Pattern.compile("(?s)'(?:[^']|'')*'|`[^`]*`|--[^\n]*|/\\*.*?\\*/|;|.").matcher(text);
        List<String> all = new ArrayList<>();
        StringBuilder one = new StringBuilder();
        while (parts.find()) {
            String words = parts.group().equals(";") ? withoutComments(one.toString()).strip().toUpperCase() : null;
            if (words == null || words.startsWith("EXECUTE STATEMENT SET") && !words.matches("(?s).*\\bEND")) {
                one.append(parts.group());
                continue;
            }
            if (!words.isEmpty()) all.add(one.toString());
            one.setLength(0);
        }
        if (!withoutComments(one.toString()).isBlank()) all.add(one.toString());
        return all;
    }
}

package oracle;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.catalog.GenericInMemoryCatalog;
import org.apache.flink.table.catalog.ResolvedSchema;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.Factory;
import org.apache.flink.table.types.DataType;

/** A catalog whose tables have the rows that were given by their names, whatever their connector is. */
final class TextTables extends GenericInMemoryCatalog {
    /** By table: what it reads, an object of JSON for each row. */
    static final Map<String, List<Map<String, Object>>> ROWS = new ConcurrentHashMap<>();
    /** By table: what was written to it, kinds of changes and values. */
    static final Map<String, List<Object>> WRITTEN = new ConcurrentHashMap<>();

    TextTables(String name) {
        super(name);
    }

    static void clear() {
        ROWS.clear();
        WRITTEN.clear();
    }

    @Override public Optional<Factory> getFactory() {
        return Optional.of(new Tables());
    }

    /** The metadata of a table by its key: the column's name, and its type. */
    static Map<String, DataType> metadata(ResolvedSchema schema, boolean writable) {
        Map<String, DataType> types = new LinkedHashMap<>();
        for (Column each : schema.getColumns())
            if (each instanceof Column.MetadataColumn && !(writable && ((Column.MetadataColumn) each).isVirtual()))
                types.put(((Column.MetadataColumn) each).getMetadataKey().orElse(each.getName()), each.getDataType());
        return types;
    }

    static final class Tables implements DynamicTableSourceFactory, DynamicTableSinkFactory {
        @Override public String factoryIdentifier() {
            return "texts";
        }

        @Override public Set<ConfigOption<?>> requiredOptions() {
            return Collections.emptySet();
        }

        @Override public Set<ConfigOption<?>> optionalOptions() {
            return Collections.emptySet();
        }

        @Override public DynamicTableSource createDynamicTableSource(Context context) {
            String table = context.getObjectIdentifier().getObjectName();
            if (!ROWS.containsKey(table)) throw new BadScenario("no rows are given for " + table);
            ResolvedSchema schema = context.getCatalogTable().getResolvedSchema();
            return new TextSource(table, metadata(schema, false), context.getPhysicalRowDataType());
        }

        @Override public DynamicTableSink createDynamicTableSink(Context context) {
            ResolvedSchema schema = context.getCatalogTable().getResolvedSchema();
            return new TextSink(context.getObjectIdentifier().getObjectName(), metadata(schema, true), context.getPhysicalRowDataType());
        }
    }

    /** Remembers a row that was written. */
    static void write(String table, String kind, List<Object> values) {
        List<Object> row = new ArrayList<>();
        row.add(kind);
        row.addAll(values);
        WRITTEN.computeIfAbsent(table, name -> Collections.synchronizedList(new ArrayList<>())).add(row);
    }

    /** Rows that are there when changes are over: those inserted and not retracted. */
    static List<Object> settled(Collection<?> changes) {
        List<Object> rows = new ArrayList<>();
        for (Object each : changes) {
            List<?> change = (List<?>) each;
            List<?> values = change.subList(1, change.size());
            if (change.get(0).equals("+I") || change.get(0).equals("+U")) rows.add(values);
            else if (!rows.remove(values)) throw new IllegalStateException("retracted, but never there: " + values);
        }
        return rows;
    }
}

package oracle;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.RuntimeConverter;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.abilities.SupportsReadingMetadata;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.LookupFunction;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.Row;

/** Reads the rows of a table in their order, or looks them up. */
final class TextSource implements ScanTableSource, LookupTableSource, SupportsReadingMetadata {
    private static final Map<String, List<RowData>> LOOKED_UP = new java.util.concurrent.ConcurrentHashMap<>();

    private final String table;
    private final Map<String, DataType> metadata;
    private DataType produced;
    /** The columns of rows in JSON: metadata by their keys. */
    private List<String> names;

    TextSource(String table, Map<String, DataType> metadata, DataType physical) {
        this.table = table;
        this.metadata = metadata;
        this.produced = physical;
        this.names = DataType.getFieldNames(physical);
    }

    @Override public Map<String, DataType> listReadableMetadata() {
        return metadata;
    }

    @Override public void applyReadableMetadata(List<String> keys, DataType type) {
        produced = type;
        int physical = DataType.getFieldNames(type).size() - keys.size();
        names = new ArrayList<>(DataType.getFieldNames(type).subList(0, physical));
        names.addAll(keys);
    }

    @Override public ChangelogMode getChangelogMode() {
        return ChangelogMode.insertOnly();
    }

    private List<RowData> rows(DynamicTableSource.DataStructureConverter converter) {
        List<LogicalType> types = ((RowType) produced.getLogicalType()).getChildren();
        converter.open(RuntimeConverter.Context.create(TextSource.class.getClassLoader()));
        List<RowData> rows = new ArrayList<>();
        for (Map<String, Object> each : TextTables.ROWS.get(table)) {
            Row row = new Row(types.size());
            for (int i = 0; i < types.size(); i++) row.setField(i, TextValues.read(each.get(names.get(i)), types.get(i)));
            rows.add((RowData) converter.toInternal(row));
        }
        return rows;
    }

    @Override public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
        TypeInformation<RowData> type = context.createTypeInformation(produced);
        List<RowData> rows = rows(context.createDataStructureConverter(produced));
        return new DataStreamScanProvider() {
            @Override public DataStream<RowData> produceDataStream(ProviderContext provider, StreamExecutionEnvironment env) {
                return env.fromData(rows, type);
            }

            @Override public boolean isBounded() {
                return true;
            }
        };
    }

    @Override public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
        LOOKED_UP.put(table, rows(context.createDataStructureConverter(produced)));
        List<LogicalType> types = ((RowType) produced.getLogicalType()).getChildren();
        int[] keys = new int[context.getKeys().length];
        for (int i = 0; i < keys.length; i++) keys[i] = context.getKeys()[i][0];
        return LookupFunctionProvider.of(new Lookup(table, keys, types.toArray(new LogicalType[0])));
    }

    @Override public DynamicTableSource copy() {
        TextSource copy = new TextSource(table, metadata, produced);
        copy.names = names;
        return copy;
    }

    @Override public String asSummaryString() {
        return "texts";
    }

    /** Rows whose key columns have the values. */
    public static final class Lookup extends LookupFunction {
        private final String table;
        private final int[] keys;
        private final LogicalType[] types;
        private transient List<RowData> rows;

        Lookup(String table, int[] keys, LogicalType[] types) {
            this.table = table;
            this.keys = keys;
            this.types = types;
        }

        @Override public void open(FunctionContext context) {
            rows = LOOKED_UP.get(table);
        }

        @Override public Collection<RowData> lookup(RowData key) {
            List<RowData> found = new ArrayList<>();
            for (RowData row : rows) {
                boolean same = true;
                for (int i = 0; i < keys.length && same; i++) {
                    Object wanted = RowData.createFieldGetter(types[keys[i]], i).getFieldOrNull(key);
                    same = wanted != null && wanted.equals(RowData.createFieldGetter(types[keys[i]], keys[i]).getFieldOrNull(row));
                }
                if (same) found.add(row);
            }
            return found;
        }
    }
}

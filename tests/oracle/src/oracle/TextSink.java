package oracle;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamSink;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.sink.DataStreamSinkProvider;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.abilities.SupportsOverwrite;
import org.apache.flink.table.connector.sink.abilities.SupportsPartitioning;
import org.apache.flink.table.connector.sink.abilities.SupportsWritingMetadata;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.Row;

/** Remembers the changes that are written to a table. */
final class TextSink implements DynamicTableSink, SupportsPartitioning, SupportsOverwrite, SupportsWritingMetadata {
    private final String table;
    private final Map<String, DataType> metadata;
    private DataType consumed;

    TextSink(String table, Map<String, DataType> metadata, DataType physical) {
        this.table = table;
        this.metadata = metadata;
        this.consumed = physical;
    }

    @Override public Map<String, DataType> listWritableMetadata() {
        return metadata;
    }

    @Override public void applyWritableMetadata(List<String> keys, DataType type) {
        consumed = type;
    }

    @Override public void applyStaticPartition(Map<String, String> partition) {}

    @Override public void applyOverwrite(boolean overwrite) {}

    @Override public ChangelogMode getChangelogMode(ChangelogMode requested) {
        return requested;
    }

    @Override public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
        DataStructureConverter converter = context.createDataStructureConverter(consumed);
        return new DataStreamSinkProvider() {
            @Override public DataStreamSink<?> consumeDataStream(ProviderContext provider, DataStream<RowData> rows) {
                return rows.transform("remember", rows.getType(), new Remember(table, converter)).sinkTo(new DiscardingSink<>());
            }
        };
    }

    @Override public DynamicTableSink copy() {
        return new TextSink(table, metadata, consumed);
    }

    @Override public String asSummaryString() {
        return "texts";
    }

    static final class Remember extends AbstractStreamOperator<RowData> implements OneInputStreamOperator<RowData, RowData> {
        private final String table;
        private final DataStructureConverter converter;

        Remember(String table, DataStructureConverter converter) {
            this.table = table;
            this.converter = converter;
        }

        @Override public void open() {
            converter.open(org.apache.flink.table.connector.RuntimeConverter.Context.create(Remember.class.getClassLoader()));
        }

        @Override public void processElement(StreamRecord<RowData> record) {
            Row row = (Row) converter.toExternal(record.getValue());
            List<Object> values = new ArrayList<>();
            for (int i = 0; i < row.getArity(); i++) values.add(TextValues.write(row.getField(i)));
            TextTables.write(table, row.getKind().shortString(), values);
        }
    }
}

package oracle;

import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/** A statement over the table T, or over L and R where the input has sides. */
final class SqlPipeline {
    private SqlPipeline() {}

    /**
     * @param versioned whether its rows are versions of their keys
     * @param nullable whether numbers may be null
     */
    private static Schema schema(boolean versioned, boolean nullable) {
        String orNull = nullable ? "" : " NOT NULL";
        Schema.Builder columns = Schema.newBuilder().column("idx", "INT" + orNull).column("key", versioned ? "STRING NOT NULL" : "STRING")
            .column("ts", "BIGINT" + orNull).column("value", "DOUBLE" + orNull)
            .columnByMetadata("rt", DataTypes.TIMESTAMP_LTZ(3), "rowtime").watermark("rt", "SOURCE_WATERMARK()");
        return (versioned ? columns.primaryKey("key") : columns).build();
    }

    /** @param pauseMs as in {@link Pipelines#publicApi}, for two tables */
    static StreamExecutionEnvironment build(Scenario s, long pauseMs) {
        StreamExecutionEnvironment env = Pipelines.environment();
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().setLocalTimeZone(ZoneId.of("UTC"));
        tables.getConfig().set("table.exec.resource.default-parallelism", "1");
        tables.getConfig().set("table.exec.source.idle-timeout", "0");
        if (s.sqlOptions != null) s.sqlOptions.forEach((name, value) -> tables.getConfig().set(name, String.valueOf(value)));
        boolean two = s.twoTables();
        DataStream<Elem> script = env.fromData(s.script(), Pipelines.ELEM)
            .transform("step", Pipelines.ELEM, new Script.Step(false, s.input.size(), two ? pauseMs : 0));
        if (two) {
            tables.createTemporaryView("L", Pipelines.side(script, Elem.LEFT), schema(false, false));
            tables.createTemporaryView("R", Pipelines.side(script, Elem.RIGHT), schema(s.versioned(), false));
        } else tables.createTemporaryView("T", Pipelines.watermarked(script), schema(false, s.nullable()));
        Table result = tables.sqlQuery(s.sql);
        DataStream<Row> changes = tables.toChangelogStream(result);
        changes.transform("capture", changes.getType(), new CaptureRows(result.getResolvedSchema().getColumnNames()));
        return env;
    }

    static class CaptureRows extends AbstractStreamOperator<Row> implements OneInputStreamOperator<Row, Row> {
        private final List<String> names;

        CaptureRows(List<String> names) {
            this.names = names;
        }

        @Override public void processElement(StreamRecord<Row> r) {
            Row row = r.getValue();
            StringBuilder b = new StringBuilder("\"op\":\"").append(row.getKind().shortString()).append('"');
            for (int i = 0; i < names.size(); i++) b.append(',').append(Json.quote(names.get(i))).append(':').append(json(row.getField(i)));
            Probe.row(b.toString(), r.hasTimestamp() ? r.getTimestamp() : null);
        }

        @Override public void processWatermark(Watermark w) throws Exception {
            Probe.watermark(w.getTimestamp());
            super.processWatermark(w);
        }

        /** Times become epoch milliseconds. */
        private static String json(Object v) {
            if (v instanceof LocalDateTime) return Long.toString(((LocalDateTime) v).toInstant(ZoneOffset.UTC).toEpochMilli());
            if (v instanceof Instant) return Long.toString(((Instant) v).toEpochMilli());
            if (v == null || v instanceof Number || v instanceof Boolean) return Json.of(v);
            return Json.quote(v.toString());
        }
    }
}

package oracle;

import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.Row;

/** Values of rows in JSON: times in ISO 8601, decimals as text, rows as lists, maps as lists of pairs. */
final class TextValues {
    private TextValues() {}

    /** Flink's external value, of the conversion class of a type by default. */
    static Object read(Object json, LogicalType type) {
        if (json == null) return null;
        switch (type.getTypeRoot()) {
            case CHAR:
            case VARCHAR: return json.toString();
            case BOOLEAN: return json;
            case TINYINT: return ((Number) json).byteValue();
            case SMALLINT: return ((Number) json).shortValue();
            case INTEGER: return ((Number) json).intValue();
            case BIGINT: return ((Number) json).longValue();
            case FLOAT: return ((Number) json).floatValue();
            case DOUBLE: return ((Number) json).doubleValue();
            case DECIMAL: return new BigDecimal(json.toString());
            case DATE: return LocalDate.parse(json.toString());
            case TIME_WITHOUT_TIME_ZONE: return LocalTime.parse(json.toString());
            case TIMESTAMP_WITHOUT_TIME_ZONE: return LocalDateTime.parse(json.toString());
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE: return Instant.parse(json.toString());
            case ARRAY: {
                LogicalType of = ((ArrayType) type).getElementType();
                return ((List<?>) json).stream().map(each -> read(each, of)).toArray(Object[]::new);
            }
            case MAP: {
                Map<Object, Object> map = new LinkedHashMap<>();
                for (Object pair : (List<?>) json) {
                    List<?> both = (List<?>) pair;
                    map.put(read(both.get(0), ((MapType) type).getKeyType()), read(both.get(1), ((MapType) type).getValueType()));
                }
                return map;
            }
            case ROW: {
                List<?> fields = (List<?>) json;
                Row row = new Row(fields.size());
                for (int i = 0; i < fields.size(); i++) row.setField(i, read(fields.get(i), ((RowType) type).getTypeAt(i)));
                return row;
            }
            default: throw new BadScenario("no JSON is read as " + type);
        }
    }

    /** What {@link Json#of} writes. */
    static Object write(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long || value instanceof Short || value instanceof Byte) return value;
        if (value instanceof Float || value instanceof Double) {
            double number = ((Number) value).doubleValue();
            return Double.isFinite(number) ? new BigDecimal(value.toString()) : value.toString();
        }
        if (value instanceof byte[]) return HexFormat.of().formatHex((byte[]) value);
        if (value instanceof Object[]) return list(Arrays.asList((Object[]) value));
        if (value instanceof List) return list((List<?>) value);
        if (value instanceof Row) {
            List<Object> fields = new ArrayList<>();
            for (int i = 0; i < ((Row) value).getArity(); i++) fields.add(write(((Row) value).getField(i)));
            return fields;
        }
        if (value instanceof Map) {
            List<Object> pairs = new ArrayList<>();
            for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) pairs.add(Arrays.asList(write(each.getKey()), write(each.getValue())));
            return pairs;
        }
        return value instanceof BigDecimal ? ((BigDecimal) value).toPlainString() : value.toString();
    }

    private static List<Object> list(List<?> values) {
        List<Object> all = new ArrayList<>();
        for (Object each : values) all.add(write(each));
        return all;
    }
}

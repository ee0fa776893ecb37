package oracle;

import java.time.Duration;
import java.util.Map;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.streaming.api.windowing.assigners.*;
import org.apache.flink.streaming.api.windowing.evictors.*;
import org.apache.flink.streaming.api.windowing.triggers.*;

/** From the declarative description to Flink's assigners, triggers and evictors. Flink itself checks the values. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Windows {
    private Windows() {}

    static Duration ms(long ms) {
        return Duration.ofMillis(ms);
    }

    private static Duration ms(Map<String, Object> m, String field) {
        return ms(Json.needWhole(m, field));
    }

    static WindowAssigner assigner(Map<String, Object> a) {
        Duration offset = ms(Json.whole(a, "offset_ms", 0));
        switch (Json.needString(a, "type")) {
            case "tumbling_event_time": return TumblingEventTimeWindows.of(ms(a, "size_ms"), offset);
            case "sliding_event_time": return SlidingEventTimeWindows.of(ms(a, "size_ms"), ms(a, "slide_ms"), offset);
            case "session_event_time": return EventTimeSessionWindows.withGap(ms(a, "gap_ms"));
            case "dynamic_session_event_time": return DynamicEventTimeSessionWindows.withDynamicGap(new WindowFunctions.Gap(Json.needNumber(a, "gap_factor_ms")));
            case "tumbling_processing_time": return TumblingProcessingTimeWindows.of(ms(a, "size_ms"), offset);
            case "sliding_processing_time": return SlidingProcessingTimeWindows.of(ms(a, "size_ms"), ms(a, "slide_ms"), offset);
            case "dynamic_session_processing_time": return DynamicProcessingTimeSessionWindows.withDynamicGap(new WindowFunctions.Gap(Json.needNumber(a, "gap_factor_ms")));
            case "session_processing_time": return ProcessingTimeSessionWindows.withGap(ms(a, "gap_ms"));
            case "global_end_of_stream": return GlobalWindows.createWithEndOfStreamTrigger();
            case "global":
            case "count": return GlobalWindows.create();
            default: throw new BadScenario("unknown assigner '" + a.get("type") + "'");
        }
    }

    /** @param type of the elements the trigger sees (tagged ones in window joins) */
    static Trigger trigger(Map<String, Object> t, TypeInformation type) {
        switch (Json.needString(t, "type")) {
            case "event_time": return EventTimeTrigger.create();
            case "processing_time": return ProcessingTimeTrigger.create();
            case "count": return CountTrigger.of(Json.needWhole(t, "n"));
            case "purging": return PurgingTrigger.of(trigger(Json.needObject(t, "inner"), type));
            case "continuous_event_time": return ContinuousEventTimeTrigger.of(ms(t, "interval_ms"));
            case "continuous_processing_time": return ContinuousProcessingTimeTrigger.of(ms(t, "interval_ms"));
            case "processing_timeout": return ProcessingTimeoutTrigger.of(trigger(Json.needObject(t, "inner"), type), ms(t, "timeout_ms"),
                Json.bool(t, "reset_timer_on_new_record", false), Json.bool(t, "should_clear_on_timeout", true));
            case "delta": return DeltaTrigger.of(Json.needNumber(t, "threshold"), new WindowFunctions.Delta(Json.needString(t, "delta")), type.createSerializer(new SerializerConfigImpl()));
            case "never": return new GlobalWindows.NeverTrigger();
            default: throw new BadScenario("unknown trigger '" + t.get("type") + "'");
        }
    }

    static Evictor evictor(Map<String, Object> e) {
        boolean after = Json.bool(e, "evict_after", false);
        switch (Json.needString(e, "type")) {
            case "count": return CountEvictor.of(Json.needWhole(e, "n"), after);
            case "time": return TimeEvictor.of(ms(e, "size_ms"), after);
            case "delta": return DeltaEvictor.of(Json.needNumber(e, "threshold"), new WindowFunctions.Delta(Json.needString(e, "delta")), after);
            default: throw new BadScenario("unknown evictor '" + e.get("type") + "'");
        }
    }
}

package oracle;

import java.util.Map;
import org.apache.flink.streaming.api.TimeDomain;
import org.apache.flink.streaming.api.TimerService;

/** The time by which a process function sets its timers: operator.function.time_domain. */
enum Domain {
    EVENT_TIME, PROCESSING_TIME;

    static Domain of(Map<String, Object> function) {
        String name = Json.string(function, "time_domain", "event_time");
        for (Domain d : values()) if (d.word().equals(name)) return d;
        throw new BadScenario("unknown time_domain '" + name + "'");
    }

    static Domain of(TimeDomain d) {
        return d == TimeDomain.EVENT_TIME ? EVENT_TIME : PROCESSING_TIME;
    }

    String word() {
        return name().toLowerCase();
    }

    /** The current watermark, or the clock. */
    long now(long watermark, long clock) {
        return this == EVENT_TIME ? watermark : clock;
    }

    long now(TimerService timers) {
        return now(timers.currentWatermark(), timers.currentProcessingTime());
    }

    /** The time of a record: its timestamp, or the clock when it came. */
    long at(Elem e, TimerService timers) {
        return this == EVENT_TIME ? e.ts : timers.currentProcessingTime();
    }

    void register(TimerService timers, long time) {
        if (this == EVENT_TIME) timers.registerEventTimeTimer(time);
        else timers.registerProcessingTimeTimer(time);
    }

    void delete(TimerService timers, long time) {
        if (this == EVENT_TIME) timers.deleteEventTimeTimer(time);
        else timers.deleteProcessingTimeTimer(time);
    }
}

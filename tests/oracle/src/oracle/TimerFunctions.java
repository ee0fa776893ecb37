package oracle;

import java.util.Map;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.streaming.api.TimerService;
import org.apache.flink.util.Collector;

/** Process functions about timers: of either time, of both, and those that timers set. */
final class TimerFunctions {
    private TimerFunctions() {}

    static class StateAndTimer extends Noted.Keyed {
        transient ValueState<Double> kept;

        StateAndTimer(Map<String, Object> function) {
            super(function);
        }

        @Override public void open(OpenContext c) {
            kept = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Double.class));
        }

        @Override void row(Elem e, Context c, Collector<Out> out) throws Exception {
            TimerService timers = c.timerService();
            long now = domain.now(timers);
            if (kept.value() == null) {
                out.collect(Out.of(e.key, "\"how\":\"input\",\"value\":" + Json.number(e.value)));
                kept.update(e.value);
                domain.register(timers, now + param);
            } else {
                kept.clear();
                domain.delete(timers, now + param - 1);
            }
        }

        @Override void timer(long time, OnTimerContext c, Collector<Out> out) throws Exception {
            out.collect(Out.of(c.getCurrentKey(), "\"how\":\"state\",\"timer\":" + time + ",\"value\":" + Json.of(kept.value())));
        }
    }

    static class BothTimers extends Noted.Keyed {
        BothTimers(Map<String, Object> function) {
            super(function);
        }

        @Override void row(Elem e, Context c, Collector<Out> out) {
            TimerService timers = c.timerService();
            if (e.value < 0) {
                timers.deleteProcessingTimeTimer(e.ts + 5 * param);
                timers.deleteEventTimeTimer(e.ts + 6 * param);
                return;
            }
            timers.registerProcessingTimeTimer(e.ts + 3 * param);
            timers.registerEventTimeTimer(e.ts + 4 * param);
            timers.registerProcessingTimeTimer(e.ts + 5 * param);
            timers.registerEventTimeTimer(e.ts + 6 * param);
            timers.deleteProcessingTimeTimer(e.ts + 3 * param);
            timers.deleteEventTimeTimer(e.ts + 4 * param);
        }

        @Override void timer(long time, OnTimerContext c, Collector<Out> out) {
            TimerService timers = c.timerService();
            out.collect(Out.of(c.getCurrentKey(), "\"timer\":" + time + ",\"time_domain\":\"" + Domain.of(c.timeDomain()).word()
                + "\",\"watermark\":" + timers.currentWatermark() + ",\"clock\":" + timers.currentProcessingTime()));
        }
    }

    static class TimersInTimers extends Noted.Keyed {
        transient ValueState<Long> remaining;

        TimersInTimers(Map<String, Object> function) {
            super(function);
        }

        @Override public void open(OpenContext c) {
            remaining = getRuntimeContext().getState(new ValueStateDescriptor<>("remaining", Long.class));
        }

        @Override void row(Elem e, Context c, Collector<Out> out) throws Exception {
            TimerService timers = c.timerService();
            long at = domain.at(e, timers);
            if (e.value < 0) {
                domain.register(timers, at - 1);
            } else {
                remaining.update(Math.floorMod((long) Math.floor(e.value), 5L));
                domain.register(timers, at + param);
            }
        }

        @Override void timer(long time, OnTimerContext c, Collector<Out> out) throws Exception {
            TimerService timers = c.timerService();
            long left = remaining.value() == null ? 0 : remaining.value();
            out.collect(Out.of(c.getCurrentKey(), "\"timer\":" + time + ",\"remaining\":" + left + ",\"now\":" + domain.now(timers)));
            if (left == 0) return;
            remaining.update(left - 1);
            if (left % 2 == 1) {
                domain.register(timers, time + param);
            } else {
                domain.register(timers, time - param);
                domain.register(timers, time + 2 * param);
            }
        }
    }
}

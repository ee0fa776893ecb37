package oracle;

import java.util.Map;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.streaming.api.TimerService;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Process functions with side outputs. */
final class SideFunctions {
    private SideFunctions() {}

    static OutputTag<Out> tag(String name) {
        return new OutputTag<>(name, Pipelines.OUT);
    }

    private static String record(Elem e) {
        return "\"value\":" + Json.number(e.value) + ",\"seq\":" + e.idx;
    }

    static class SideOutputs extends Noted.Keyed {
        static final OutputTag<Out> FIRST = tag("first"), SECOND = tag("second");
        transient ValueState<Long> count;

        SideOutputs(Map<String, Object> function) {
            super(function);
        }

        @Override public void open(OpenContext c) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
        }

        @Override void row(Elem e, Context c, Collector<Out> out) throws Exception {
            Out o = Out.of(e.key, "\"how\":\"record\"," + record(e));
            if (e.value < 0) c.output(FIRST, o);
            else out.collect(o);
            if (e.value >= 20) c.output(SECOND, o);
            count.update(count.value() == null ? 1 : count.value() + 1);
            domain.register(c.timerService(), domain.at(e, c.timerService()) + param);
        }

        @Override void timer(long time, OnTimerContext c, Collector<Out> out) throws Exception {
            long n = count.value() == null ? 0 : count.value();
            Out o = Out.of(c.getCurrentKey(), "\"how\":\"timer\",\"timer\":" + time + ",\"count\":" + n);
            out.collect(o);
            c.output(SECOND, o);
            if (n >= 3) c.output(FIRST, o);
            count.clear();
        }
    }

    static class CoSideOutputs extends Noted.CoKeyed {
        static final OutputTag<Out> REJECTED = tag("rejected"), UNMATCHED = tag("unmatched");
        transient ListState<Elem> lefts;
        transient ValueState<Long> timer;

        CoSideOutputs(Map<String, Object> function) {
            super(function);
        }

        @Override public void open(OpenContext c) {
            lefts = getRuntimeContext().getListState(new ListStateDescriptor<>("lefts", Elem.class));
            timer = getRuntimeContext().getState(new ValueStateDescriptor<>("timer", Long.class));
        }

        private static Out alone(Elem e, String more) {
            return Out.of(e.key, "\"how\":\"" + e.sideName() + "\"," + record(e) + more);
        }

        @Override void left(Elem e, Context c, Collector<Out> out) throws Exception {
            TimerService timers = c.timerService();
            if (e.value < 0) {
                c.output(REJECTED, alone(e, ""));
                return;
            }
            lefts.add(e);
            if (timer.value() != null) return;
            timer.update(domain.at(e, timers) + param);
            domain.register(timers, timer.value());
        }

        @Override void right(Elem e, Context c, Collector<Out> out) throws Exception {
            boolean alone = true;
            for (Elem l : lefts.get()) {
                alone = false;
                out.collect(Out.of(e.key, "\"how\":\"pair\",\"left\":" + Json.number(l.value) + ",\"right\":" + Json.number(e.value)
                    + ",\"left_seq\":" + l.idx + ",\"right_seq\":" + e.idx));
            }
            if (alone) c.output(UNMATCHED, alone(e, ""));
            lefts.clear();
            if (timer.value() != null) domain.delete(c.timerService(), timer.value());
            timer.clear();
        }

        @Override void timer(long time, OnTimerContext c, Collector<Out> out) throws Exception {
            int waiting = 0;
            for (Elem l : lefts.get()) {
                waiting++;
                c.output(UNMATCHED, alone(l, ",\"timer\":" + time));
            }
            out.collect(Out.of(c.getCurrentKey(), "\"how\":\"timeout\",\"timer\":" + time + ",\"waiting\":" + waiting
                + ",\"now\":" + domain.now(c.timerService())));
            lefts.clear();
            timer.clear();
        }
    }
}

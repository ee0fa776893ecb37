package oracle;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReadOnlyBroadcastState;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.TimerService;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** The functions of broadcast_process: rows of the left side meet what the right side has broadcast. */
final class BroadcastFunctions {
    static final MapStateDescriptor<String, Double> RULES = new MapStateDescriptor<>("rules", Types.STRING, Types.DOUBLE);

    private BroadcastFunctions() {}

    /** The rules in the order of their names: a broadcast state has none. */
    private static TreeMap<String, Double> sorted(ReadOnlyBroadcastState<String, Double> state) throws Exception {
        TreeMap<String, Double> rules = new TreeMap<>();
        for (Map.Entry<String, Double> e : state.immutableEntries()) rules.put(e.getKey(), e.getValue());
        return rules;
    }

    private static String json(TreeMap<String, Double> rules) {
        List<Object> l = new ArrayList<>();
        rules.forEach((name, threshold) -> l.add(Arrays.asList(name, threshold)));
        return Json.of(l);
    }

    static class Rules extends Noted.Broadcast {
        static final OutputTag<Out> REJECTED = SideFunctions.tag("rejected"), REPLACED = SideFunctions.tag("replaced");
        private final boolean aside;
        transient ValueState<Long> count;

        Rules(Map<String, Object> function, boolean aside) {
            super(function);
            this.aside = aside;
        }

        @Override public void open(OpenContext c) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
        }

        @Override void broadcast(Elem e, Context c, Collector<Out> out) throws Exception {
            BroadcastState<String, Double> rules = c.getBroadcastState(RULES);
            Double old = rules.get(e.key);
            boolean set = e.value >= 0;
            if (set) rules.put(e.key, e.value);
            else rules.remove(e.key);
            String rule = "\"rule\":" + Json.quote(e.key);
            if (aside && old != null) c.output(REPLACED, Out.of(null, rule + ",\"threshold\":" + Json.number(old) + ",\"seq\":" + e.idx));
            out.collect(Out.of(null, "\"how\":\"" + (set ? "set" : "removed") + "\"," + rule + ",\"threshold\":" + Json.of(set ? (Object) e.value : old)
                + ",\"rules\":" + json(sorted(rules)) + ",\"now\":" + domain.now(c.currentWatermark(), c.currentProcessingTime())));
        }

        @Override void row(Elem e, ReadOnlyContext c, Collector<Out> out) throws Exception {
            String row = "\"value\":" + Json.number(e.value) + ",\"seq\":" + e.idx;
            if (aside && e.value < 0) {
                c.output(REJECTED, Out.of(e.key, row));
                return;
            }
            count.update(count.value() == null ? 1 : count.value() + 1);
            boolean matched = false;
            for (Map.Entry<String, Double> rule : sorted(c.getBroadcastState(RULES)).entrySet()) {
                if (e.value < rule.getValue()) continue;
                matched = true;
                out.collect(Out.of(e.key, "\"how\":\"match\"," + row + ",\"rule\":" + Json.quote(rule.getKey())
                    + ",\"threshold\":" + Json.number(rule.getValue())));
            }
            if (!matched) out.collect(Out.of(e.key, "\"how\":\"none\"," + row));
            domain.register(c.timerService(), domain.at(e, c.timerService()) + param);
        }

        @Override void timer(long time, OnTimerContext c, Collector<Out> out) throws Exception {
            out.collect(Out.of(c.getCurrentKey(), "\"how\":\"timer\",\"timer\":" + time + ",\"count\":" + Json.of(count.value())
                + ",\"rules\":" + json(sorted(c.getBroadcastState(RULES))) + ",\"now\":" + domain.now(c.timerService())));
            count.clear();
        }
    }

    static class BroadcastProbe extends Noted.Broadcast {
        BroadcastProbe(Map<String, Object> function) {
            super(function);
        }

        private static String seen(String how, Elem e, long now) {
            return "\"how\":\"" + how + "\",\"value\":" + Json.number(e.value) + ",\"now\":" + now;
        }

        @Override void broadcast(Elem e, Context c, Collector<Out> out) {
            out.collect(Out.of(null, seen("broadcast", e, domain.now(c.currentWatermark(), c.currentProcessingTime()))));
        }

        @Override void row(Elem e, ReadOnlyContext c, Collector<Out> out) {
            TimerService timers = c.timerService();
            out.collect(Out.of(e.key, seen("row", e, domain.now(timers))));
            domain.register(timers, domain.now(timers) + param);
        }

        @Override void timer(long time, OnTimerContext c, Collector<Out> out) {
            out.collect(Out.of(c.getCurrentKey(), "\"how\":\"timer\",\"timer\":" + time + ",\"now\":" + domain.now(c.timerService())));
        }
    }
}

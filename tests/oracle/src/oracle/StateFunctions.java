package oracle;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.util.Collector;

/** Process functions about state: of every kind, and with a time to live. */
final class StateFunctions {
    private StateFunctions() {}

    private static class Mean implements AggregateFunction<Double, Tuple2<Double, Long>, Double> {
        @Override public Tuple2<Double, Long> createAccumulator() { return Tuple2.of(0.0, 0L); }
        @Override public Tuple2<Double, Long> add(Double x, Tuple2<Double, Long> a) { return Tuple2.of(a.f0 + x, a.f1 + 1); }
        @Override public Double getResult(Tuple2<Double, Long> a) { return a.f0 / a.f1; }
        @Override public Tuple2<Double, Long> merge(Tuple2<Double, Long> a, Tuple2<Double, Long> b) { return Tuple2.of(a.f0 + b.f0, a.f1 + b.f1); }
    }

    private static <T> String list(Iterable<T> elements) {
        List<T> l = new ArrayList<>();
        elements.forEach(l::add);
        return Json.of(l);
    }

    /** The entries of a map in the order of its keys. */
    private static <V> String map(MapState<Long, V> state) throws Exception {
        TreeMap<Long, V> sorted = new TreeMap<>();
        for (Map.Entry<Long, V> e : state.entries()) sorted.put(e.getKey(), e.getValue());
        List<Object> l = new ArrayList<>();
        sorted.forEach((k, v) -> l.add(Arrays.asList(k, v)));
        return Json.of(l);
    }

    static class ReducingAndMap extends Noted.Keyed {
        transient ListState<Long> seqs;
        transient MapState<Long, Long> counts;
        transient ReducingState<Double> sum;
        transient AggregatingState<Double, Double> mean;

        ReducingAndMap(Map<String, Object> function) {
            super(function);
        }

        @Override public void open(OpenContext c) {
            RuntimeContext r = getRuntimeContext();
            seqs = r.getListState(new ListStateDescriptor<>("seqs", Long.class));
            counts = r.getMapState(new MapStateDescriptor<>("counts", Long.class, Long.class));
            sum = r.getReducingState(new ReducingStateDescriptor<>("sum", Double::sum, Double.class));
            mean = r.getAggregatingState(new AggregatingStateDescriptor<>("mean", new Mean(), Types.TUPLE(Types.DOUBLE, Types.LONG)));
        }

        @Override void row(Elem e, Context c, Collector<Out> out) throws Exception {
            long bucket = Math.floorMod((long) Math.floor(e.value), 3L);
            if (e.value < 0) {
                seqs.update(Arrays.asList((long) e.idx));
                counts.remove(bucket);
                sum.clear();
            } else {
                seqs.add((long) e.idx);
                counts.put(bucket, counts.contains(bucket) ? counts.get(bucket) + 1 : 1L);
                sum.add(e.value);
                mean.add(e.value);
            }
            out.collect(Out.of(e.key, "\"how\":\"record\"," + states()));
            domain.register(c.timerService(), domain.at(e, c.timerService()) + param);
        }

        @Override void timer(long time, OnTimerContext c, Collector<Out> out) throws Exception {
            out.collect(Out.of(c.getCurrentKey(), "\"how\":\"timer\",\"timer\":" + time + "," + states()));
            seqs.clear();
            counts.clear();
            sum.clear();
            mean.clear();
        }

        private String states() throws Exception {
            return "\"seq\":" + list(seqs.get()) + ",\"counts\":" + map(counts) + ",\"empty\":" + counts.isEmpty()
                + ",\"sum\":" + Json.of(sum.get()) + ",\"mean\":" + Json.of(mean.get());
        }
    }

    /** Its states live by the scripted clock: see {@link ClockBackend}. */
    static class Ttl extends Noted.Keyed {
        transient ValueState<Double> value, read;
        transient MapState<Long, Double> map;
        transient ListState<Double> list;

        Ttl(Map<String, Object> function) {
            super(function);
            if (param <= 0) throw new BadScenario("'ttl' needs a positive param_ms");
        }

        private StateTtlConfig live(StateTtlConfig.UpdateType update) {
            return StateTtlConfig.newBuilder(Duration.ofMillis(param)).setUpdateType(update)
                .setStateVisibility(StateTtlConfig.StateVisibility.NeverReturnExpired).build();
        }

        @Override public void open(OpenContext c) {
            RuntimeContext r = getRuntimeContext();
            StateTtlConfig written = live(StateTtlConfig.UpdateType.OnCreateAndWrite);
            ValueStateDescriptor<Double> v = new ValueStateDescriptor<>("value", Double.class);
            MapStateDescriptor<Long, Double> m = new MapStateDescriptor<>("map", Long.class, Double.class);
            ListStateDescriptor<Double> l = new ListStateDescriptor<>("list", Double.class);
            for (StateDescriptor<?, ?> each : Arrays.asList(v, m, l)) each.enableTimeToLive(written);
            ValueStateDescriptor<Double> k = new ValueStateDescriptor<>("read", Double.class);
            k.enableTimeToLive(live(StateTtlConfig.UpdateType.OnReadAndWrite));
            value = r.getState(v);
            map = r.getMapState(m);
            list = r.getListState(l);
            read = r.getState(k);
        }

        @Override void row(Elem e, Context c, Collector<Out> out) throws Exception {
            out.collect(Out.of(e.key, "\"how\":\"record\",\"seq\":" + e.idx + "," + seen(c.timerService().currentProcessingTime())));
            long n = (long) Math.floor(e.value), what = Math.floorMod(n, 5L);
            if (n < 0) return;
            if (what == 0 || what == 4) value.update(e.value);
            if (what == 1 || what == 4) map.put(n / 5 % 3, e.value);
            if (what == 2 || what == 4) list.add(e.value);
            if (what == 3 || what == 4) read.update(e.value);
            c.timerService().registerProcessingTimeTimer(c.timerService().currentProcessingTime() + param - 1);
        }

        @Override void timer(long time, OnTimerContext c, Collector<Out> out) throws Exception {
            out.collect(Out.of(c.getCurrentKey(), "\"how\":\"timer\",\"timer\":" + time + "," + seen(c.timerService().currentProcessingTime())));
        }

        private String seen(long clock) throws Exception {
            return "\"clock\":" + clock + ",\"value\":" + Json.of(value.value()) + ",\"map\":" + map(map)
                + ",\"list\":" + list(list.get()) + ",\"read\":" + Json.of(read.value());
        }
    }
}

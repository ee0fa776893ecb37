package oracle;

import java.util.Map;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.co.KeyedBroadcastProcessFunction;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.util.Collector;

/** Process functions that note why they are called. Their parameters are those of operator.function. */
final class Noted {
    private Noted() {}

    /** For kind "process". */
    abstract static class Keyed extends KeyedProcessFunction<String, Elem, Out> {
        final long param;
        final Domain domain;

        Keyed(Map<String, Object> function) {
            param = Json.needWhole(function, "param_ms");
            domain = Domain.of(function);
        }

        abstract void row(Elem e, Context c, Collector<Out> out) throws Exception;

        abstract void timer(long time, OnTimerContext c, Collector<Out> out) throws Exception;

        @Override public final void processElement(Elem e, Context c, Collector<Out> out) throws Exception {
            Probe.causeIsElement();
            row(e, c, out);
        }

        @Override public final void onTimer(long time, OnTimerContext c, Collector<Out> out) throws Exception {
            Probe.causeIsTimer(Domain.of(c.timeDomain()).word(), time);
            timer(time, c, out);
        }
    }

    /** For kind "co_process". */
    abstract static class CoKeyed extends KeyedCoProcessFunction<String, Elem, Elem, Out> {
        final long param;
        final Domain domain;

        CoKeyed(Map<String, Object> function) {
            param = Json.needWhole(function, "param_ms");
            domain = Domain.of(function);
        }

        abstract void left(Elem e, Context c, Collector<Out> out) throws Exception;

        abstract void right(Elem e, Context c, Collector<Out> out) throws Exception;

        abstract void timer(long time, OnTimerContext c, Collector<Out> out) throws Exception;

        @Override public final void processElement1(Elem e, Context c, Collector<Out> out) throws Exception {
            Probe.causeIsElement();
            left(e, c, out);
        }

        @Override public final void processElement2(Elem e, Context c, Collector<Out> out) throws Exception {
            Probe.causeIsElement();
            right(e, c, out);
        }

        @Override public final void onTimer(long time, OnTimerContext c, Collector<Out> out) throws Exception {
            Probe.causeIsTimer(Domain.of(c.timeDomain()).word(), time);
            timer(time, c, out);
        }
    }

    /** For kind "broadcast_process": left is keyed, right is broadcast. */
    abstract static class Broadcast extends KeyedBroadcastProcessFunction<String, Elem, Elem, Out> {
        final long param;
        final Domain domain;

        Broadcast(Map<String, Object> function) {
            param = Json.needWhole(function, "param_ms");
            domain = Domain.of(function);
        }

        abstract void row(Elem e, ReadOnlyContext c, Collector<Out> out) throws Exception;

        abstract void broadcast(Elem e, Context c, Collector<Out> out) throws Exception;

        abstract void timer(long time, OnTimerContext c, Collector<Out> out) throws Exception;

        @Override public final void processElement(Elem e, ReadOnlyContext c, Collector<Out> out) throws Exception {
            Probe.causeIsElement();
            row(e, c, out);
        }

        @Override public final void processBroadcastElement(Elem e, Context c, Collector<Out> out) throws Exception {
            Probe.causeIsElement();
            broadcast(e, c, out);
        }

        @Override public final void onTimer(long time, OnTimerContext c, Collector<Out> out) throws Exception {
            Probe.causeIsTimer(Domain.of(c.timeDomain()).word(), time);
            timer(time, c, out);
        }
    }
}

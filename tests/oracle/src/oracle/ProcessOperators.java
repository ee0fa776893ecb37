package oracle;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.operators.KeyedProcessOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.SimpleOperatorFactory;
import org.apache.flink.util.OutputTag;

/** The kinds "process", "co_process" and "broadcast_process": their functions by name, and the operators around them. */
final class ProcessOperators {
    static final List<String> KINDS = Arrays.asList("process", "co_process", "broadcast_process");
    /** Functions that use the clock whatever their time_domain. */
    private static final List<String> OF_THE_CLOCK = Arrays.asList("both_timers", "ttl");
    private static final String NAME = "under test";

    private ProcessOperators() {}

    static boolean usesClock(Scenario s) {
        if (!KINDS.contains(s.kind)) return false;
        return OF_THE_CLOCK.contains(s.functionType()) || Domain.of(Json.needObject(s.operator, "function")) == Domain.PROCESSING_TIME;
    }

    /** The options of the job that the function needs. */
    static Map<String, String> options(Scenario s) {
        Map<String, String> options = new LinkedHashMap<>();
        if (s.functionType().equals("ttl")) options.put("state.backend.type", ClockBackend.Factory.class.getName());
        return options;
    }

    /** The side outputs of the function, in the order of their names. */
    static List<OutputTag<Out>> tags(Scenario s) {
        switch (s.functionType()) {
            case "side_outputs": return Arrays.asList(SideFunctions.SideOutputs.FIRST, SideFunctions.SideOutputs.SECOND);
            case "co_side_outputs": return Arrays.asList(SideFunctions.CoSideOutputs.REJECTED, SideFunctions.CoSideOutputs.UNMATCHED);
            case "rules_side_outputs": return Arrays.asList(BroadcastFunctions.Rules.REJECTED, BroadcastFunctions.Rules.REPLACED);
            default: return Arrays.asList();
        }
    }

    private static KeyedProcessFunction<String, Elem, Out> keyed(Scenario s) {
        Map<String, Object> function = Json.needObject(s.operator, "function");
        switch (s.functionType()) {
            case "state_and_timer": return new TimerFunctions.StateAndTimer(function);
            case "both_timers": return new TimerFunctions.BothTimers(function);
            case "timers_in_timers": return new TimerFunctions.TimersInTimers(function);
            case "reducing_and_map": return new StateFunctions.ReducingAndMap(function);
            case "ttl": return new StateFunctions.Ttl(function);
            case "side_outputs": return new SideFunctions.SideOutputs(function);
            default: return new ProcessFunctions.Keyed(s.functionType(), function);
        }
    }

    private static Noted.CoKeyed coKeyed(Scenario s) {
        Map<String, Object> function = Json.needObject(s.operator, "function");
        if (s.functionType().equals("co_side_outputs")) return new SideFunctions.CoSideOutputs(function);
        return new ProcessFunctions.CoKeyed(s.functionType(), function);
    }

    private static Noted.Broadcast broadcast(Scenario s) {
        Map<String, Object> function = Json.needObject(s.operator, "function");
        switch (s.functionType()) {
            case "rules": return new BroadcastFunctions.Rules(function, false);
            case "rules_side_outputs": return new BroadcastFunctions.Rules(function, true);
            case "broadcast_probe": return new BroadcastFunctions.BroadcastProbe(function);
            default: throw new BadScenario("unknown function '" + s.functionType() + "' of broadcast_process");
        }
    }

    /** The operator alone, on the scripted clock where there is one. */
    static SingleOutputStreamOperator<Out> scripted(Scenario s, KeyedStream<Elem, String> keyed) {
        OneInputStreamOperator<Elem, Out> operator = operator(s);
        return keyed.transform("process", Pipelines.OUT, new Hosted.Factory<>(SimpleOperatorFactory.of(operator))).uid(NAME);
    }

    private static OneInputStreamOperator<Elem, Out> operator(Scenario s) {
        switch (s.kind) {
            case "process": return new KeyedProcessOperator<>(keyed(s));
            case "co_process": return new Hosted.CoProcess(coKeyed(s));
            default: return new Hosted.BroadcastProcess(broadcast(s), Arrays.asList(BroadcastFunctions.RULES));
        }
    }

    static SingleOutputStreamOperator<Out> publicApi(Scenario s, KeyedStream<Elem, String> keyed) {
        return keyed.process(keyed(s), Pipelines.OUT);
    }

    static SingleOutputStreamOperator<Out> publicApi(Scenario s, DataStream<Elem> left, DataStream<Elem> right) {
        KeyedStream<Elem, String> keyed = left.keyBy(Pipelines.KEY, Types.STRING);
        if (s.kind.equals("co_process")) return keyed.connect(right.keyBy(Pipelines.KEY, Types.STRING)).process(coKeyed(s), Pipelines.OUT);
        return keyed.connect(right.broadcast(BroadcastFunctions.RULES)).process(broadcast(s), Pipelines.OUT);
    }
}

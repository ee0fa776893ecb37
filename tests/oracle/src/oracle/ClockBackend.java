package oracle;

import java.io.IOException;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.KeyedStateBackendParametersImpl;
import org.apache.flink.runtime.state.StateBackendFactory;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;

/** Flink's state on the heap, whose times to live run by the scripted clock. */
public class ClockBackend extends HashMapStateBackend {
    /** For option state.backend.type. */
    public static class Factory implements StateBackendFactory<ClockBackend> {
        @Override public ClockBackend createFromConfig(ReadableConfig c, ClassLoader cl) { return new ClockBackend(); }
    }

    @Override public <K> AbstractKeyedStateBackend<K> createKeyedStateBackend(KeyedStateBackendParameters<K> p) throws IOException {
        return super.createKeyedStateBackend(new KeyedStateBackendParametersImpl<>(p).setTtlTimeProvider(() -> Probe.clock.getCurrentProcessingTime()));
    }
}

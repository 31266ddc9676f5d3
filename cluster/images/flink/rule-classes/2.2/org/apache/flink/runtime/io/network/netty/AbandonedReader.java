package org.apache.flink.runtime.io.network.netty;

import java.lang.reflect.Field;
import java.util.concurrent.ForkJoinPool;
import org.apache.flink.runtime.io.network.partition.BufferAvailabilityListener;
import org.apache.flink.runtime.util.Hidden;

/**
 * The reader of a consumer that was replaced while its connection still stood, as after a loss of
 * power. Its view polls the same queue as the new one, so it would take buffers from the new
 * consumer.
 */
public final class AbandonedReader {
    private static final Field QUEUE =
            Hidden.field(CreditBasedSequenceNumberingViewReader.class, "requestQueue");

    private AbandonedReader() {}

    /**
     * Remove the reader from its connection. The caller may hold the lock of the subpartition, which
     * the connection's own thread takes, so another thread asks it.
     */
    public static void remove(BufferAvailabilityListener listener) {
        if (listener instanceof CreditBasedSequenceNumberingViewReader reader) {
            PartitionRequestQueue queue = Hidden.get(QUEUE, reader);
            ForkJoinPool.commonPool().execute(() -> queue.cancel(reader.getReceiverId()));
        }
    }
}

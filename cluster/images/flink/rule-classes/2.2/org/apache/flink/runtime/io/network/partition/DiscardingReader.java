package org.apache.flink.runtime.io.network.partition;

import java.lang.reflect.Field;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.netty.AbandonedReader;
import org.apache.flink.runtime.io.network.partition.ResultSubpartition.BufferAndBacklog;
import org.apache.flink.runtime.util.Hidden;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads a subpartition in place of a consumer that is gone, and recycles what it reads, so that its
 * producer goes on for the other consumers. It is a reader as any other: the next consumer replaces
 * its view, and Flink then starts that consumer at the beginning of a record.
 */
public final class DiscardingReader implements BufferAvailabilityListener {
    private static final Logger LOG = LoggerFactory.getLogger(DiscardingReader.class);
    private static final Field LISTENER =
            Hidden.field(PipelinedSubpartitionView.class, "availabilityListener");
    private static final Field PARENT = Hidden.field(PipelinedSubpartitionView.class, "parent");

    private final PipelinedSubpartition subpartition;
    private final RecordCounter counter = new RecordCounter();
    /** What was dropped and is not reported yet. */
    private long records;

    private long bytes;

    private DiscardingReader(PipelinedSubpartition subpartition) {
        this.subpartition = subpartition;
    }

    /** A view of an approximate subpartition was released: by its consumer's end, or by a successor
     * that is being connected. */
    public static void onViewReleased(PipelinedSubpartitionView view) {
        PipelinedSubpartition subpartition = Hidden.get(PARENT, view);
        if (Thread.holdsLock(subpartition.buffers)) {
            replaced(Hidden.get(LISTENER, view));
        } else {
            connect(subpartition, view);
        }
    }

    private static void replaced(BufferAvailabilityListener listener) {
        if (listener instanceof DiscardingReader discarding) {
            discarding.report("until its next consumer");
        } else {
            AbandonedReader.remove(listener);
        }
    }

    /** Take the place of a view, or of a consumer that did not come (null), unless it came now. */
    static void connect(PipelinedSubpartition subpartition, PipelinedSubpartitionView view) {
        DiscardingReader reader = new DiscardingReader(subpartition);
        PipelinedSubpartitionView own;
        synchronized (subpartition.buffers) {
            if (subpartition.readView != view || subpartition.isReleased) {
                return;
            }
            own = subpartition.createReadView(reader);
        }
        String reason = view == null ? "did not come" : "is gone";
        LOG.warn("The consumer of {} {}: its records are dropped.", subpartition, reason);
        reader.notifyDataAvailable(own);
    }

    @Override
    public void notifyDataAvailable(ResultSubpartitionView view) {
        while (true) {
            BufferAndBacklog next;
            // A buffer polled after the next consumer's view exists would be missing there.
            synchronized (subpartition.buffers) {
                if (subpartition.readView != view || isAtEnd()) {
                    return;
                }
                next = subpartition.pollBuffer();
                if (next == null) {
                    return;
                }
                if (next.buffer().getDataType().isBlockingUpstream()) {
                    subpartition.resumeConsumption();
                }
                count(next.buffer());
            }
            if (!next.buffer().isBuffer()) {
                DroppedBarrier.onDropped(subpartition.parent, next.buffer())
                        .ifPresent(checkpoint -> report("before checkpoint " + checkpoint));
            }
            next.buffer().recycleBuffer();
        }
    }

    @Override
    public void notifyPriorityEvent(int sequenceNumber) {
        // Only unaligned checkpoints have such events, and they exclude these exchanges.
    }

    /** The end of the data stays in the queue for the next consumer. */
    private boolean isAtEnd() {
        var head = subpartition.buffers.peek();
        if (head == null) {
            return false;
        }
        Buffer.DataType type = head.getBufferConsumer().getDataType();
        return type == Buffer.DataType.END_OF_DATA || type == Buffer.DataType.END_OF_PARTITION;
    }

    private void count(Buffer buffer) {
        if (buffer.isBuffer()) {
            long before = counter.records();
            counter.add(buffer.getNioBufferReadable());
            records += counter.records() - before;
            bytes += buffer.readableBytes();
            Dropped.add(counter.records() - before, buffer.readableBytes());
        }
    }

    /** The harness reads this line (`dropped_records.py`). */
    private void report(String until) {
        synchronized (subpartition.buffers) {
            if (records > 0) {
                LOG.warn(
                        "Dropped {} records ({} bytes) for subpartition {} of {}: {}.",
                        records,
                        bytes,
                        subpartition.getSubPartitionIndex(),
                        subpartition.parent.getOwningTaskName(),
                        until);
            }
            records = 0;
            bytes = 0;
        }
    }
}

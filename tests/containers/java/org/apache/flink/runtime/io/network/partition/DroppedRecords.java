package org.apache.flink.runtime.io.network.partition;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.NetworkBufferPool;
import org.apache.flink.runtime.io.network.partition.ResultSubpartition.BufferAndBacklog;

/**
 * Writes numbered records to a subpartition whose consumer ends in the midst of a record, and prints
 * what the first consumer read, how many buffers wait without a consumer, what the next consumer
 * read, and how many records count as dropped.
 */
public final class DroppedRecords {
    private static final int SEGMENT_BYTES = 32, SEGMENTS = 40, BODY_BYTES = 9;
    private static final BufferAvailabilityListener NONE =
            new BufferAvailabilityListener() {
                @Override
                public void notifyDataAvailable(ResultSubpartitionView view) {}

                @Override
                public void notifyPriorityEvent(int sequenceNumber) {}
            };

    private final ResultSubpartition[] subpartitions = new ResultSubpartition[1];
    private final ResultPartition partition;
    private int written;

    private DroppedRecords() throws Exception {
        NetworkBufferPool pool = new NetworkBufferPool(SEGMENTS, SEGMENT_BYTES);
        partition =
                new PipelinedResultPartition(
                        "test",
                        0,
                        new ResultPartitionID(),
                        ResultPartitionType.PIPELINED_APPROXIMATE,
                        subpartitions,
                        1,
                        new ResultPartitionManager(),
                        null,
                        () -> pool.createBufferPool(1, SEGMENTS, 1, SEGMENTS, 0));
        subpartitions[0] = new PipelinedApproximateSubpartition(0, 2, SEGMENT_BYTES, partition);
        partition.setup();
    }

    public static void main(String[] args) throws Exception {
        new DroppedRecords().run();
    }

    private void run() throws Exception {
        ResultSubpartitionView first = consumer();
        write(5);
        List<Byte> received = new ArrayList<>();
        add(received, first.getNextBuffer());
        System.out.println("first " + records(received));
        first.releaseAllResources();
        write(20);
        partition.flushAll();
        System.out.println("waiting " + subpartitions[0].getNumberOfQueuedBuffers());
        ResultSubpartitionView next = consumer();
        write(5);
        partition.flushAll();
        received.clear();
        for (BufferAndBacklog each; (each = next.getNextBuffer()) != null; ) {
            add(received, each);
        }
        System.out.println("next " + records(received));
        System.out.println("dropped " + System.getProperty(Dropped.PREFIX + "records"));
    }

    private ResultSubpartitionView consumer() throws Exception {
        return partition.createSubpartitionView(new ResultSubpartitionIndexSet(0), NONE);
    }

    private void write(int records) throws Exception {
        for (int each = 0; each < records; each++) {
            ByteBuffer record = ByteBuffer.allocate(Integer.BYTES + BODY_BYTES);
            record.putInt(BODY_BYTES).put((byte) 0).putLong(written++).flip();
            partition.emitRecord(record, 0);
        }
    }

    private static void add(List<Byte> received, BufferAndBacklog next) {
        Buffer buffer = next.buffer();
        ByteBuffer bytes = buffer.getNioBufferReadable();
        while (bytes.hasRemaining()) {
            received.add(bytes.get());
        }
        buffer.recycleBuffer();
    }

    /** The numbers of the whole records, then "half" if a part of another follows. */
    private static String records(List<Byte> received) {
        ByteBuffer bytes = ByteBuffer.allocate(received.size());
        received.forEach(bytes::put);
        bytes.flip();
        StringBuilder found = new StringBuilder();
        while (bytes.remaining() >= Integer.BYTES + BODY_BYTES) {
            if (bytes.getInt() != BODY_BYTES || bytes.get() != 0) {
                return found + "not a record";
            }
            found.append(bytes.getLong()).append(' ');
        }
        return found + (bytes.hasRemaining() ? "half" : "");
    }
}

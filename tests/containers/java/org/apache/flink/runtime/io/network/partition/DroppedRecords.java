package org.apache.flink.runtime.io.network.partition;

import static org.apache.flink.runtime.io.network.partition.ResultPartitionType.PIPELINED_APPROXIMATE;

import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.deployment.ResultPartitionDeploymentDescriptor;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.NetworkBufferPool;
import org.apache.flink.runtime.io.network.partition.ResultSubpartition.BufferAndBacklog;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.shuffle.NettyShuffleDescriptor;
import org.apache.flink.runtime.shuffle.NettyShuffleDescriptor.NetworkPartitionConnectionInfo;
import org.apache.flink.runtime.shuffle.PartitionDescriptor;
import org.apache.flink.runtime.shuffle.RestartedPartition;

/**
 * Writes numbered records to subpartitions that lack their consumer, and prints how many buffers
 * wait for it, what a later consumer reads, and how many records count as dropped. One lost its
 * consumer in the midst of a record; the producer of another restarted alone and found none; the
 * producer of the third restarted with the whole job.
 */
public final class DroppedRecords {
    private static final int SEGMENT_BYTES = 32, SEGMENTS = 40, BODY_BYTES = 9;
    private static final long LIMIT_MS = 3_000;
    private static final BufferAvailabilityListener NONE =
            new BufferAvailabilityListener() {
                @Override
                public void notifyDataAvailable(ResultSubpartitionView view) {}

                @Override
                public void notifyPriorityEvent(int sequenceNumber) {}
            };

    private final PipelinedResultPartition partition;
    private int written;

    private DroppedRecords(boolean isRestartedAlone) throws Exception {
        ResultPartitionID id = new ResultPartitionID();
        NettyShuffleDescriptor known =
                new NettyShuffleDescriptor(
                        ResourceID.generate(),
                        new NetworkPartitionConnectionInfo(new InetSocketAddress(0), 0),
                        id);
        PartitionDescriptor description =
                new PartitionDescriptor(
                        new IntermediateDataSetID(),
                        1,
                        id.getPartitionId(),
                        PIPELINED_APPROXIMATE,
                        1,
                        0,
                        false,
                        true,
                        false);
        ResultPartitionDeploymentDescriptor deployed =
                new ResultPartitionDeploymentDescriptor(
                        description, isRestartedAlone ? new RestartedPartition(known) : known, 1);
        partition = (PipelinedResultPartition) factory().create("test", 0, deployed);
        partition.setup();
    }

    private static ResultPartitionFactory factory() {
        return new ResultPartitionFactory(
                new ResultPartitionManager(),
                null,
                new NetworkBufferPool(SEGMENTS, SEGMENT_BYTES),
                null,
                null,
                null,
                2,
                SEGMENTS - 2,
                SEGMENT_BYTES,
                SEGMENT_BYTES,
                false,
                null,
                SEGMENTS,
                0,
                1,
                false,
                0,
                null);
    }

    public static void main(String[] args) throws Exception {
        DroppedRecords lost = new DroppedRecords(false);
        lost.loseConsumer();
        lost.print("lost");
        DroppedRecords whole = new DroppedRecords(false);
        whole.write(20);
        DroppedRecords alone = new DroppedRecords(true);
        alone.write(20);
        alone.awaitDropping();
        alone.print("alone");
        whole.print("whole");
    }

    private void loseConsumer() throws Exception {
        ResultSubpartitionView first = consumer();
        write(5);
        List<Byte> received = new ArrayList<>();
        add(received, first.getNextBuffer());
        System.out.println("lost.first " + records(received));
        first.releaseAllResources();
        write(20);
    }

    private void awaitDropping() throws Exception {
        long end = System.currentTimeMillis() + LIMIT_MS;
        while (waiting() > 1 && System.currentTimeMillis() < end) {
            Thread.sleep(20);
        }
    }

    /** Connect the next consumer, and print what it reads. */
    private void print(String name) throws Exception {
        System.out.println(name + ".waiting " + waiting());
        ResultSubpartitionView next = consumer();
        write(5);
        List<Byte> received = new ArrayList<>();
        for (BufferAndBacklog each; (each = next.getNextBuffer()) != null; ) {
            add(received, each);
        }
        System.out.println(name + ".next " + records(received));
        System.out.println(name + ".dropped " + System.getProperty(Dropped.PREFIX + "records"));
    }

    private int waiting() {
        return partition.subpartitions[0].getNumberOfQueuedBuffers();
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
        partition.flushAll();
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

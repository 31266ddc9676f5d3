package org.apache.flink.runtime.shuffle;

import org.apache.flink.runtime.io.network.ConnectionID;

/** Tells a consumer that a partition's producer has failed; its successor is announced later. */
public final class LostPartition extends NettyShuffleDescriptor {
    private static final long serialVersionUID = 1L;

    public LostPartition(NettyShuffleDescriptor known) {
        this(known, known.getConnectionId());
    }

    private LostPartition(NettyShuffleDescriptor known, ConnectionID connection) {
        super(
                connection.getResourceID(),
                new NetworkPartitionConnectionInfo(
                        connection.getAddress(), connection.getConnectionIndex()),
                known.getResultPartitionID());
    }
}

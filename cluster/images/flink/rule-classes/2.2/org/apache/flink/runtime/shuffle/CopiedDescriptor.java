package org.apache.flink.runtime.shuffle;

import org.apache.flink.runtime.io.network.ConnectionID;

/** A partition's descriptor whose class says more about the partition. */
abstract class CopiedDescriptor extends NettyShuffleDescriptor {
    private static final long serialVersionUID = 1L;

    CopiedDescriptor(NettyShuffleDescriptor known) {
        this(known, known.getConnectionId());
    }

    private CopiedDescriptor(NettyShuffleDescriptor known, ConnectionID connection) {
        super(
                connection.getResourceID(),
                new NetworkPartitionConnectionInfo(
                        connection.getAddress(), connection.getConnectionIndex()),
                known.getResultPartitionID());
    }
}

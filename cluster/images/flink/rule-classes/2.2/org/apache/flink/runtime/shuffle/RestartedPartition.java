package org.apache.flink.runtime.shuffle;

/** Tells a producer that it restarts alone: its consumers run, or fail and restart by themselves. */
public final class RestartedPartition extends CopiedDescriptor {
    private static final long serialVersionUID = 1L;

    public RestartedPartition(NettyShuffleDescriptor known) {
        super(known);
    }
}

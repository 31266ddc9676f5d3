package org.apache.flink.runtime.shuffle;

/** Tells a consumer that a partition's producer has failed; its successor is announced later. */
public final class LostPartition extends CopiedDescriptor {
    private static final long serialVersionUID = 1L;

    public LostPartition(NettyShuffleDescriptor known) {
        super(known);
    }
}

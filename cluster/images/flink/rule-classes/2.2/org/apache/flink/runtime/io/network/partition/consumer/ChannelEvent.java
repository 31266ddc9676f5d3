package org.apache.flink.runtime.io.network.partition.consumer;

import java.io.IOException;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;
import org.apache.flink.runtime.event.RuntimeEvent;

/**
 * Tells the task, in the order of a channel's buffers, that the channel ends here because its
 * producer was lost, or that it begins here with a new connection. Flink passes it to the task as
 * bytes like every event, so it names its channel by a number.
 */
public final class ChannelEvent extends RuntimeEvent {
    private long channel;
    private boolean lost;

    public ChannelEvent() {}

    ChannelEvent(long channel, boolean lost) {
        this.channel = channel;
        this.lost = lost;
    }

    public boolean isLost() {
        return lost;
    }

    /** After the task has purged what it holds of the lost channel. */
    public void release() throws IOException {
        ReconnectingChannel.of(channel).release();
    }

    @Override
    public void write(DataOutputView out) throws IOException {
        out.writeLong(channel);
        out.writeBoolean(lost);
    }

    @Override
    public void read(DataInputView in) throws IOException {
        channel = in.readLong();
        lost = in.readBoolean();
    }
}

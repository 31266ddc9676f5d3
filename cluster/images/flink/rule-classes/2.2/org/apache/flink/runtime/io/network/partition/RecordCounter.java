package org.apache.flink.runtime.io.network.partition;

import java.nio.ByteBuffer;

/**
 * Counts records in buffers that begin at a record. Each record is its length in four bytes, then as
 * many bytes; both may continue in the next buffer. The first byte of a record tells its kind; only
 * records of the user are counted, not watermarks and the like.
 */
final class RecordCounter {
    /** Tags of the stream's serializer: a record with and one without a time stamp. */
    private static final int WITH_TIMESTAMP = 0, WITHOUT_TIMESTAMP = 1;

    private static final int LENGTH_BYTES = 4;

    private int lengthBytes;
    private int remaining;
    private boolean begins;
    private long records;

    void add(ByteBuffer buffer) {
        while (buffer.hasRemaining()) {
            if (lengthBytes < LENGTH_BYTES) {
                remaining = remaining << Byte.SIZE | buffer.get() & 0xff;
                lengthBytes++;
                begins = true;
            } else {
                body(buffer);
            }
            if (lengthBytes == LENGTH_BYTES && remaining == 0) {
                lengthBytes = 0;
            }
        }
    }

    private void body(ByteBuffer buffer) {
        if (begins) {
            int tag = buffer.get(buffer.position());
            records += tag == WITH_TIMESTAMP || tag == WITHOUT_TIMESTAMP ? 1 : 0;
            begins = false;
        }
        int taken = Math.min(remaining, buffer.remaining());
        buffer.position(buffer.position() + taken);
        remaining -= taken;
    }

    long records() {
        return records;
    }
}

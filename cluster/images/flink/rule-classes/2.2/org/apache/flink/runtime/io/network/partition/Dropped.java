package org.apache.flink.runtime.io.network.partition;

import java.util.concurrent.atomic.AtomicLong;

/** What this JVM dropped for consumers that were gone, in system properties that the listener of the
 * rule agent reports. */
final class Dropped {
    static final String PREFIX = "org.jboss.byteman.single-task.dropped.";
    private static final AtomicLong RECORDS = new AtomicLong();
    private static final AtomicLong BYTES = new AtomicLong();

    private Dropped() {}

    static void add(long records, long bytes) {
        System.setProperty(PREFIX + "records", Long.toString(RECORDS.addAndGet(records)));
        System.setProperty(PREFIX + "bytes", Long.toString(BYTES.addAndGet(bytes)));
    }
}

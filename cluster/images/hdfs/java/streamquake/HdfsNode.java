package streamquake;

import java.io.File;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.FSNamesystem;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.hdfs.tools.DFSAdmin;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.util.ToolRunner;

/**
 * Starts one HDFS role. The configuration folder is given to the thread's class loader instead of
 * the class path: an archive of shared classes allows jars there, and no folders.
 */
public final class HdfsNode {
    private HdfsNode() {}

    public static void main(String[] args) throws Exception {
        useConfiguration(new File(args[0]));
        String[] rest = Arrays.copyOfRange(args, 2, args.length);
        switch (args[1]) {
            case "namenode" -> nameNode(rest);
            case "datanode" -> DataNode.main(rest);
            case "dfs" -> System.exit(ToolRunner.run(new FsShell(new HdfsConfiguration()), rest));
            case "dfsadmin" -> System.exit(ToolRunner.run(new DFSAdmin(), rest));
            default -> throw new IllegalArgumentException("no such role: " + args[1]);
        }
    }

    private static void useConfiguration(File folder) throws Exception {
        URL[] urls = {folder.toURI().toURL()};
        ClassLoader loader = new URLClassLoader(urls, HdfsNode.class.getClassLoader());
        Thread.currentThread().setContextClassLoader(loader);
    }

    private static void nameNode(String[] args) throws Exception {
        Configuration conf = new HdfsConfiguration();
        if (isNew(conf)) {
            NameNode.format(conf);
            // Formatting registers metrics under the names that the serving NameNode needs.
            DefaultMetricsSystem.shutdown();
        }
        NameNode.main(args);
    }

    private static boolean isNew(Configuration conf) {
        for (URI folder : FSNamesystem.getNamespaceDirs(conf)) {
            if (new File(new File(folder.getPath(), "current"), "VERSION").exists()) {
                return false;
            }
        }
        return true;
    }
}

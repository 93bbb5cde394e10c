import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.BoundStatementBuilder;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.ConcurrentHistogram;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.measurements.Measurements;

/**
 * The sensor workload's rows for YCSB: an insert writes one reading, a read takes the newest ten of a device.
 *
 * <p>YCSB decides when operations start; this binding notes, in a window after the warm-up, what it needs to be
 * compared: CPU time of the process, operations, and how late each was sent. Late counts from YCSB's own
 * intended start, or from the end of the thread's operation before if that was later.
 */
public class Peer extends DB {
  private static final String COLUMNS =
      "device_id, ts, temperature, humidity, pressure, vibration, battery, latitude, longitude, signal, metadata";
  private static final String TABLE = "knickpoint.sensor_readings";
  private static final int VALUES = 8;
  private static final int LATEST = 10;
  private static final long EPOCH_MS = 1_704_067_200_000L;
  private static final LongAdder DONE = new LongAdder();
  private static final LongAdder FAILED = new LongAdder();
  private static final ConcurrentHistogram LATENESS_US = new ConcurrentHistogram(3);
  private static final ConcurrentHistogram SERVICE_US = new ConcurrentHistogram(3);
  private static CqlSession session;
  private static PreparedStatement insert;
  private static PreparedStatement select;
  private static String[] written;
  private static String[] read;
  private static volatile boolean isOpen;
  private long lastEndNs;

  @Override
  public void init() throws DBException {
    synchronized (Peer.class) {
      if (session != null) {
        return;
      }
      session =
          CqlSession.builder()
              .addContactPoint(new InetSocketAddress(getProperties().getProperty("peer.address"), 9042))
              .withLocalDatacenter("datacenter1")
              .withConfigLoader(
                  DriverConfigLoader.programmaticBuilder()
                      .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(10))
                      .withString(DefaultDriverOption.REQUEST_CONSISTENCY, DefaultConsistencyLevel.QUORUM.name())
                      .build())
              .build();
      insert = session.prepare("INSERT INTO " + TABLE + " (" + COLUMNS + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
      select = session.prepare("SELECT " + COLUMNS + " FROM " + TABLE + " WHERE device_id = ? LIMIT " + LATEST);
      int devices = Integer.parseInt(getProperties().getProperty("peer.devices"));
      written = new String[devices];
      read = new String[devices];
      for (int device = 0; device < devices; device++) {
        written[device] = String.format("ycsb---%09d", device);
        read[device] = String.format("sensor-%09d", device);
      }
      Thread window = new Thread(this::watch);
      window.setDaemon(true);
      window.start();
    }
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    long number = Long.parseLong(key.substring(4));
    ByteBuffer metadata = ByteBuffer.wrap(values.get("field0").toArray());
    int device = (int) (number % written.length);
    Instant timestamp = Instant.ofEpochMilli(EPOCH_MS + number / written.length * 1000);
    long sentNs = System.nanoTime();
    BoundStatementBuilder row = insert.boundStatementBuilder().setString(0, written[device]).setInstant(1, timestamp);
    for (int value = 0; value < VALUES; value++) {
      row = row.setDouble(2 + value, number * 0.001 + value);
    }
    try {
      session.execute(row.setByteBuffer(2 + VALUES, metadata).build());
    } catch (RuntimeException error) {
      return note(sentNs, Status.ERROR);
    }
    return note(sentNs, Status.OK);
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    int device = (int) (Long.parseLong(key.substring(4)) % read.length);
    long sentNs = System.nanoTime();
    int rows = 0;
    try {
      for (Row row : session.execute(select.bind(read[device]))) {
        boolean isWhole = row.getString(0) != null && row.getInstant(1) != null && row.getByteBuffer(2 + VALUES) != null;
        for (int value = 0; value < VALUES; value++) {
          isWhole &= !Double.isNaN(row.getDouble(2 + value));
        }
        rows += isWhole ? 1 : 0;
      }
    } catch (RuntimeException error) {
      return note(sentNs, Status.ERROR);
    }
    return note(sentNs, rows == LATEST ? Status.OK : Status.NOT_FOUND);
  }

  private Status note(long sentNs, Status status) {
    long endNs = System.nanoTime();
    if (isOpen) {
      long readyNs = Math.max(Measurements.getMeasurements().getIntendedtartTimeNs(), lastEndNs);
      LATENESS_US.recordValue(Math.max(0, (sentNs - readyNs) / 1000));
      SERVICE_US.recordValue((endNs - sentNs) / 1000);
      (status == Status.OK ? DONE : FAILED).increment();
    }
    lastEndNs = endNs;
    return status;
  }

  private void watch() {
    OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    try {
      Thread.sleep(Long.parseLong(getProperties().getProperty("peer.warm_up_ms")));
      long beginNs = System.nanoTime();
      long cpuNs = system.getProcessCpuTime();
      isOpen = true;
      Thread.sleep(Long.parseLong(getProperties().getProperty("peer.measured_ms")));
      isOpen = false;
      cpuNs = system.getProcessCpuTime() - cpuNs;
      double wallS = (System.nanoTime() - beginNs) / 1e9;
      System.out.printf(
          "window {\"done\": %d, \"failed\": %d, \"cpu_s\": %.6f, \"wall_s\": %.6f, \"late_us\": [%d, %d, %d], "
              + "\"service_us\": [%d, %d]}%n",
          DONE.sum(), FAILED.sum(), cpuNs / 1e9, wallS,
          LATENESS_US.getValueAtPercentile(50), LATENESS_US.getValueAtPercentile(99), LATENESS_US.getMaxValue(),
          SERVICE_US.getValueAtPercentile(50), SERVICE_US.getValueAtPercentile(99));
      System.out.flush();
      Runtime.getRuntime().halt(0);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public Status scan(String table, String key, int count, Set<String> fields, Vector<java.util.HashMap<String, ByteIterator>> result) {
    return Status.NOT_IMPLEMENTED;
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return Status.NOT_IMPLEMENTED;
  }

  @Override
  public Status delete(String table, String key) {
    return Status.NOT_IMPLEMENTED;
  }
}

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * A binding of YCSB for CQL, as Maven Central has none: keys and one field, in knickpoint.usertable.
 *
 * <p>Properties: cql.address, cql.port.
 */
public class YcsbCql extends DB {
  private static CqlSession session;
  private static PreparedStatement select;
  private static PreparedStatement insert;

  @Override
  public void init() throws DBException {
    synchronized (YcsbCql.class) {
      if (session != null) {
        return;
      }
      int port = Integer.parseInt(getProperties().getProperty("cql.port"));
      session =
          CqlSession.builder()
              .addContactPoint(new InetSocketAddress(getProperties().getProperty("cql.address"), port))
              .withLocalDatacenter("datacenter1")
              .withConfigLoader(
                  DriverConfigLoader.programmaticBuilder()
                      .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(10))
                      .withString(DefaultDriverOption.REQUEST_CONSISTENCY, DefaultConsistencyLevel.QUORUM.name())
                      .build())
              .build();
      select = session.prepare("SELECT field0 FROM knickpoint.usertable WHERE y_id = ?");
      insert = session.prepare("INSERT INTO knickpoint.usertable (y_id, field0) VALUES (?, ?)");
    }
  }

  @Override
  public void cleanup() {
    synchronized (YcsbCql.class) {
      if (session != null) {
        session.close();
        session = null;
      }
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    Row row = session.execute(select.bind(key)).one();
    if (row == null) {
      return Status.NOT_FOUND;
    }
    result.put("field0", new StringByteIterator(row.getString(0)));
    return Status.OK;
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    session.execute(insert.bind(key, values.get("field0").toString()));
    return Status.OK;
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return insert(table, key, values);
  }

  @Override
  public Status scan(String table, String key, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
    return Status.NOT_IMPLEMENTED;
  }

  @Override
  public Status delete(String table, String key) {
    return Status.NOT_IMPLEMENTED;
  }
}

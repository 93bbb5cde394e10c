import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.AbstractMongoBackend;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/**
 * Serves MongoDB's wire protocol at ADDRESS PORT, from memory or from a FILE that outlives it; says so,
 * then waits to be ended.
 */
public class Run {
  /** The oldest release that the drivers of both engines speak to. */
  private static final MongoVersion RELEASE =
      new MongoVersion() {
        @Override
        public List<Integer> getVersionArray() {
          return List.of(4, 4, 0);
        }

        @Override
        public int getWireVersion() {
          return 9;
        }
      };

  public static void main(String[] arguments) throws Exception {
    AbstractMongoBackend rows =
        arguments.length > 2 ? new H2Backend(arguments[2]) : new MemoryBackend();
    MongoServer server = new MongoServer(rows.version(RELEASE));
    Runtime.getRuntime().addShutdownHook(new Thread(server::shutdownNow));
    server.bind(arguments[0], Integer.parseInt(arguments[1]));
    System.out.println("serving");
    Thread.currentThread().join();
  }
}

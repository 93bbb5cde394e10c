import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** Serves MongoDB's wire protocol from memory at ADDRESS PORT; says so, then waits to be ended. */
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
    MongoServer server = new MongoServer(new MemoryBackend().version(RELEASE));
    server.bind(arguments[0], Integer.parseInt(arguments[1]));
    System.out.println("serving");
    Thread.currentThread().join();
  }
}

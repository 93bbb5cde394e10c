import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** Serves MongoDB's wire protocol from memory at ADDRESS PORT; says so, then waits to be ended. */
public class Run {
  public static void main(String[] arguments) throws Exception {
    MongoServer server = new MongoServer(new MemoryBackend());
    server.bind(arguments[0], Integer.parseInt(arguments[1]));
    System.out.println("serving");
    Thread.currentThread().join();
  }
}

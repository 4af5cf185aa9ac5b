import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.wire.message.MongoMessage;
import java.util.List;

/** mongo-java-server on one file: {@code java -cp 'JARS/*' Server.java PORT FILE [memory]}. */
public final class Server {

    /** Drivers refuse what is older than MongoDB 4.4; it knows itself as 5.0 at most. */
    private static final MongoVersion VERSION = new MongoVersion() {
        @Override
        public List<Integer> getVersionArray() {
            return List.of(7, 0, 0, 0);
        }

        @Override
        public int getWireVersion() {
            return 21;
        }
    };

    /** Hands what it has written to the system before it answers, so that kill -9 loses nothing. */
    private static final class Kept extends H2Backend {
        Kept(String file) {
            super(file);
        }

        @Override
        public Document handleMessage(MongoMessage message) {
            Document answer = super.handleMessage(message);
            if (WRITES.contains(message.getDocument().keySet().iterator().next())) {
                commit();
            }
            return answer;
        }
    }

    private static final List<String> WRITES =
            List.of("insert", "update", "delete", "findAndModify", "createIndexes", "dropDatabase");

    public static void main(String[] arguments) {
        boolean isInMemory = arguments.length > 2;
        H2Backend backend = isInMemory ? H2Backend.inMemory() : new Kept(arguments[1]);
        backend.version(VERSION);
        MongoServer server = new MongoServer(backend);
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdownNow));
        server.bind("127.0.0.1", Integer.parseInt(arguments[0]));
    }
}

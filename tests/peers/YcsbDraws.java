import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Supplier;
import site.ycsb.Utils;
import site.ycsb.generator.ScrambledZipfianGenerator;
import site.ycsb.generator.ZipfianGenerator;
import site.ycsb.measurements.Measurements;
import site.ycsb.workloads.CoreWorkload;

/**
 * Asks YCSB core what it would do: one question per line of input, one line of output for each.
 *
 * hash NUMBER | key ORDER PADDING NUMBER | constants ITEMS | scrambled-constants | place RANK SETTINGS
 * floats SEED COUNT | ranks SEED COUNT ITEMS | lengths SEED COUNT SETTINGS
 * keys SEED COUNT INSERTED SETTINGS
 *
 * SETTINGS are properties of a workload, name=value. INSERTED records are inserted before the first draw.
 */
public class YcsbDraws extends CoreWorkload {
  public static void main(String[] arguments) throws Exception {
    BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
    for (String line = questions.readLine(); line != null; line = questions.readLine()) {
      String[] words = line.split(" ");
      System.out.println(answer(words));
    }
  }

  private static String answer(String[] words) throws Exception {
    switch (words[0]) {
      case "hash":
        return Long.toString(Utils.fnvhash64(Long.parseLong(words[1])));
      case "key":
        String settings = "insertorder=" + words[1] + " zeropadding=" + words[2];
        return workload(settings.split(" "), 0).buildKeyName(Long.parseLong(words[3]));
      case "constants":
        return constants(new ZipfianGenerator(Long.parseLong(words[1])));
      case "scrambled-constants":
        return constants((ZipfianGenerator) read(new ScrambledZipfianGenerator(10), "gen"));
      case "place":
        return place(Long.parseLong(words[1]), workload(words, 2));
      case "ranks":
        return draw(words, new ZipfianGenerator(Long.parseLong(words[3]))::nextValue);
      case "lengths":
        return draw(words, workload(words, 3).scanlength::nextValue);
      case "floats":
        return draw(words, ThreadLocalRandom.current()::nextDouble);
      default:
        return keys(words);
    }
  }

  private static String keys(String[] words) throws Exception {
    YcsbDraws workload = workload(words, 4);
    for (long left = Long.parseLong(words[3]); left > 0; left--) {
      workload.transactioninsertkeysequence.acknowledge(
          workload.transactioninsertkeysequence.nextValue());
    }
    Method next = CoreWorkload.class.getDeclaredMethod("nextKeynum");
    next.setAccessible(true);
    return draw(words, () -> {
      try {
        return next.invoke(workload);
      } catch (ReflectiveOperationException error) {
        throw new IllegalStateException(error);
      }
    });
  }

  /** Where YCSB's own scrambling puts a rank: its inner generator is made to give that rank. */
  private static String place(long rank, YcsbDraws workload) throws Exception {
    Field inner = ScrambledZipfianGenerator.class.getDeclaredField("gen");
    inner.setAccessible(true);
    inner.set(workload.keychooser, new ZipfianGenerator(2) {
      @Override
      public Long nextValue() {
        return rank;
      }
    });
    return workload.keychooser.nextValue().toString();
  }

  private static YcsbDraws workload(String[] words, int first) throws Exception {
    Properties properties = new Properties();
    properties.setProperty("operationcount", "0");
    for (int place = first; place < words.length; place++) {
      String[] setting = words[place].split("=");
      properties.setProperty(setting[0], setting[1]);
    }
    Measurements.setProperties(properties);
    YcsbDraws workload = new YcsbDraws();
    workload.init(properties);
    return workload;
  }

  private static String constants(ZipfianGenerator generator) throws Exception {
    return read(generator, "zetan") + " " + read(generator, "eta") + " " + read(generator, "alpha");
  }

  private static Object read(Object object, String name) throws Exception {
    Field field = object.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(object);
  }

  /** Draws after planting the seed of this thread's random numbers, so that all runs draw alike. */
  private static String draw(String[] words, Supplier<?> next) throws Exception {
    Field unsafeField = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
    unsafeField.setAccessible(true);
    sun.misc.Unsafe unsafe = (sun.misc.Unsafe) unsafeField.get(null);
    long place = unsafe.objectFieldOffset(Thread.class.getDeclaredField("threadLocalRandomSeed"));
    ThreadLocalRandom.current();
    unsafe.putLong(Thread.currentThread(), place, Long.parseLong(words[1]));
    StringJoiner drawn = new StringJoiner(" ");
    for (long left = Long.parseLong(words[2]); left > 0; left--) {
      drawn.add(next.get().toString());
    }
    return drawn.toString();
  }
}

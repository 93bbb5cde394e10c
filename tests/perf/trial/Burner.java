/** Four times as long in one method as in another, and many bytes in a third. */
public class Burner {
    static volatile Object kept;

    static void burn(long nanos) {
        long end = System.nanoTime() + nanos;
        while (System.nanoTime() < end) { }
    }

    static void heavy() { burn(4_000_000); }

    static void light() { burn(1_000_000); }

    static void allocating() { kept = new byte[100_000]; }

    public static void main(String[] arguments) throws Exception {
        while (true) {
            heavy();
            light();
            allocating();
            Thread.sleep(3);
        }
    }
}

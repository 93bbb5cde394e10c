import static net.bytebuddy.matcher.ElementMatchers.named;

import java.lang.instrument.Instrumentation;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;

/** An agent that lets a method of a server burn CPU time, or allocate, at each call: CLASS,METHOD,NANOS,BYTES. */
public class SlowMethod {
    public static long nanos;
    public static int bytes;
    public static volatile byte[] kept;

    public static void premain(String arguments, Instrumentation instrumentation) {
        String[] given = arguments.split(",");
        nanos = Long.parseLong(given[2]);
        bytes = Integer.parseInt(given[3]);
        new AgentBuilder.Default()
            .disableClassFormatChanges()
            .type(named(given[0]))
            .transform((builder, type, loader, module, domain) ->
                builder.visit(Advice.to(Burn.class).on(named(given[1]))))
            .installOn(instrumentation);
    }

    /** What is put at the beginning of the method itself: it has no frame of its own. */
    public static class Burn {
        @Advice.OnMethodEnter
        public static void enter() {
            if (SlowMethod.bytes > 0) SlowMethod.kept = new byte[SlowMethod.bytes];
            if (SlowMethod.nanos > 0) {
                long end = System.nanoTime() + SlowMethod.nanos;
                while (System.nanoTime() < end) { }
            }
        }
    }
}
